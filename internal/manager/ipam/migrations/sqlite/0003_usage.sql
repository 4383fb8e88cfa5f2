-- How many addresses of each state lie in a network and, at any depth, in a block. The state 'networks'
-- counts the addresses that the IPv4 networks there take up.
CREATE TABLE usage (
    container INTEGER NOT NULL,
    state     TEXT NOT NULL,
    n         INTEGER NOT NULL,
    PRIMARY KEY (container, state)
) WITHOUT ROWID;
INSERT INTO usage (container, state, n)
    SELECT parent, json_extract(body, '$.state'), count(*) FROM resource WHERE collection = 'addresses' GROUP BY 1, 2;
INSERT INTO usage (container, state, n)
    SELECT id, 'networks', CAST(1 AS BIGINT) << (32 - CAST(substr(json_extract(body, '$.range'), instr(json_extract(body, '$.range'), '/') + 1) AS INTEGER)) FROM resource WHERE type = 'IPv4Network';
WITH RECURSIVE up (network, container) AS (
    SELECT id, parent FROM resource WHERE collection = 'networks'
    UNION ALL
    SELECT up.network, r.parent FROM up JOIN resource r ON r.id = up.container WHERE r.collection = 'blocks')
INSERT INTO usage (container, state, n)
    SELECT up.container, u.state, sum(u.n) FROM up JOIN usage u ON u.container = up.network JOIN resource b ON b.id = up.container
    WHERE b.collection = 'blocks' GROUP BY 1, 2;

-- Blocks and networks whose usage is above their high water mark, or below their low one.
CREATE TABLE water (
    container INTEGER PRIMARY KEY,
    level     TEXT NOT NULL
);
