-- What pending requests ask for, so that nobody else is given it (workflow/hold.go): a name or an address right below a resource.
CREATE TABLE workflow_hold (
    request    INTEGER NOT NULL,
    collection TEXT NOT NULL,
    parent     INTEGER NOT NULL,
    key        TEXT NOT NULL,
    PRIMARY KEY (request, collection, parent, key)
) WITHOUT ROWID;
CREATE INDEX workflow_hold_key ON workflow_hold (collection, parent, key);

-- What requests ask for, as it was sent, and the token that it was asked with, where that belongs to no user.
CREATE TABLE workflow_asked (
    request INTEGER PRIMARY KEY,
    token   TEXT NOT NULL,
    asked   TEXT NOT NULL
);
