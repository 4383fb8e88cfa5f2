-- Indexes for what is asked most (spec.md section 8). Those by which lists are ordered begin with the collection, which every list
-- has, and all end with the row's number, which SQLite puts there by itself: what is equal comes in its order, without sorting.
-- Which fields they are of stands in Field.indexed (store/access.go).
DROP INDEX resource_name;
CREATE INDEX resource_name ON resource (collection, name);
DROP INDEX resource_key;
CREATE INDEX resource_key ON resource (key, configuration) WHERE key IS NOT NULL;
CREATE INDEX resource_key_order ON resource (collection, key) WHERE low IS NULL;
CREATE INDEX resource_low ON resource (collection, low) WHERE low IS NOT NULL;
CREATE INDEX resource_scope ON resource (configuration, collection);

-- How many resources lie right below a parent, or, below -1, anywhere.
CREATE TABLE total (
    parent     INTEGER NOT NULL,
    collection TEXT NOT NULL,
    type       TEXT NOT NULL,
    n          INTEGER NOT NULL,
    PRIMARY KEY (parent, collection, type)
) WITHOUT ROWID;
INSERT INTO total SELECT parent, collection, type, count(*) FROM resource GROUP BY 1, 2, 3;
INSERT INTO total SELECT -1, collection, type, count(*) FROM resource GROUP BY 2, 3;
