-- What is deployed of DNS: the content of each zone in parts, in order, and what has changed of it since; what each server serves of them; and
-- what deployments wait for, and which records they carried.
CREATE TABLE dns_zone (
    zone          TEXT PRIMARY KEY,
    configuration INTEGER NOT NULL,
    serial        INTEGER NOT NULL,
    hash          TEXT NOT NULL,
    records       INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    complete      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX dns_zone_number ON dns_zone (number);
CREATE TABLE dns_part (
    zone  TEXT NOT NULL,
    first BLOB NOT NULL,
    data  BLOB NOT NULL,
    PRIMARY KEY (zone, first)
) WITHOUT ROWID;
CREATE TABLE dns_difference (
    zone      TEXT NOT NULL,
    number    INTEGER NOT NULL,
    from_hash TEXT NOT NULL,
    to_hash   TEXT NOT NULL,
    data      BLOB NOT NULL,
    PRIMARY KEY (zone, number)
) WITHOUT ROWID;
CREATE TABLE dns_server (
    server          INTEGER PRIMARY KEY,
    settings        TEXT NOT NULL,
    settings_number INTEGER NOT NULL,
    hash            TEXT NOT NULL,
    number          INTEGER NOT NULL
);
CREATE TABLE dns_served (
    server INTEGER NOT NULL,
    zone   TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (server, zone)
) WITHOUT ROWID;
CREATE INDEX dns_served_zone ON dns_served (zone);
CREATE TABLE deployment_wait (
    deployment INTEGER NOT NULL,
    server     INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    state      TEXT NOT NULL,
    message    TEXT NOT NULL,
    PRIMARY KEY (deployment, server)
);
CREATE TABLE deployment_record (
    deployment INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    record     INTEGER NOT NULL,
    PRIMARY KEY (deployment, kind, record)
) WITHOUT ROWID;
-- What has changed of views whose changes go out by themselves, and is not deployed yet: a name by its key, an address, or all of a
-- configuration.
CREATE TABLE dns_due (
    configuration INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    what          TEXT NOT NULL,
    changed       INTEGER NOT NULL,
    PRIMARY KEY (configuration, kind, what)
) WITHOUT ROWID;
-- Zones that a server serves no more, since a number.
CREATE TABLE dns_gone (
    server INTEGER NOT NULL,
    zone   TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (server, zone)
);
