-- The last observation of each address, with the columns of resources (internal/manager/discovery/observation.go). parent is the network; the
-- configuration for an address in no network. low is the address.
CREATE TABLE observation (
    id            INTEGER PRIMARY KEY,
    collection    TEXT NOT NULL DEFAULT 'observations',
    type          TEXT NOT NULL DEFAULT 'Observation',
    name          TEXT,
    parent        INTEGER NOT NULL,
    configuration INTEGER NOT NULL,
    low           BLOB NOT NULL,
    high          BLOB NOT NULL,
    key           TEXT,
    version       INTEGER NOT NULL,
    refs          TEXT NOT NULL DEFAULT '',
    body          TEXT NOT NULL
);
CREATE UNIQUE INDEX observation_space ON observation (configuration, low);
CREATE INDEX observation_low ON observation (low);
CREATE INDEX observation_parent ON observation (parent, low);
CREATE INDEX observation_last ON observation (json_extract(body, '$."lastSeenDateTime"'));
CREATE INDEX observation_mac ON observation (json_extract(body, '$."macAddress"'));
CREATE INDEX observation_host ON observation (json_extract(body, '$."hostName"'));
CREATE INDEX observation_switch ON observation (json_extract(body, '$."switch"'));
