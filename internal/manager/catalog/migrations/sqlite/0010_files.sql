-- The contents of files, in parts of at most a MiB, by their SHA-256 sum: they never change.
CREATE TABLE file_part (
    hash   TEXT NOT NULL,
    number INTEGER NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (hash, number)
) WITHOUT ROWID;
