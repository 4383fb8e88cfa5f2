-- The trees of files that were deployed to servers: the newest revisions of each.
CREATE TABLE tftp_tree (
    server   INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    hash     TEXT NOT NULL,
    manifest BLOB NOT NULL,
    PRIMARY KEY (server, number)
) WITHOUT ROWID;
