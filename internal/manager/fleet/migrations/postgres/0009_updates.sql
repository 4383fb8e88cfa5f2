-- Updates of the program itself: which order of a release it is, why the last one failed, and what the machine can run.
ALTER TABLE service_point ADD COLUMN update_asked BIGINT NOT NULL DEFAULT 0;
ALTER TABLE service_point ADD COLUMN update_reason TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE service_point ADD COLUMN platform TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE service_point ADD COLUMN base_version TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX service_point_status ON service_point (status, name);
CREATE INDEX service_point_version ON service_point (version, name);
CREATE INDEX service_point_update ON service_point (update_status, name) WHERE update_status <> 'OK';

-- What operators call service points by, beside their names.
CREATE TABLE label (
    service_point TEXT COLLATE "C" NOT NULL,
    name          TEXT COLLATE "C" NOT NULL,
    value         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (service_point, name)
);
CREATE INDEX label_value ON label (name, value, service_point);

-- Updates of many service points, in waves.
CREATE TABLE rollout (
    id      TEXT COLLATE "C" PRIMARY KEY,
    created BIGINT NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    -- What was asked for, in JSON.
    plan    TEXT COLLATE "C" NOT NULL,
    status  TEXT COLLATE "C" NOT NULL,
    reason  TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- The wave that is under way, from 0 on.
    wave    BIGINT NOT NULL DEFAULT 0,
    -- How many had failed when it was last resumed.
    excused BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX rollout_created ON rollout (created, id);
CREATE INDEX rollout_status ON rollout (status, id);

CREATE TABLE rollout_member (
    rollout       TEXT COLLATE "C" NOT NULL,
    service_point TEXT COLLATE "C" NOT NULL,
    wave          BIGINT NOT NULL,
    state         TEXT COLLATE "C" NOT NULL,
    -- The version from before.
    before        TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- When it got its order, in Unix milliseconds; 0 before.
    ordered       BIGINT NOT NULL DEFAULT 0,
    reason        TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (rollout, service_point)
);
CREATE INDEX rollout_member_state ON rollout_member (rollout, state, wave, service_point);

-- Ends of logs that somebody waits for; logs_asked says that a service point has not been asked for one yet.
ALTER TABLE service_point ADD COLUMN logs_asked BIGINT NOT NULL DEFAULT 0;
CREATE TABLE wanted_log (
    id            TEXT COLLATE "C" PRIMARY KEY,
    service_point TEXT COLLATE "C" NOT NULL,
    application   TEXT COLLATE "C" NOT NULL,
    bytes         BIGINT NOT NULL,
    -- When it was asked for, in Unix milliseconds.
    asked         BIGINT NOT NULL,
    -- What came; answered is 0 before.
    answered      BIGINT NOT NULL DEFAULT 0,
    problem       TEXT COLLATE "C" NOT NULL DEFAULT '',
    body          TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX wanted_log_service_point ON wanted_log (service_point);

-- Settings of a Service Point v4: the NTP servers that it asks, a JSON array. What users call an application.
ALTER TABLE service_point ADD COLUMN ntp_servers TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE application ADD COLUMN title TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX service_point_variant ON service_point (variant, name);

-- How a service point tells routers of anycast addresses, a JSON object; empty where it does not. Which addresses an application has, a JSON
-- array, and what it may take of its machine, a JSON object.
ALTER TABLE service_point ADD COLUMN anycast TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE application ADD COLUMN anycast TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE application ADD COLUMN limits TEXT COLLATE "C" NOT NULL DEFAULT '{}';

-- How many nodes a service point may have and, once that has been more than one (several is 1), those that it has: what each has reported
-- itself. The report of the service point is made of theirs.
ALTER TABLE service_point ADD COLUMN node_count BIGINT NOT NULL DEFAULT 1;
ALTER TABLE service_point ADD COLUMN several BIGINT NOT NULL DEFAULT 0;
CREATE TABLE node (
    service_point TEXT COLLATE "C" NOT NULL,
    number        BIGINT NOT NULL,
    -- The key pair that it enrolled with; empty where the node was taken away. No certificate of an earlier generation is good.
    key_public    TEXT COLLATE "C" NOT NULL,
    generation    BIGINT NOT NULL DEFAULT 0,
    acknowledged  BIGINT NOT NULL DEFAULT 0,
    -- In Unix milliseconds.
    last_seen     BIGINT NOT NULL DEFAULT 0,
    connected     BIGINT NOT NULL DEFAULT 0,
    sequence      BIGINT NOT NULL DEFAULT 0,
    digest        TEXT COLLATE "C" NOT NULL DEFAULT '',
    body          TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (service_point, number)
);
CREATE INDEX node_connected ON node (last_seen) WHERE connected = 1;
