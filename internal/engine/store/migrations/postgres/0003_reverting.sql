CREATE TABLE reverting (
    txn  BIGINT PRIMARY KEY,
    undo BIGINT NOT NULL
);
