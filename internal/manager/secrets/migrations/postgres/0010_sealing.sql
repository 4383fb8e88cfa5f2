-- The keys by which secrets are sealed, each 32 bytes; the latest seals.
CREATE TABLE sealing_key (
    id      BIGINT PRIMARY KEY,
    key     BYTEA NOT NULL,
    created BIGINT NOT NULL
);
