-- Service points that were deleted: their machines are told so for ever, and end what they run.
CREATE TABLE deleted_service_point (id TEXT PRIMARY KEY) WITHOUT ROWID;
-- Which processes have answered as a node of a service point (internal/manager/fleet/lineage.go): process is the one that does now, body the JSON
-- of a lineage.
CREATE TABLE lineage (
    service_point TEXT NOT NULL,
    node          INTEGER NOT NULL,
    process       TEXT NOT NULL,
    body          TEXT NOT NULL,
    PRIMARY KEY (service_point, node)
) WITHOUT ROWID;
