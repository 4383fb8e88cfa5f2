-- Leases and their spans, with the columns of resources (internal/manager/dhcp/lease_store.go). parent is the network, low the address,
-- high the last address of a delegated prefix. server is the id of the server, span the open span of the lease or 0. snapshot is the last
-- snapshot of the server that contains the lease.
CREATE TABLE dhcp_lease (
    id            INTEGER PRIMARY KEY,
    collection    TEXT NOT NULL DEFAULT 'leases',
    type          TEXT NOT NULL,
    name          TEXT,
    parent        INTEGER NOT NULL,
    configuration INTEGER NOT NULL,
    low           BLOB NOT NULL,
    high          BLOB NOT NULL,
    key           TEXT,
    version       INTEGER NOT NULL,
    refs          TEXT NOT NULL DEFAULT '',
    body          TEXT NOT NULL,
    state         TEXT NOT NULL,
    server        INTEGER NOT NULL,
    span          INTEGER NOT NULL DEFAULT 0,
    snapshot      INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX dhcp_lease_space ON dhcp_lease (configuration, low);
CREATE INDEX dhcp_lease_low ON dhcp_lease (low);
CREATE INDEX dhcp_lease_parent ON dhcp_lease (parent, low, state);
CREATE INDEX dhcp_lease_server ON dhcp_lease (server, id);
CREATE INDEX dhcp_lease_state ON dhcp_lease (json_extract(body, '$."state"'));
CREATE INDEX dhcp_lease_mac ON dhcp_lease (json_extract(body, '$."macAddress"'));
CREATE INDEX dhcp_lease_client ON dhcp_lease (json_extract(body, '$."clientIdentifier"'));
CREATE INDEX dhcp_lease_circuit ON dhcp_lease (json_extract(body, '$."circuitId"'));
CREATE INDEX dhcp_lease_remote ON dhcp_lease (json_extract(body, '$."remoteId"'));
CREATE INDEX dhcp_lease_host ON dhcp_lease (json_extract(body, '$."hostName"'));
-- The ends of leases of 256 addresses: for each lease the last octet of the address and the end in Unix seconds, in 4 octets.
CREATE TABLE dhcp_lease_page (
    configuration INTEGER NOT NULL,
    first         BLOB NOT NULL,
    ends          BLOB NOT NULL,
    PRIMARY KEY (configuration, first)
) WITHOUT ROWID;
-- The clients that had an address, from start to stop in Unix seconds. stop is NULL while the lease lasts.
CREATE TABLE dhcp_lease_span (
    id            INTEGER PRIMARY KEY,
    collection    TEXT NOT NULL DEFAULT 'leaseSpans',
    type          TEXT NOT NULL DEFAULT 'LeaseSpan',
    name          TEXT,
    parent        INTEGER NOT NULL,
    configuration INTEGER NOT NULL,
    low           BLOB NOT NULL,
    high          BLOB NOT NULL,
    key           TEXT,
    version       INTEGER NOT NULL,
    refs          TEXT NOT NULL DEFAULT '',
    body          TEXT NOT NULL,
    start         INTEGER NOT NULL,
    stop          INTEGER
);
CREATE INDEX dhcp_lease_span_low ON dhcp_lease_span (low, start);
CREATE INDEX dhcp_lease_span_parent ON dhcp_lease_span (parent, low);
CREATE INDEX dhcp_lease_span_stop ON dhcp_lease_span (stop) WHERE stop IS NOT NULL;
CREATE INDEX dhcp_lease_span_start ON dhcp_lease_span (json_extract(body, '$."startDateTime"'));
CREATE INDEX dhcp_lease_span_mac ON dhcp_lease_span (json_extract(body, '$."macAddress"'));
CREATE INDEX dhcp_lease_span_client ON dhcp_lease_span (json_extract(body, '$."clientIdentifier"'));
CREATE INDEX dhcp_lease_span_circuit ON dhcp_lease_span (json_extract(body, '$."circuitId"'));
CREATE INDEX dhcp_lease_span_host ON dhcp_lease_span (json_extract(body, '$."hostName"'));
-- How far the journal of a server was applied. snapshot is the snapshot that is being received; 0 if there is none.
CREATE TABLE dhcp_lease_mark (
    server   INTEGER NOT NULL,
    node     INTEGER NOT NULL,
    journal  TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    snapshot INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (server, node)
) WITHOUT ROWID;
