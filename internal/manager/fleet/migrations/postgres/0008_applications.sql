-- What changes often is kept apart from what a service point is: when it was last heard of, and what it said of itself.
CREATE TABLE presence (
    service_point TEXT COLLATE "C" PRIMARY KEY,
    last_seen     BIGINT NOT NULL,
    -- 1 as long as it is CONNECTED.
    connected     BIGINT NOT NULL
);
CREATE INDEX presence_connected ON presence (last_seen) WHERE connected = 1;

CREATE TABLE report (
    service_point TEXT COLLATE "C" PRIMARY KEY,
    sequence      BIGINT NOT NULL,
    digest        TEXT COLLATE "C" NOT NULL,
    body          TEXT COLLATE "C" NOT NULL
);

INSERT INTO presence (service_point, last_seen, connected) SELECT id, last_seen, 1 FROM service_point WHERE last_seen > 0;
INSERT INTO report (service_point, sequence, digest, body) SELECT id, 0, '', report FROM service_point WHERE report <> '';
ALTER TABLE service_point DROP COLUMN last_seen;
ALTER TABLE service_point DROP COLUMN report;
-- Certificates say which generation they are of: those of this one and of later ones are good.
ALTER TABLE service_point DROP COLUMN certificates;
ALTER TABLE service_point ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;
-- The generation of the desired state that it has on its disk.
ALTER TABLE service_point ADD COLUMN acknowledged BIGINT NOT NULL DEFAULT 0;

-- What service points are to run, and what was last heard of that. The desired state of a service point follows from these rows; its
-- generation is service_point.desired.
CREATE TABLE application (
    id             TEXT COLLATE "C" PRIMARY KEY,
    service_point  TEXT COLLATE "C" NOT NULL,
    name           TEXT COLLATE "C" NOT NULL,
    version        TEXT COLLATE "C" NOT NULL,
    target_version TEXT COLLATE "C" NOT NULL DEFAULT '',
    status         TEXT COLLATE "C" NOT NULL,
    update_status  TEXT COLLATE "C" NOT NULL DEFAULT '',
    conditions     TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    configuration  TEXT COLLATE "C" NOT NULL,
    -- The generation that it was last changed in.
    generation     BIGINT NOT NULL,
    created        BIGINT NOT NULL,
    -- When it became DELETED, in Unix milliseconds; 0 before.
    deleted        BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX application_service_point ON application (service_point, created);
CREATE INDEX application_deleted ON application (deleted) WHERE deleted > 0;

-- Registration keys that were somebody's, and are not to be given to anybody else while they could be used: an Idempotency-Key asks for
-- the same one again.
CREATE TABLE spent_key (
    key_hash TEXT COLLATE "C" PRIMARY KEY,
    until    BIGINT NOT NULL
);
CREATE INDEX spent_key_until ON spent_key (until);

-- Why it moved, where that is known.
ALTER TABLE fleet_event ADD COLUMN reason TEXT COLLATE "C" NOT NULL DEFAULT '';
