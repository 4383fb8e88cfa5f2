-- The schema of sqlite/0014_hold.sql in PostgreSQL's words.
CREATE TABLE workflow_hold (
    request    BIGINT NOT NULL,
    collection TEXT COLLATE "C" NOT NULL,
    scope      BIGINT NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    high       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (request, collection, scope, key)
);
CREATE INDEX workflow_hold_key ON workflow_hold (collection, scope, key);

-- What requests ask for, as it was sent, and the token that it was asked with, where that belongs to no user.
CREATE TABLE workflow_asked (
    request BIGINT PRIMARY KEY,
    token   TEXT COLLATE "C" NOT NULL,
    asked   TEXT COLLATE "C" NOT NULL
);
