-- The indexes of sqlite/0005_questions.sql, in PostgreSQL's words: the number stands in each of them.
DROP INDEX resource_name;
CREATE INDEX resource_name ON resource (collection, name NULLS FIRST, id);
DROP INDEX resource_key;
CREATE INDEX resource_key ON resource (key, configuration) WHERE key IS NOT NULL;
CREATE INDEX resource_key_order ON resource (collection, key NULLS FIRST, id) WHERE low IS NULL;
CREATE INDEX resource_low ON resource (collection, low, id) WHERE low IS NOT NULL;
CREATE INDEX resource_scope ON resource (configuration, collection, id);
DROP INDEX resource_collection;
CREATE INDEX resource_collection ON resource (collection, id);
DROP INDEX resource_parent;
CREATE INDEX resource_parent ON resource (parent, collection, id);
DROP INDEX reference_target;
CREATE INDEX reference_target ON reference (target, field, source);

-- How many resources lie right below a parent, or, below -1, anywhere. Several rows may stand for one number, which is
-- their sum: changes side by side would wait for one another.
CREATE TABLE total (
    parent     BIGINT NOT NULL,
    collection TEXT NOT NULL,
    type       TEXT NOT NULL,
    n          BIGINT NOT NULL
);
INSERT INTO total SELECT parent, collection, type, count(*) FROM resource GROUP BY 1, 2, 3;
INSERT INTO total SELECT -1, collection, type, count(*) FROM resource GROUP BY 2, 3;
CREATE INDEX total_parent ON total (parent, collection);
