-- Secrets of the manager itself: the authority's key.
CREATE TABLE secret (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

-- The fleet. A registration key is kept as its hash; key_public is the public key that used it.
CREATE TABLE service_point (
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    description  TEXT,
    variant      TEXT NOT NULL DEFAULT '',
    status       TEXT NOT NULL,
    update_status TEXT NOT NULL DEFAULT 'OK',
    version      TEXT NOT NULL DEFAULT '',
    target_version TEXT NOT NULL DEFAULT '',
    key_hash     TEXT NOT NULL UNIQUE,
    key_expires  INTEGER NOT NULL,
    key_public   TEXT NOT NULL DEFAULT '',
    certificates TEXT NOT NULL DEFAULT '',
    last_seen    INTEGER NOT NULL DEFAULT 0,
    report       TEXT NOT NULL DEFAULT '',
    desired      INTEGER NOT NULL DEFAULT 1,
    created      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE fleet_event (
    seq           INTEGER PRIMARY KEY,
    service_point TEXT NOT NULL,
    at            INTEGER NOT NULL,
    field         TEXT NOT NULL,
    old           TEXT NOT NULL,
    new           TEXT NOT NULL
);
CREATE INDEX fleet_event_service_point ON fleet_event (service_point, seq);
