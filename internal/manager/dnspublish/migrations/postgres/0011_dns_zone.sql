-- What is deployed of DNS: the content of each zone in parts, in order, and what has changed of it since; what each server serves of them; and
-- what deployments wait for, and which records they carried.
CREATE TABLE dns_zone (
    zone          TEXT COLLATE "C" PRIMARY KEY,
    configuration BIGINT NOT NULL,
    serial        BIGINT NOT NULL,
    hash          TEXT COLLATE "C" NOT NULL,
    records       BIGINT NOT NULL,
    number        BIGINT NOT NULL,
    complete      BIGINT NOT NULL
);
CREATE INDEX dns_zone_number ON dns_zone (number);
CREATE TABLE dns_part (
    zone  TEXT COLLATE "C" NOT NULL,
    first BYTEA NOT NULL,
    data  BYTEA NOT NULL,
    PRIMARY KEY (zone, first)
);
CREATE TABLE dns_difference (
    zone      TEXT COLLATE "C" NOT NULL,
    number    BIGINT NOT NULL,
    from_hash TEXT COLLATE "C" NOT NULL,
    to_hash   TEXT COLLATE "C" NOT NULL,
    data      BYTEA NOT NULL,
    PRIMARY KEY (zone, number)
);
CREATE TABLE dns_server (
    server          BIGINT PRIMARY KEY,
    settings        TEXT COLLATE "C" NOT NULL,
    settings_number BIGINT NOT NULL,
    hash            TEXT COLLATE "C" NOT NULL,
    number          BIGINT NOT NULL
);
CREATE TABLE dns_served (
    server BIGINT NOT NULL,
    zone   TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (server, zone)
);
CREATE INDEX dns_served_zone ON dns_served (zone);
CREATE TABLE deployment_wait (
    deployment BIGINT NOT NULL,
    server     BIGINT NOT NULL,
    number     BIGINT NOT NULL,
    until      BIGINT NOT NULL,
    state      TEXT COLLATE "C" NOT NULL,
    message    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (deployment, server)
);
CREATE TABLE deployment_record (
    deployment BIGINT NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    record     BIGINT NOT NULL,
    PRIMARY KEY (deployment, kind, record)
);
-- What has changed of views whose changes go out by themselves, and is not deployed yet: a name by its key, an address, or all of a
-- configuration.
CREATE TABLE dns_due (
    configuration BIGINT NOT NULL,
    kind          TEXT COLLATE "C" NOT NULL,
    what          TEXT COLLATE "C" NOT NULL,
    changed       BIGINT NOT NULL,
    PRIMARY KEY (configuration, kind, what)
);
-- Zones that a server serves no more, since a number.
CREATE TABLE dns_gone (
    server BIGINT NOT NULL,
    zone   TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (server, zone)
);
