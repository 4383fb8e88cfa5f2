-- The schema of sqlite/0023_stream.sql in PostgreSQL's words.
CREATE TABLE stream (
    service_point TEXT NOT NULL,
    node          BIGINT NOT NULL,
    application   TEXT NOT NULL,
    kind          TEXT NOT NULL,
    spool         TEXT NOT NULL,
    next          BIGINT NOT NULL,
    lost          BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (service_point, node, application, kind)
);
