-- Schedules whose backups are sent elsewhere: place is the directory with files that are still to be sent, empty where none are; made is when
-- the newest file was made that was sent (Unix milliseconds, 0 for none); fault is why the last attempt failed.
CREATE TABLE backup_remote (
    schedule INTEGER PRIMARY KEY,
    place    TEXT NOT NULL,
    made     INTEGER NOT NULL DEFAULT 0,
    fault    TEXT NOT NULL DEFAULT ''
);
