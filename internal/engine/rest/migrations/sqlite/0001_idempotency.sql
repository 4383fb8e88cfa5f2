-- Answers kept for 24 hours for an Idempotency-Key.
CREATE TABLE idempotency (
    user_id  INTEGER NOT NULL,
    key      TEXT NOT NULL,
    request  TEXT NOT NULL,
    location TEXT NOT NULL,
    etag     TEXT NOT NULL,
    answer   BLOB NOT NULL,
    created  INTEGER NOT NULL,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created);
