-- What changes often is kept apart from what a service point is: when it was last heard of, and what it said of itself.
CREATE TABLE presence (
    service_point TEXT PRIMARY KEY,
    last_seen     INTEGER NOT NULL,
    -- 1 as long as it is CONNECTED.
    connected     INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX presence_connected ON presence (last_seen) WHERE connected = 1;

CREATE TABLE report (
    service_point TEXT PRIMARY KEY,
    sequence      INTEGER NOT NULL,
    digest        TEXT NOT NULL,
    body          TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO presence (service_point, last_seen, connected) SELECT id, last_seen, 1 FROM service_point WHERE last_seen > 0;
INSERT INTO report (service_point, sequence, digest, body) SELECT id, 0, '', report FROM service_point WHERE report <> '';
ALTER TABLE service_point DROP COLUMN last_seen;
ALTER TABLE service_point DROP COLUMN report;
-- Certificates say which generation they are of: those of this one and of later ones are good.
ALTER TABLE service_point DROP COLUMN certificates;
ALTER TABLE service_point ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
