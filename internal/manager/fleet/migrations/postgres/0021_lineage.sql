-- The schema of sqlite/0021_lineage.sql in PostgreSQL's words.
CREATE TABLE deleted_service_point (id TEXT PRIMARY KEY);
CREATE TABLE lineage (
    service_point TEXT NOT NULL,
    node          BIGINT NOT NULL,
    process       TEXT NOT NULL,
    body          TEXT NOT NULL,
    PRIMARY KEY (service_point, node)
);
-- A backup that was restored left the numbers of events at their beginning.
SELECT setval(pg_get_serial_sequence('fleet_event', 'seq'), coalesce(max(seq), 0) + 1, false) FROM fleet_event;
