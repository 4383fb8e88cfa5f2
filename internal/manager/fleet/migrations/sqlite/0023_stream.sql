-- How far the records of a source at a service point were applied (internal/manager/fleet/stream.go): next is the number of the record that is
-- expected next, lost how many its spools gave up.
CREATE TABLE stream (
    service_point TEXT NOT NULL,
    node          INTEGER NOT NULL,
    application   TEXT NOT NULL,
    kind          TEXT NOT NULL,
    spool         TEXT NOT NULL,
    next          INTEGER NOT NULL,
    lost          INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (service_point, node, application, kind)
) WITHOUT ROWID;
