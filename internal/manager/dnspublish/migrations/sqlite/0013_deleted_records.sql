-- The records that deployments took away, as they were last: the columns of resource.
CREATE TABLE deployment_deleted (
    id            INTEGER PRIMARY KEY,
    collection    TEXT NOT NULL,
    type          TEXT NOT NULL,
    name          TEXT,
    parent        INTEGER NOT NULL,
    configuration INTEGER NOT NULL,
    low           BLOB,
    high          BLOB,
    key           TEXT,
    version       INTEGER NOT NULL,
    refs          TEXT NOT NULL,
    body          TEXT NOT NULL
);
CREATE INDEX deployment_record_record ON deployment_record (record);
