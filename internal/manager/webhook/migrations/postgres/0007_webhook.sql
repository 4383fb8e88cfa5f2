-- What a webhook signs with, and how far it has come.
CREATE TABLE webhook (
    id        BIGINT PRIMARY KEY,
    version   BIGINT NOT NULL,
    secret    TEXT COLLATE "C" NOT NULL,
    position  TEXT COLLATE "C" NOT NULL,
    delivered BIGINT NOT NULL DEFAULT 0,
    failures  BIGINT NOT NULL DEFAULT 0,
    stopped   BIGINT NOT NULL DEFAULT 0,
    message   TEXT COLLATE "C" NOT NULL DEFAULT ''
);
