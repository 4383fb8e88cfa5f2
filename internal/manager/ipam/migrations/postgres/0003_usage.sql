-- The schema of sqlite/0003_usage.sql in PostgreSQL's words. What is in a container is the sum of its
-- rows here: updates add rows, because they would wait for each other at one, and sum them up now and then.
CREATE TABLE usage (
    container BIGINT NOT NULL,
    state     TEXT COLLATE "C" NOT NULL,
    n         BIGINT NOT NULL
);
INSERT INTO usage (container, state, n)
    SELECT parent, json_extract(body, '$.state'), count(*) FROM resource WHERE collection = 'addresses' GROUP BY 1, 2;
INSERT INTO usage (container, state, n)
    SELECT id, 'networks', CAST(1 AS BIGINT) << (32 - CAST(split_part(json_extract(body, '$.range'), '/', 2) AS INTEGER)) FROM resource WHERE type = 'IPv4Network';
WITH RECURSIVE up (network, container) AS (
    SELECT id, parent FROM resource WHERE collection = 'networks'
    UNION ALL
    SELECT up.network, r.parent FROM up JOIN resource r ON r.id = up.container WHERE r.collection = 'blocks')
INSERT INTO usage (container, state, n)
    SELECT up.container, u.state, sum(u.n) FROM up JOIN usage u ON u.container = up.network JOIN resource b ON b.id = up.container
    WHERE b.collection = 'blocks' GROUP BY 1, 2;
CREATE INDEX usage_container ON usage (container);
-- Rows come and go all the time: what is dead is swept up by number, not by share.
ALTER TABLE usage SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TABLE water (
    container BIGINT PRIMARY KEY,
    level     TEXT COLLATE "C" NOT NULL
);
