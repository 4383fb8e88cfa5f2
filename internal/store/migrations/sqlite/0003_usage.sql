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

-- What happened, to which resource and by whose change, in the shape of resources: the parent is the
-- source, the configuration the user.
CREATE TABLE event (
    id      INTEGER PRIMARY KEY,
    source  INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    body    TEXT NOT NULL
);
CREATE INDEX event_source ON event (source);
CREATE VIEW event_resource AS
    SELECT id, 'events' AS collection, 'Event' AS type, NULL AS name, source AS parent, user_id AS configuration,
           NULL AS low, NULL AS high, NULL AS key, id AS version, '' AS refs, body
    FROM event;

-- Which transaction took back which one.
CREATE TABLE reverting (
    txn     INTEGER PRIMARY KEY,
    undo    INTEGER NOT NULL
);
DROP VIEW transaction_resource;
CREATE VIEW transaction_resource AS
    SELECT t.id, 'transactions' AS collection, 'Transaction' AS type, t.operation AS name, t.user_id AS parent, 0 AS configuration,
           NULL AS low, NULL AS high, NULL AS key, t.id AS version,
           'user:' || t.user_id || CASE WHEN v.undo IS NULL THEN '' ELSE ',revertingTransaction:' || v.undo END AS refs, t.body
    FROM txn t LEFT JOIN reverting v ON v.txn = t.id;

-- The changes of transactions in the shape of resources; fieldUpdates has the images before and after.
CREATE VIEW operation_resource AS
    SELECT seq AS id, 'operations' AS collection, 'Operation' AS type, NULL AS name, txn AS parent, 0 AS configuration,
           NULL AS low, NULL AS high, NULL AS key, txn AS version, '' AS refs,
           '{"operationType":"' || CASE operation WHEN 'UPDATE' THEN 'CHANGE' ELSE operation END || '","resourceId":' || resource ||
           ',"resourceType":"' || json_extract(coalesce(after, before), '$.type') ||
           '","fieldUpdates":[' || coalesce(before, 'null') || ',' || coalesce(after, 'null') || ']}' AS body
    FROM change;
CREATE INDEX change_txn ON change (txn);
