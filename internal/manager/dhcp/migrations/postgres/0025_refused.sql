-- The last clients that a server refused, with the columns of resources (internal/manager/dhcp/refused_store.go). parent is the network;
-- the server for a client in no network. identity is the client and the reason. last is the time of the last message in Unix seconds.
CREATE TABLE dhcp_refused_client (
    id            BIGINT PRIMARY KEY,
    collection    TEXT COLLATE "C" NOT NULL DEFAULT 'refusedClients',
    type          TEXT COLLATE "C" NOT NULL DEFAULT 'RefusedClient',
    name          TEXT COLLATE "C",
    parent        BIGINT NOT NULL,
    configuration BIGINT NOT NULL,
    low           BYTEA,
    high          BYTEA,
    key           TEXT COLLATE "C",
    version       BIGINT NOT NULL,
    refs          TEXT COLLATE "C" NOT NULL DEFAULT '',
    body          TEXT COLLATE "C" NOT NULL,
    identity      TEXT COLLATE "C" NOT NULL,
    last          BIGINT NOT NULL
);
CREATE UNIQUE INDEX dhcp_refused_client_identity ON dhcp_refused_client (parent, identity);
CREATE INDEX dhcp_refused_client_last ON dhcp_refused_client (last);
CREATE INDEX dhcp_refused_client_mac ON dhcp_refused_client ((json_extract(body, '$."macAddress"') COLLATE "C"));
-- The numbers of refused messages of a network and a reason on a day. identity is the server, the reason and the day; day is the day as
-- the number of days since 1970.
CREATE TABLE dhcp_refused_count (
    id            BIGINT PRIMARY KEY,
    collection    TEXT COLLATE "C" NOT NULL DEFAULT 'refusedCounts',
    type          TEXT COLLATE "C" NOT NULL DEFAULT 'RefusedCount',
    name          TEXT COLLATE "C",
    parent        BIGINT NOT NULL,
    configuration BIGINT NOT NULL,
    low           BYTEA,
    high          BYTEA,
    key           TEXT COLLATE "C",
    version       BIGINT NOT NULL,
    refs          TEXT COLLATE "C" NOT NULL DEFAULT '',
    body          TEXT COLLATE "C" NOT NULL,
    identity      TEXT COLLATE "C" NOT NULL,
    day           BIGINT NOT NULL,
    n             BIGINT NOT NULL
);
CREATE UNIQUE INDEX dhcp_refused_count_identity ON dhcp_refused_count (parent, identity);
CREATE INDEX dhcp_refused_count_day ON dhcp_refused_count (day);
