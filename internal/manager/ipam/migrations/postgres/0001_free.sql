-- Free space per container (block or network), as closed intervals that never touch one another.
CREATE TABLE free (
    container BIGINT NOT NULL,
    low       BYTEA NOT NULL,
    high      BYTEA NOT NULL,
    PRIMARY KEY (container, low)
);
