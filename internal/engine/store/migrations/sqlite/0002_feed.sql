-- Leases of background work that one manager at a time does. fence grows with every new holder; work
-- checks it in its own transaction, so that a holder that was late changes nothing.
CREATE TABLE lease (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    fence  INTEGER NOT NULL,
    until  INTEGER NOT NULL
) WITHOUT ROWID;

-- Where the change feed's positions belong: those of another database mean nothing here.
CREATE TABLE origin (id TEXT NOT NULL);
INSERT INTO origin (id) VALUES (lower(hex(randomblob(8))));

-- There while the database is being filled from another one: what that one was when it began. Until
-- the filling has ended nobody else may use it.
CREATE TABLE filling (source TEXT NOT NULL);
