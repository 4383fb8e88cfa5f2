-- Which transaction took back which one.
CREATE TABLE reverting (
    txn     INTEGER PRIMARY KEY,
    undo    INTEGER NOT NULL
);
CREATE INDEX change_txn ON change (txn);
