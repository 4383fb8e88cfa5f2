-- Leases and their spans, with the columns of resources (internal/manager/dhcp/lease_store.go). parent is the network, low the address,
-- high the last address of a delegated prefix. server is the id of the server, span the open span of the lease or 0. snapshot is the last
-- snapshot of the server that contains the lease.
CREATE TABLE dhcp_lease (
    id            BIGINT PRIMARY KEY,
    collection    TEXT COLLATE "C" NOT NULL DEFAULT 'leases',
    type          TEXT COLLATE "C" NOT NULL,
    name          TEXT COLLATE "C",
    parent        BIGINT NOT NULL,
    configuration BIGINT NOT NULL,
    low           BYTEA NOT NULL,
    high          BYTEA NOT NULL,
    key           TEXT COLLATE "C",
    version       BIGINT NOT NULL,
    refs          TEXT COLLATE "C" NOT NULL DEFAULT '',
    body          TEXT COLLATE "C" NOT NULL,
    state         TEXT COLLATE "C" NOT NULL,
    server        BIGINT NOT NULL,
    span          BIGINT NOT NULL DEFAULT 0,
    snapshot      BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX dhcp_lease_space ON dhcp_lease (configuration, low);
CREATE INDEX dhcp_lease_low ON dhcp_lease (low);
CREATE INDEX dhcp_lease_parent ON dhcp_lease (parent, low, state);
CREATE INDEX dhcp_lease_server ON dhcp_lease (server, id);
CREATE INDEX dhcp_lease_state ON dhcp_lease ((json_extract(body, '$."state"') COLLATE "C"));
CREATE INDEX dhcp_lease_mac ON dhcp_lease ((json_extract(body, '$."macAddress"') COLLATE "C"));
CREATE INDEX dhcp_lease_client ON dhcp_lease ((json_extract(body, '$."clientIdentifier"') COLLATE "C"));
CREATE INDEX dhcp_lease_circuit ON dhcp_lease ((json_extract(body, '$."circuitId"') COLLATE "C"));
CREATE INDEX dhcp_lease_remote ON dhcp_lease ((json_extract(body, '$."remoteId"') COLLATE "C"));
CREATE INDEX dhcp_lease_host ON dhcp_lease ((json_extract(body, '$."hostName"') COLLATE "C"));
-- The ends of leases of 256 addresses: for each lease the last octet of the address and the end in Unix seconds, in 4 octets.
CREATE TABLE dhcp_lease_page (
    configuration BIGINT NOT NULL,
    first         BYTEA NOT NULL,
    ends          BYTEA NOT NULL,
    PRIMARY KEY (configuration, first)
);
-- The clients that had an address, from start to stop in Unix seconds. stop is NULL while the lease lasts.
CREATE TABLE dhcp_lease_span (
    id            BIGINT PRIMARY KEY,
    collection    TEXT COLLATE "C" NOT NULL DEFAULT 'leaseSpans',
    type          TEXT COLLATE "C" NOT NULL DEFAULT 'LeaseSpan',
    name          TEXT COLLATE "C",
    parent        BIGINT NOT NULL,
    configuration BIGINT NOT NULL,
    low           BYTEA NOT NULL,
    high          BYTEA NOT NULL,
    key           TEXT COLLATE "C",
    version       BIGINT NOT NULL,
    refs          TEXT COLLATE "C" NOT NULL DEFAULT '',
    body          TEXT COLLATE "C" NOT NULL,
    start         BIGINT NOT NULL,
    stop          BIGINT
);
CREATE INDEX dhcp_lease_span_low ON dhcp_lease_span (low, start);
CREATE INDEX dhcp_lease_span_parent ON dhcp_lease_span (parent, low);
CREATE INDEX dhcp_lease_span_stop ON dhcp_lease_span (stop) WHERE stop IS NOT NULL;
CREATE INDEX dhcp_lease_span_start ON dhcp_lease_span ((json_extract(body, '$."startDateTime"') COLLATE "C"));
CREATE INDEX dhcp_lease_span_mac ON dhcp_lease_span ((json_extract(body, '$."macAddress"') COLLATE "C"));
CREATE INDEX dhcp_lease_span_client ON dhcp_lease_span ((json_extract(body, '$."clientIdentifier"') COLLATE "C"));
CREATE INDEX dhcp_lease_span_circuit ON dhcp_lease_span ((json_extract(body, '$."circuitId"') COLLATE "C"));
CREATE INDEX dhcp_lease_span_host ON dhcp_lease_span ((json_extract(body, '$."hostName"') COLLATE "C"));
-- How far the journal of a server was applied. snapshot is the snapshot that is being received; 0 if there is none.
CREATE TABLE dhcp_lease_mark (
    server   BIGINT NOT NULL,
    node     BIGINT NOT NULL,
    journal  TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    snapshot BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (server, node)
);
