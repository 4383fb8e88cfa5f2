#!/usr/bin/python
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: info
short_description: Lists resources of Portolan
description:
  - Returns the resources of a collection that match a filter.
options:
  path:
    description: A collection, or a subcollection, such as networks or networks/10.1.0.0/24/addresses.
    type: str
    required: true
  filter:
    description: A filter of the API (docs/filters.md of Portolan).
    type: str
  fields:
    description: The fields to return, such as id,name.
    type: str
  limit:
    description: The maximum number of resources.
    type: int
    default: 1000
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
