# Made by go generate ./clients/python from the declarations. Do not edit.

KEYS = {
    "addresses": "address",
    "blocks": "range",
    "clientIdentifiers": "duid",
    "ipGroups": "range",
    "leaseSpans": "address",
    "leases": "address",
    "locations": "code",
    "macAddresses": "address",
    "moves": "absoluteName",
    "networks": "range",
    "observations": "address",
    "ranges": "range",
    "resourceRecords": "absoluteName",
    "zones": "absoluteName",
}
