-- What a webhook signs with, and how far it has come.
CREATE TABLE webhook (
    id        INTEGER PRIMARY KEY,
    version   INTEGER NOT NULL,
    secret    TEXT NOT NULL,
    position  TEXT NOT NULL,
    delivered INTEGER NOT NULL DEFAULT 0,
    failures  INTEGER NOT NULL DEFAULT 0,
    stopped   INTEGER NOT NULL DEFAULT 0,
    message   TEXT NOT NULL DEFAULT ''
);
