-- The schema of sqlite/0014_chain.sql in PostgreSQL's words.
CREATE TABLE history_link (
    place BIGINT PRIMARY KEY,
    txn   BIGINT NOT NULL UNIQUE,
    hash  BYTEA NOT NULL
);
CREATE TABLE history_due (txn BIGINT PRIMARY KEY);
INSERT INTO history_due SELECT id FROM txn;

CREATE INDEX txn_user ON txn (user_id, id);
CREATE INDEX txn_created ON txn ((json_extract(body, '$.creationDateTime') COLLATE "C") NULLS FIRST, id);
CREATE INDEX txn_operation ON txn ((json_extract(body, '$.operation') COLLATE "C") NULLS FIRST, id);
CREATE INDEX txn_credential ON txn ((json_extract(body, '$.credential') COLLATE "C") NULLS FIRST, id);
CREATE INDEX txn_remote ON txn ((json_extract(body, '$.remoteAddress') COLLATE "C") NULLS FIRST, id);
