#!/usr/bin/python
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: assign
short_description: Assigns the next free address of a network, or the next free network of a block
description:
  - Creates the next free address of a network, or the next free network of a block.
  - If a resource with the name already exists there, it is returned unchanged.
options:
  path:
    description: The network or the block, such as networks/10.1.0.0/24 or blocks/10.0.0.0/8.
    type: str
    required: true
  name:
    description: The name of the address or network.
    type: str
    required: true
  size:
    description: The size of the network in a block, such as /26.
    type: str
  members:
    description: Further fields, such as state or macAddress.
    type: dict
    default: {}
  url:
    description: The URL of the manager, by default that in PORTOLAN_URL.
    type: str
    default: http://127.0.0.1:8080
  token:
    description: A bearer token, by default that in PORTOLAN_TOKEN.
    type: str
    required: true
  ca:
    description: A PEM file with the certificate authority to trust, by default that in PORTOLAN_CA.
    type: path
author: The Portolan authors
"""

EXAMPLES = r"""
- portolan.network.assign: {path: networks/10.1.0.0/24, name: printer}
  register: printer
- portolan.network.assign: {path: blocks/10.0.0.0/8, size: /26, name: lab}
"""

RETURN = r"""
resource:
  description: The address or the network. Empty in check mode if it does not exist yet.
  type: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.portolan.network.plugins.module_utils.client import PortolanError, quoted
from ansible_collections.portolan.network.plugins.module_utils.common import REACHED, reach, refused


def main():
    module = AnsibleModule(
        argument_spec=dict(
            REACHED,
            path=dict(type="str", required=True), name=dict(type="str", required=True), size=dict(type="str"),
            members=dict(type="dict", default={}),
        ),
        supports_check_mode=True,
    )
    p = module.params
    try:
        manager = reach(module)
        path = manager.path(p["path"])
        below = path + ("/addresses" if path.startswith("networks/") else "/networks")
        there = list(manager.list(below, filter="name:" + quoted(p["name"]), limit=1))
        if there:
            module.exit_json(changed=False, resource=there[0])
        if module.check_mode:
            module.exit_json(changed=True)
        members = dict(p["members"], name=p["name"])
        if p["size"]:
            members["range"] = "/" + p["size"].lstrip("/")
        module.exit_json(changed=True, resource=manager.assign(path, **members))
    except (PortolanError, OSError) as error:
        refused(module, error)


if __name__ == "__main__":
    main()
