-- How many records of each type lie in the zones of a view, at any depth.
CREATE TABLE record_count (
    view INTEGER NOT NULL,
    type TEXT NOT NULL,
    n    INTEGER NOT NULL,
    PRIMARY KEY (view, type)
) WITHOUT ROWID;
INSERT INTO record_count (view, type, n)
    SELECT f.target, r.type, count(*) FROM resource r JOIN reference f ON f.source = r.parent AND f.field = 'view'
    WHERE r.collection = 'resourceRecords' GROUP BY 1, 2;
