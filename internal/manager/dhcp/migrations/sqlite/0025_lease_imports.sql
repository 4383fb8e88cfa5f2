-- Imported leases that no server has confirmed yet (internal/manager/dhcp/lease_import.go). id is the number of the order to the servers,
-- low the address, data the order (dhcpdata.Order) in JSON. Their rows in dhcp_lease have the server 0.
CREATE TABLE dhcp_lease_import (
    id            INTEGER PRIMARY KEY,
    configuration INTEGER NOT NULL,
    low           BLOB NOT NULL,
    data          TEXT NOT NULL
);
CREATE UNIQUE INDEX dhcp_lease_import_low ON dhcp_lease_import (configuration, low);
