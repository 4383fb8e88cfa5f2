-- What pending requests ask for, so that nobody else is given it (workflow/hold.go): space in a
-- configuration, from key to high, or, where high is empty, a name right below a resource.
CREATE TABLE workflow_hold (
    request    INTEGER NOT NULL,
    collection TEXT NOT NULL,
    scope      INTEGER NOT NULL,
    key        TEXT NOT NULL,
    high       TEXT NOT NULL,
    PRIMARY KEY (request, collection, scope, key)
) WITHOUT ROWID;
CREATE INDEX workflow_hold_key ON workflow_hold (collection, scope, key);

-- What requests ask for, as it was sent, and the token that it was asked with, where that belongs to no user.
CREATE TABLE workflow_asked (
    request INTEGER PRIMARY KEY,
    token   TEXT NOT NULL,
    asked   TEXT NOT NULL
);
