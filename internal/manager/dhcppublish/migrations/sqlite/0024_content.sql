-- The content of DHCP servers (internal/manager/dhcppublish/content.go). A unit is a network, a class, a MAC pool or the server itself.
CREATE TABLE dhcp_server (
    server INTEGER NOT NULL PRIMARY KEY,
    hash   TEXT NOT NULL,
    number INTEGER NOT NULL
);
CREATE TABLE dhcp_unit (
    server  INTEGER NOT NULL,
    unit    TEXT NOT NULL,
    hash    TEXT NOT NULL,
    records BLOB NOT NULL,
    PRIMARY KEY (server, unit)
) WITHOUT ROWID;
-- The recent changes of the content of a server.
CREATE TABLE dhcp_difference (
    server    INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    from_hash TEXT NOT NULL,
    to_hash   TEXT NOT NULL,
    data      BLOB NOT NULL,
    PRIMARY KEY (server, number)
) WITHOUT ROWID;
-- The configurations with changes that deployed servers lack. what is the id of the changed network; 0 means everything.
CREATE TABLE dhcp_due (
    configuration INTEGER NOT NULL,
    what          INTEGER NOT NULL,
    changed       INTEGER NOT NULL,
    PRIMARY KEY (configuration, what)
) WITHOUT ROWID;
CREATE INDEX dhcp_unit_unit ON dhcp_unit (unit);
