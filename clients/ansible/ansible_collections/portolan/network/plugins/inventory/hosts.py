from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
name: hosts
short_description: An inventory of the host records of Portolan
description:
  - Each host record is a host. Its name is the absolute name, its address is the first one, and its group is the zone.
  - The name of the inventory file must end with portolan.yml or portolan.yaml.
options:
  plugin:
    description: portolan.network.hosts
    required: true
    choices: [portolan.network.hosts]
  url:
    description: The manager's URL.
    type: str
    default: http://127.0.0.1:8080
    env: [{name: PORTOLAN_URL}]
  token:
    description: A bearer token.
    type: str
    required: true
    env: [{name: PORTOLAN_TOKEN}]
  ca:
    description: A PEM file with the certificate authority to trust.
    type: path
    env: [{name: PORTOLAN_CA}]
  filter:
    description: A filter of the API for the host records (docs/filters.md of Portolan).
    type: str
extends_documentation_fragment: [constructed]
author: The Portolan authors
"""

EXAMPLES = r"""
plugin: portolan.network.hosts
filter: absoluteName:endsWith('.lab.example')
"""

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable

from ansible_collections.portolan.network.plugins.module_utils.client import Portolan, PortolanError


class InventoryModule(BaseInventoryPlugin, Constructable):
    NAME = "portolan.network.hosts"

    def verify_file(self, path):
        return super(InventoryModule, self).verify_file(path) and path.endswith(("portolan.yml", "portolan.yaml"))

    def parse(self, inventory, loader, path, cache=True):
        super(InventoryModule, self).parse(inventory, loader, path, cache)
        self._read_config_data(path)
        manager = Portolan(url=self.get_option("url"), token=self.get_option("token"), ca=self.get_option("ca"))
        wanted = "type:'HostRecord'"
        if self.get_option("filter"):
            wanted += " and " + self.get_option("filter")
        try:
            for record in manager.list("resourceRecords", filter=wanted, fields="embed(addresses)"):
                self._host(record)
        except (PortolanError, OSError) as error:
            raise AnsibleParserError("%s: %s" % (self.get_option("url"), error))

    def _host(self, record):
        name = record["absoluteName"]
        self.inventory.add_host(name)
        addresses = [one["address"] for one in record.get("_embedded", {}).get("addresses", [])]
        if addresses:
            self.inventory.set_variable(name, "ansible_host", addresses[0])
        self.inventory.set_variable(name, "portolan", {"id": record["id"], "addresses": addresses, "ttl": record.get("ttl"),
                                                       "userDefinedFields": record.get("userDefinedFields") or {}})
        zone = name.partition(".")[2]
        if zone:
            self.inventory.add_child(self.inventory.add_group(zone.replace(".", "_").replace("-", "_")), name)
        strict = self.get_option("strict")
        found = self.inventory.get_host(name).get_vars()
        self._set_composite_vars(self.get_option("compose"), found, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), found, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), found, name, strict=strict)
