-- The keys by which secrets are sealed, each 32 bytes; the latest seals.
CREATE TABLE sealing_key (
    id      INTEGER PRIMARY KEY,
    key     BLOB NOT NULL,
    created INTEGER NOT NULL
);
