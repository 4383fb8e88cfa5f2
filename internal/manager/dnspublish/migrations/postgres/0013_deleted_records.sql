-- The records that deployments took away, as they were last: the columns of resource.
CREATE TABLE deployment_deleted (
    id            BIGINT PRIMARY KEY,
    collection    TEXT COLLATE "C" NOT NULL,
    type          TEXT COLLATE "C" NOT NULL,
    name          TEXT COLLATE "C",
    parent        BIGINT NOT NULL,
    configuration BIGINT NOT NULL,
    low           BYTEA,
    high          BYTEA,
    key           TEXT COLLATE "C",
    version       BIGINT NOT NULL,
    refs          TEXT COLLATE "C" NOT NULL,
    body          TEXT COLLATE "C" NOT NULL
);
CREATE INDEX deployment_record_record ON deployment_record (record);
