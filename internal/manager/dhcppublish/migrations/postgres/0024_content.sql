-- The content of DHCP servers (internal/manager/dhcppublish/content.go). A unit is a network, a class, a MAC pool or the server itself.
CREATE TABLE dhcp_server (
    server BIGINT NOT NULL PRIMARY KEY,
    hash   TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL
);
CREATE TABLE dhcp_unit (
    server  BIGINT NOT NULL,
    unit    TEXT COLLATE "C" NOT NULL,
    hash    TEXT COLLATE "C" NOT NULL,
    records BYTEA NOT NULL,
    PRIMARY KEY (server, unit)
);
-- The recent changes of the content of a server.
CREATE TABLE dhcp_difference (
    server    BIGINT NOT NULL,
    number    BIGINT NOT NULL,
    from_hash TEXT COLLATE "C" NOT NULL,
    to_hash   TEXT COLLATE "C" NOT NULL,
    data      BYTEA NOT NULL,
    PRIMARY KEY (server, number)
);
-- The configurations with changes that deployed servers lack. what is the id of the changed network; 0 means everything.
CREATE TABLE dhcp_due (
    configuration BIGINT NOT NULL,
    what          BIGINT NOT NULL,
    changed       BIGINT NOT NULL,
    PRIMARY KEY (configuration, what)
);
CREATE INDEX dhcp_unit_unit ON dhcp_unit (unit);
