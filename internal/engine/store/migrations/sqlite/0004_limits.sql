-- The version that goes with postgres/0004_limits.sql.

-- What the store has to remember of itself, such as the horizon of the history.
CREATE TABLE marker (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
