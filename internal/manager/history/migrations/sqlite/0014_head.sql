-- Signed heads of the chain over the history (history/head.go), and the keys that sign them: private is sealed.
CREATE TABLE history_head (
    place     INTEGER PRIMARY KEY,
    txn       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    public    BLOB NOT NULL,
    signature BLOB NOT NULL
);
CREATE TABLE history_key (
    id      INTEGER PRIMARY KEY,
    public  BLOB NOT NULL,
    private TEXT NOT NULL
);

-- Up to where retention has taken the history, as the manager that did so has signed it.
CREATE TABLE history_base (
    place     INTEGER PRIMARY KEY,
    txn       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    public    BLOB NOT NULL,
    signature BLOB NOT NULL
);
