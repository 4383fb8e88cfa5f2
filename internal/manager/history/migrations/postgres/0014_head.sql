-- The schema of sqlite/0014_head.sql in PostgreSQL's words.
CREATE TABLE history_head (
    place     BIGINT PRIMARY KEY,
    txn       BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    hash      BYTEA NOT NULL,
    public    BYTEA NOT NULL,
    signature BYTEA NOT NULL
);
CREATE TABLE history_key (
    id      BIGINT PRIMARY KEY,
    public  BYTEA NOT NULL,
    private TEXT NOT NULL
);

-- Up to where retention has taken the history, as the manager that did so has signed it.
CREATE TABLE history_base (
    place     BIGINT PRIMARY KEY,
    txn       BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    hash      BYTEA NOT NULL,
    public    BYTEA NOT NULL,
    signature BYTEA NOT NULL
);
