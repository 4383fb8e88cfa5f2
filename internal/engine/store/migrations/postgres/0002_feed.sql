-- The schema of sqlite/0002_feed.sql in PostgreSQL's words, and what orders the change feed: numbers
-- are given out before the commit, so that a lower one may become visible after a higher one. The
-- number of PostgreSQL's own transaction is known to be settled once all below it have ended.
CREATE TABLE lease (
    name   TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    fence  BIGINT NOT NULL,
    until  BIGINT NOT NULL
);
CREATE TABLE origin (id TEXT COLLATE "C" NOT NULL);
INSERT INTO origin (id) VALUES (replace(gen_random_uuid()::text, '-', ''));

CREATE TABLE filling (source TEXT COLLATE "C" NOT NULL);

ALTER TABLE txn ADD COLUMN committed BIGINT NOT NULL DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX txn_committed ON txn (committed, id);
