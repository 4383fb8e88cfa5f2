-- Free space per container (block or network), as closed intervals that never touch one another.
CREATE TABLE free (
    container INTEGER NOT NULL,
    low       BLOB NOT NULL,
    high      BLOB NOT NULL,
    PRIMARY KEY (container, low)
) WITHOUT ROWID;
