#!/usr/bin/python
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: resources
short_description: Creates, changes and deletes resources of Portolan to match a task
description:
  - Creates missing resources and changes existing ones that differ, in one transaction.
  - References are names, such as the code of a location. The order of the resources does not matter (docs/apply.md of Portolan).
options:
  resources:
    description: The resources, each with its type.
    type: list
    elements: dict
    required: true
  into:
    description: The parent of the resources, such as configurations/main.
    type: str
  defaults:
    description: Default values of fields, such as the view. They apply to each resource whose type has the field.
    type: dict
  tag:
    description: A tag to add to each resource, such as tags/north.
    type: str
  prune:
    description: Deletes resources that have the tag and are not in the task.
    type: bool
    default: false
  comment:
    description: A comment to store in the history.
    type: str
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
- portolan.network.resources:
    into: configurations/main
    resources:
      - {type: IPv4Network, range: 10.1.0.0/24, name: office}
"""

RETURN = r"""
transaction:
  description: The number of the transaction; null if nothing changed.
  type: int
  returned: always
resources:
  description: The result for each resource, with its id, its path and the changed fields.
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
