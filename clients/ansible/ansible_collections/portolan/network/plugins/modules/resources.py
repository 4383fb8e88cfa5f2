#!/usr/bin/python
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: resources
short_description: Lets resources of Portolan be as a task says
description:
  - Those that are there otherwise are changed, those that are not there are made, all in one transaction, or none.
  - References are texts, such as the code of a location, and the order does not matter (docs/apply.md of Portolan).
options:
  resources:
    description: The resources, each with its type.
    type: list
    elements: dict
    required: true
  into:
    description: What they belong below, such as configurations/main.
    type: str
  defaults:
    description: Members of each whose type has them, such as the view.
    type: dict
  tag:
    description: A tag that each gets, such as tags/north.
    type: str
  prune:
    description: Whether what has the tag and is not among them goes.
    type: bool
    default: false
  comment:
    description: A remark that the history keeps with it.
    type: str
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
- portolan.network.resources:
    into: configurations/main
    resources:
      - {type: IPv4Network, range: 10.1.0.0/24, name: office}
"""

RETURN = r"""
transaction:
  description: The number of the transaction; null where nothing changed.
  type: int
  returned: always
resources:
  description: What came of each, with its id, its path, and the fields that changed.
  type: list
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.portolan.network.plugins.module_utils.client import PortolanError
from ansible_collections.portolan.network.plugins.module_utils.common import REACHED, reach, refused


def difference(applied):
    """The fields that change, before and after, as --diff shows them."""
    before, after = {}, {}
    for one in applied.get("resources", []):
        key = "%s %s" % (one["type"], one["key"])
        if one["did"] == "CREATED":
            after[key] = "created"
        elif one["did"] == "DELETED":
            before[key] = "there"
        for change in one.get("changes") or []:
            before.setdefault(key, {})
            after.setdefault(key, {})
            if isinstance(before[key], dict) and isinstance(after[key], dict):
                before[key][change["field"]] = change.get("before")
                after[key][change["field"]] = change.get("after")
    return {"before": before, "after": after}


def main():
    module = AnsibleModule(
        argument_spec=dict(
            REACHED,
            resources=dict(type="list", elements="dict", required=True),
            into=dict(type="str"), defaults=dict(type="dict"), tag=dict(type="str"),
            prune=dict(type="bool", default=False), comment=dict(type="str"),
        ),
        supports_check_mode=True,
    )
    p = module.params
    try:
        applied = reach(module).apply(p["resources"], into=p["into"], defaults=p["defaults"], tag=p["tag"], prune=p["prune"],
                                      dry_run=module.check_mode, comment=p["comment"])
    except (PortolanError, OSError) as error:
        refused(module, error)
    changed = applied.get("created", 0) + applied.get("changed", 0) + applied.get("deleted", 0) > 0
    module.exit_json(changed=changed, transaction=None if module.check_mode else applied.get("transaction"),
                     resources=applied.get("resources", []), diff=difference(applied))


if __name__ == "__main__":
    main()
