-- Every resource of the address manager. low and high are the span of a block, network or address:
-- one byte of family (4 or 6) and 16 bytes of address. key is the type's own look-up key: the
-- lower-cased absolute name of a zone or record. refs is "field:id,field:id" of the single references.
CREATE TABLE resource (
    id            INTEGER PRIMARY KEY,
    collection    TEXT NOT NULL,
    type          TEXT NOT NULL,
    name          TEXT,
    parent        INTEGER NOT NULL DEFAULT 0,
    configuration INTEGER NOT NULL DEFAULT 0,
    low           BLOB,
    high          BLOB,
    key           TEXT,
    version       INTEGER NOT NULL,
    refs          TEXT NOT NULL DEFAULT '',
    body          TEXT NOT NULL
);
CREATE INDEX resource_collection ON resource (collection);
CREATE INDEX resource_parent ON resource (parent, collection);
CREATE UNIQUE INDEX resource_sibling_span ON resource (parent, collection, low) WHERE low IS NOT NULL;
CREATE INDEX resource_span ON resource (configuration, collection, low) WHERE low IS NOT NULL;
CREATE INDEX resource_name ON resource (name) WHERE name IS NOT NULL;
CREATE INDEX resource_key ON resource (key) WHERE key IS NOT NULL;

CREATE TABLE reference (
    source INTEGER NOT NULL,
    field  TEXT NOT NULL,
    target INTEGER NOT NULL,
    PRIMARY KEY (source, field, target)
) WITHOUT ROWID;
CREATE INDEX reference_target ON reference (target, field);

-- History: one transaction, its changes with the image before and after. The changes of a
-- transaction are those from first to last, in the order of their numbers.
CREATE TABLE txn (
    id        INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    user_id   INTEGER NOT NULL,
    operation TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    body      TEXT NOT NULL
);
CREATE TABLE change (
    seq       INTEGER PRIMARY KEY,
    txn       INTEGER NOT NULL,
    resource  INTEGER NOT NULL,
    operation TEXT NOT NULL,
    before    TEXT,
    after     TEXT
);
CREATE INDEX change_resource ON change (resource, txn);

-- The numbers given out: no number above value was.
CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
