-- The chain over the history (store/chain.go): each link has the hash of the link before it and of one transaction with its changes. What
-- is committed and not chained yet is due.
CREATE TABLE history_link (
    place INTEGER PRIMARY KEY,
    txn   INTEGER NOT NULL UNIQUE,
    hash  BLOB NOT NULL
);
CREATE TABLE history_due (txn INTEGER PRIMARY KEY);
INSERT INTO history_due SELECT id FROM txn;

-- What the history is asked for: by time, user, operation, credential and address, each with the newest first.
CREATE INDEX txn_user ON txn (user_id);
CREATE INDEX txn_created ON txn (json_extract(body, '$."creationDateTime"'));
CREATE INDEX txn_operation ON txn (json_extract(body, '$."operation"'));
CREATE INDEX txn_credential ON txn (json_extract(body, '$."credential"'));
CREATE INDEX txn_remote ON txn (json_extract(body, '$."remoteAddress"'));
