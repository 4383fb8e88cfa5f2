-- The history in the shape of resources, so that it is listed and filtered by the same grammar.
CREATE VIEW transaction_resource AS
    SELECT id, 'transactions' AS collection, 'Transaction' AS type, operation AS name, user_id AS parent, 0 AS configuration,
           NULL AS low, NULL AS high, NULL AS key, id AS version, 'user:' || user_id AS refs, body
    FROM txn;
