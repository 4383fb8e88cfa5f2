-- Answers kept for 24 hours for an Idempotency-Key.
CREATE TABLE idempotency (
    user_id  BIGINT NOT NULL,
    key      TEXT COLLATE "C" NOT NULL,
    request  TEXT COLLATE "C" NOT NULL,
    location TEXT COLLATE "C" NOT NULL,
    etag     TEXT COLLATE "C" NOT NULL,
    answer   BYTEA NOT NULL,
    created  BIGINT NOT NULL,
    PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_created ON idempotency (created);
