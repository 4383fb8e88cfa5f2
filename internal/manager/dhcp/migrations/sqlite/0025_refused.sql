-- The last clients that a server refused, with the columns of resources (internal/manager/dhcp/refused_store.go). parent is the network;
-- the server for a client in no network. identity is the client and the reason. last is the time of the last message in Unix seconds.
CREATE TABLE dhcp_refused_client (
    id            INTEGER PRIMARY KEY,
    collection    TEXT NOT NULL DEFAULT 'refusedClients',
    type          TEXT NOT NULL DEFAULT 'RefusedClient',
    name          TEXT,
    parent        INTEGER NOT NULL,
    configuration INTEGER NOT NULL,
    low           BLOB,
    high          BLOB,
    key           TEXT,
    version       INTEGER NOT NULL,
    refs          TEXT NOT NULL DEFAULT '',
    body          TEXT NOT NULL,
    identity      TEXT NOT NULL,
    last          INTEGER NOT NULL
);
CREATE UNIQUE INDEX dhcp_refused_client_identity ON dhcp_refused_client (parent, identity);
CREATE INDEX dhcp_refused_client_last ON dhcp_refused_client (last);
CREATE INDEX dhcp_refused_client_mac ON dhcp_refused_client (json_extract(body, '$."macAddress"'));
-- The numbers of refused messages of a network and a reason on a day. identity is the server, the reason and the day; day is the day as
-- the number of days since 1970.
CREATE TABLE dhcp_refused_count (
    id            INTEGER PRIMARY KEY,
    collection    TEXT NOT NULL DEFAULT 'refusedCounts',
    type          TEXT NOT NULL DEFAULT 'RefusedCount',
    name          TEXT,
    parent        INTEGER NOT NULL,
    configuration INTEGER NOT NULL,
    low           BLOB,
    high          BLOB,
    key           TEXT,
    version       INTEGER NOT NULL,
    refs          TEXT NOT NULL DEFAULT '',
    body          TEXT NOT NULL,
    identity      TEXT NOT NULL,
    day           INTEGER NOT NULL,
    n             INTEGER NOT NULL
);
CREATE UNIQUE INDEX dhcp_refused_count_identity ON dhcp_refused_count (parent, identity);
CREATE INDEX dhcp_refused_count_day ON dhcp_refused_count (day);
