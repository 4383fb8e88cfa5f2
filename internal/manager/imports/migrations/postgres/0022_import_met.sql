-- The resources of the rows of an import that were worked off, each with where its row stands, until the import has ended.
CREATE TABLE import_met (
    import   BIGINT NOT NULL,
    resource BIGINT NOT NULL,
    at       TEXT NOT NULL,
    PRIMARY KEY (import, resource)
);
