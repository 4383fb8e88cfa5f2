-- Backups that were sent to a manager, in parts, until they are files of the directory that they were sent for; file is their resource.
CREATE TABLE backup_sent (
    file   INTEGER NOT NULL,
    number INTEGER NOT NULL,
    place  TEXT NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (file, number)
);
CREATE INDEX backup_sent_place ON backup_sent (place, file);
