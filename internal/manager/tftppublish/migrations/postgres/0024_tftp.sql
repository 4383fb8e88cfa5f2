-- The trees of files that were deployed to servers: the newest revisions of each.
CREATE TABLE tftp_tree (
    server   BIGINT NOT NULL,
    number   BIGINT NOT NULL,
    hash     TEXT NOT NULL,
    manifest BYTEA NOT NULL,
    PRIMARY KEY (server, number)
);
