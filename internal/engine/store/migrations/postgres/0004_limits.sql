-- address_key without a block that catches errors: such a block is a transaction inside of the
-- transaction, which no parallel worker may begin. Texts are cast that are addresses for certain.
CREATE OR REPLACE FUNCTION address_key(address TEXT) RETURNS BYTEA LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN address ~ '^(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\.(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){3}$'
            THEN '\x04000000000000000000000000'::bytea || substring(inet_send(address::inet) FROM 5)
        WHEN address ~* '^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$'
            OR address ~* '^([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?::([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?$' AND length(address) - length(replace(address, ':', '')) <= 7
            THEN '\x06'::bytea || substring(inet_send(address::inet) FROM 5)
    END
$$;

-- What a change asks first: whether the schema is the one that it knows how to write.
CREATE FUNCTION require_schema(wanted BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT max(version) FROM schema_version) <> wanted THEN
        RAISE EXCEPTION 'the schema is another one than %', wanted USING ERRCODE = 'PTSCH';
    END IF;
END $$;

CREATE TABLE marker (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);
