-- Updates of the program itself: which order of a release it is, why the last one failed, and what the machine can run.
ALTER TABLE service_point ADD COLUMN update_asked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE service_point ADD COLUMN update_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE service_point ADD COLUMN platform TEXT NOT NULL DEFAULT '';
ALTER TABLE service_point ADD COLUMN base_version TEXT NOT NULL DEFAULT '';
CREATE INDEX service_point_status ON service_point (status, name);
CREATE INDEX service_point_version ON service_point (version, name);
CREATE INDEX service_point_update ON service_point (update_status, name) WHERE update_status <> 'OK';

-- What operators call service points by, beside their names.
CREATE TABLE label (
    service_point TEXT NOT NULL,
    name          TEXT NOT NULL,
    value         TEXT NOT NULL,
    PRIMARY KEY (service_point, name)
) WITHOUT ROWID;
CREATE INDEX label_value ON label (name, value, service_point);

-- Updates of many service points, in waves.
CREATE TABLE rollout (
    id      TEXT PRIMARY KEY,
    created INTEGER NOT NULL,
    version TEXT NOT NULL,
    -- What was asked for, in JSON.
    plan    TEXT NOT NULL,
    status  TEXT NOT NULL,
    reason  TEXT NOT NULL DEFAULT '',
    -- The wave that is under way, from 0 on.
    wave    INTEGER NOT NULL DEFAULT 0,
    -- How many had failed when it was last resumed.
    excused INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX rollout_created ON rollout (created, id);
CREATE INDEX rollout_status ON rollout (status, id);

CREATE TABLE rollout_member (
    rollout       TEXT NOT NULL,
    service_point TEXT NOT NULL,
    wave          INTEGER NOT NULL,
    state         TEXT NOT NULL,
    -- The version from before.
    before        TEXT NOT NULL DEFAULT '',
    -- When it got its order, in Unix milliseconds; 0 before.
    ordered       INTEGER NOT NULL DEFAULT 0,
    reason        TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (rollout, service_point)
) WITHOUT ROWID;
CREATE INDEX rollout_member_state ON rollout_member (rollout, state, wave, service_point);

-- Ends of logs that somebody waits for; logs_asked says that a service point has not been asked for one yet.
ALTER TABLE service_point ADD COLUMN logs_asked INTEGER NOT NULL DEFAULT 0;
CREATE TABLE wanted_log (
    id            TEXT PRIMARY KEY,
    service_point TEXT NOT NULL,
    application   TEXT NOT NULL,
    bytes         INTEGER NOT NULL,
    -- When it was asked for, in Unix milliseconds.
    asked         INTEGER NOT NULL,
    -- What came; answered is 0 before.
    answered      INTEGER NOT NULL DEFAULT 0,
    problem       TEXT NOT NULL DEFAULT '',
    body          TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX wanted_log_service_point ON wanted_log (service_point);

-- Settings of a Service Point v4: the NTP servers that it asks, a JSON array. What users call an application.
ALTER TABLE service_point ADD COLUMN ntp_servers TEXT NOT NULL DEFAULT '[]';
ALTER TABLE application ADD COLUMN title TEXT NOT NULL DEFAULT '';
CREATE INDEX service_point_variant ON service_point (variant, name);

-- How a service point tells routers of anycast addresses, a JSON object; empty where it does not. Which addresses an application has, a JSON
-- array, and what it may take of its machine, a JSON object.
ALTER TABLE service_point ADD COLUMN anycast TEXT NOT NULL DEFAULT '';
ALTER TABLE application ADD COLUMN anycast TEXT NOT NULL DEFAULT '[]';
ALTER TABLE application ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';

-- How many nodes a service point may have and, once that has been more than one (several is 1), those that it has: what each has reported
-- itself. The report of the service point is made of theirs.
ALTER TABLE service_point ADD COLUMN node_count INTEGER NOT NULL DEFAULT 1;
ALTER TABLE service_point ADD COLUMN several INTEGER NOT NULL DEFAULT 0;
CREATE TABLE node (
    service_point TEXT NOT NULL,
    number        INTEGER NOT NULL,
    -- The key pair that it enrolled with; empty where the node was taken away. No certificate of an earlier generation is good.
    key_public    TEXT NOT NULL,
    generation    INTEGER NOT NULL DEFAULT 0,
    acknowledged  INTEGER NOT NULL DEFAULT 0,
    -- In Unix milliseconds.
    last_seen     INTEGER NOT NULL DEFAULT 0,
    connected     INTEGER NOT NULL DEFAULT 0,
    sequence      INTEGER NOT NULL DEFAULT 0,
    digest        TEXT NOT NULL DEFAULT '',
    body          TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (service_point, number)
) WITHOUT ROWID;
CREATE INDEX node_connected ON node (last_seen) WHERE connected = 1;
