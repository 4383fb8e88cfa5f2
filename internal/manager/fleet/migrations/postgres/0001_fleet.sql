-- Secrets of the manager itself: the authority's key.
CREATE TABLE secret (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);

-- The fleet. A registration key is kept as its hash; key_public is the public key that used it.
CREATE TABLE service_point (
    id           TEXT COLLATE "C" PRIMARY KEY,
    name         TEXT COLLATE "C" NOT NULL UNIQUE,
    description  TEXT COLLATE "C",
    variant      TEXT COLLATE "C" NOT NULL DEFAULT '',
    status       TEXT COLLATE "C" NOT NULL,
    update_status TEXT COLLATE "C" NOT NULL DEFAULT 'OK',
    version      TEXT COLLATE "C" NOT NULL DEFAULT '',
    target_version TEXT COLLATE "C" NOT NULL DEFAULT '',
    key_hash     TEXT COLLATE "C" NOT NULL UNIQUE,
    key_expires  BIGINT NOT NULL,
    key_public   TEXT COLLATE "C" NOT NULL DEFAULT '',
    certificates TEXT COLLATE "C" NOT NULL DEFAULT '',
    last_seen    BIGINT NOT NULL DEFAULT 0,
    report       TEXT COLLATE "C" NOT NULL DEFAULT '',
    desired      BIGINT NOT NULL DEFAULT 1,
    created      BIGINT NOT NULL
);
CREATE TABLE fleet_event (
    seq           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    service_point TEXT COLLATE "C" NOT NULL,
    at            BIGINT NOT NULL,
    field         TEXT COLLATE "C" NOT NULL,
    old           TEXT COLLATE "C" NOT NULL,
    new           TEXT COLLATE "C" NOT NULL
);
CREATE INDEX fleet_event_service_point ON fleet_event (service_point, seq);
