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
