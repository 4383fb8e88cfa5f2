-- The resources of the rows of an import that were worked off, each with where its row stands, until the import has ended.
CREATE TABLE import_met (
    import   INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    at       TEXT NOT NULL,
    PRIMARY KEY (import, resource)
) WITHOUT ROWID;
