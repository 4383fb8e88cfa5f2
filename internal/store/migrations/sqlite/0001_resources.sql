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

-- Free space per container (block or network), as closed intervals that never touch one another.
CREATE TABLE free (
    container INTEGER NOT NULL,
    low       BLOB NOT NULL,
    high      BLOB NOT NULL,
    PRIMARY KEY (container, low)
) WITHOUT ROWID;

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
-- The history in the shape of resources, so that it is listed and filtered by the same grammar.
CREATE VIEW transaction_resource AS
    SELECT id, 'transactions' AS collection, 'Transaction' AS type, operation AS name, user_id AS parent, 0 AS configuration,
           NULL AS low, NULL AS high, NULL AS key, id AS version, 'user:' || user_id AS refs, body
    FROM txn;

-- The numbers given out: no number above value was.
CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- Passwords, session tokens, bearer tokens, key sets and access tokens: never a secret, only hashes.
CREATE TABLE credential (
    id      TEXT PRIMARY KEY,
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    user_id INTEGER NOT NULL,
    role    TEXT NOT NULL,
    hash    TEXT NOT NULL,
    session INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL DEFAULT 0,
    revoked INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE UNIQUE INDEX credential_hash ON credential (kind, hash);
CREATE INDEX credential_user ON credential (user_id, kind);
CREATE INDEX credential_expires ON credential (expires);

-- Secrets of the manager itself: the authority's key.
CREATE TABLE secret (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

-- Answers kept for 24 hours for an Idempotency-Key.
CREATE TABLE idempotency (
    user_id  INTEGER NOT NULL,
    key      TEXT NOT NULL,
    request  TEXT NOT NULL,
    location TEXT NOT NULL,
    etag     TEXT NOT NULL,
    answer   BLOB NOT NULL,
    created  INTEGER NOT NULL,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created);

-- The fleet. A registration key is kept as its hash; key_public is the public key that used it.
CREATE TABLE service_point (
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    description  TEXT,
    variant      TEXT NOT NULL DEFAULT '',
    status       TEXT NOT NULL,
    update_status TEXT NOT NULL DEFAULT 'OK',
    version      TEXT NOT NULL DEFAULT '',
    target_version TEXT NOT NULL DEFAULT '',
    key_hash     TEXT NOT NULL UNIQUE,
    key_expires  INTEGER NOT NULL,
    key_public   TEXT NOT NULL DEFAULT '',
    certificates TEXT NOT NULL DEFAULT '',
    last_seen    INTEGER NOT NULL DEFAULT 0,
    report       TEXT NOT NULL DEFAULT '',
    desired      INTEGER NOT NULL DEFAULT 1,
    created      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE fleet_event (
    seq           INTEGER PRIMARY KEY,
    service_point TEXT NOT NULL,
    at            INTEGER NOT NULL,
    field         TEXT NOT NULL,
    old           TEXT NOT NULL,
    new           TEXT NOT NULL
);
CREATE INDEX fleet_event_service_point ON fleet_event (service_point, seq);
