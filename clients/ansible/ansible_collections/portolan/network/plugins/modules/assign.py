#!/usr/bin/python
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: assign
short_description: Assigns what is free next in a network or a block of Portolan
description:
  - The next free address of a network, or the next free network of a block.
  - Where one of that name is there already, it is that one, and nothing changes.
options:
  path:
    description: The network or the block, such as networks/10.1.0.0/24 or blocks/10.0.0.0/8.
    type: str
    required: true
  name:
    description: What it is called.
    type: str
    required: true
  size:
    description: Of a block, how large a network, such as /26.
    type: str
  members:
    description: Further members, such as state or macAddress.
    type: dict
    default: {}
  url:
    description: The manager's URL; PORTOLAN_URL where it is left out.
    type: str
    default: http://127.0.0.1:8080
  token:
    description: A bearer token; PORTOLAN_TOKEN where it is left out.
    type: str
    required: true
  ca:
    description: A file with the authority to trust, in PEM; PORTOLAN_CA where it is left out.
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
  description: The address or the network; none in check mode where it is not there yet.
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
