-- The schema of sqlite/0001_resources.sql in PostgreSQL's words; that file says what each table is for.

-- json_extract and address_key are the functions of those names that the SQLite store has.
CREATE FUNCTION json_extract(body TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN body::json #>> string_to_array(replace(substr(path, 3), '"', ''), '.');
CREATE FUNCTION address_key(address TEXT) RETURNS BYTEA LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE a INET;
BEGIN
    a := address::inet;
    IF family(a) = 4 THEN
        RETURN '\x04000000000000000000000000'::bytea || substring(inet_send(a) FROM 5);
    END IF;
    RETURN '\x06'::bytea || substring(inet_send(a) FROM 5);
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- Every resource of the address manager. low and high are the span of a block, network or address:
-- one byte of family (4 or 6) and 16 bytes of address. key is the type's own look-up key: the
-- lower-cased absolute name of a zone or record. refs is "field:id,field:id" of the single references.
CREATE TABLE resource (
    id            BIGINT PRIMARY KEY,
    collection    TEXT COLLATE "C" NOT NULL,
    type          TEXT COLLATE "C" NOT NULL,
    name          TEXT COLLATE "C",
    parent        BIGINT NOT NULL DEFAULT 0,
    configuration BIGINT NOT NULL DEFAULT 0,
    low           BYTEA,
    high          BYTEA,
    key           TEXT COLLATE "C",
    version       BIGINT NOT NULL,
    refs          TEXT COLLATE "C" NOT NULL DEFAULT '',
    body          TEXT COLLATE "C" NOT NULL
);
CREATE INDEX resource_collection ON resource (collection);
CREATE INDEX resource_parent ON resource (parent, collection);
CREATE UNIQUE INDEX resource_sibling_span ON resource (parent, collection, low) WHERE low IS NOT NULL;
CREATE INDEX resource_span ON resource (configuration, collection, low) WHERE low IS NOT NULL;
CREATE INDEX resource_name ON resource (name) WHERE name IS NOT NULL;
CREATE INDEX resource_key ON resource (key) WHERE key IS NOT NULL;

CREATE TABLE reference (
    source BIGINT NOT NULL,
    field  TEXT COLLATE "C" NOT NULL,
    target BIGINT NOT NULL,
    PRIMARY KEY (source, field, target)
);
CREATE INDEX reference_target ON reference (target, field);

-- History: one transaction, its changes with the image before and after. The changes of a
-- transaction are those from first to last, in the order of their numbers.
CREATE TABLE txn (
    id        BIGINT PRIMARY KEY,
    at        BIGINT NOT NULL,
    user_id   BIGINT NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    first     BIGINT NOT NULL,
    last      BIGINT NOT NULL,
    body      TEXT COLLATE "C" NOT NULL
);
CREATE TABLE change (
    seq       BIGINT PRIMARY KEY,
    txn       BIGINT NOT NULL,
    resource  BIGINT NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    before    TEXT COLLATE "C",
    after     TEXT COLLATE "C"
);
CREATE INDEX change_resource ON change (resource, txn);
CREATE INDEX change_txn ON change (txn);

-- The numbers given out, in steps that a manager uses up by itself.
CREATE SEQUENCE number_resource MINVALUE 100000 START 100000 INCREMENT 256;
CREATE SEQUENCE number_txn MINVALUE 1 START 1 INCREMENT 256;
CREATE SEQUENCE number_change MINVALUE 1 START 1 INCREMENT 256;
