#!/usr/bin/python
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: info
short_description: Lists resources of Portolan
description:
  - What there is in a collection, by a filter.
options:
  path:
    description: A collection, or a subcollection, such as networks or networks/10.1.0.0/24/addresses.
    type: str
    required: true
  filter:
    description: What they must have (docs/filters.md of Portolan).
    type: str
  fields:
    description: The fields that are given.
    type: str
  limit:
    description: The most that are given.
    type: int
    default: 1000
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
- portolan.network.info: {path: networks, filter: "range:within('10.0.0.0/8')"}
  register: networks
"""

RETURN = r"""
resources:
  description: The resources.
  type: list
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.portolan.network.plugins.module_utils.client import PortolanError
from ansible_collections.portolan.network.plugins.module_utils.common import REACHED, reach, refused


def main():
    module = AnsibleModule(
        argument_spec=dict(REACHED, path=dict(type="str", required=True), filter=dict(type="str"), fields=dict(type="str"),
                           limit=dict(type="int", default=1000)),
        supports_check_mode=True,
    )
    p = module.params
    try:
        found = list(reach(module).list(p["path"], filter=p["filter"], fields=p["fields"], limit=p["limit"]))
    except (PortolanError, OSError) as error:
        refused(module, error)
    module.exit_json(changed=False, resources=found)


if __name__ == "__main__":
    main()
