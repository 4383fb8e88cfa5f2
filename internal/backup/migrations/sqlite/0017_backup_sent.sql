-- Backups that were sent to a manager, by the directory that they become files of, in parts, until they are.
CREATE TABLE backup_sent (
    place  TEXT NOT NULL,
    name   TEXT NOT NULL,
    number INTEGER NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (place, name, number)
);
