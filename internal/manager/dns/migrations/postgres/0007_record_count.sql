-- The schema of sqlite/0007_record_count.sql in PostgreSQL's words. Several rows may stand for one number, which is their sum.
CREATE TABLE record_count (
    view BIGINT NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    n    BIGINT NOT NULL
);
INSERT INTO record_count (view, type, n)
    SELECT f.target, r.type, count(*) FROM resource r JOIN reference f ON f.source = r.parent AND f.field = 'view'
    WHERE r.collection = 'resourceRecords' GROUP BY 1, 2;
CREATE INDEX record_count_view ON record_count (view);
-- Rows come and go all the time: what is dead is swept up by number, not by share.
ALTER TABLE record_count SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
