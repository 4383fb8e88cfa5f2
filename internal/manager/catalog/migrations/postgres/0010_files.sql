-- The contents of files, in parts of at most a MiB, by their SHA-256 sum: they never change.
CREATE TABLE file_part (
    hash   TEXT NOT NULL,
    number BIGINT NOT NULL,
    data   BYTEA NOT NULL,
    PRIMARY KEY (hash, number)
);
