-- The last observation of each address, with the columns of resources (internal/manager/discovery/observation.go). parent is the network; the
-- configuration for an address in no network. low is the address.
CREATE TABLE observation (
    id            BIGINT PRIMARY KEY,
    collection    TEXT COLLATE "C" NOT NULL DEFAULT 'observations',
    type          TEXT COLLATE "C" NOT NULL DEFAULT 'Observation',
    name          TEXT COLLATE "C",
    parent        BIGINT NOT NULL,
    configuration BIGINT NOT NULL,
    low           BYTEA NOT NULL,
    high          BYTEA NOT NULL,
    key           TEXT COLLATE "C",
    version       BIGINT NOT NULL,
    refs          TEXT COLLATE "C" NOT NULL DEFAULT '',
    body          TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX observation_space ON observation (configuration, low);
CREATE INDEX observation_low ON observation (low);
CREATE INDEX observation_parent ON observation (parent, low);
CREATE INDEX observation_last ON observation ((json_extract(body, '$."lastSeenDateTime"') COLLATE "C"));
CREATE INDEX observation_mac ON observation ((json_extract(body, '$."macAddress"') COLLATE "C"));
CREATE INDEX observation_host ON observation ((json_extract(body, '$."hostName"') COLLATE "C"));
CREATE INDEX observation_switch ON observation ((json_extract(body, '$."switch"') COLLATE "C"));
