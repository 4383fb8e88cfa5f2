-- Uploads of backups, by the schedule and the directory that the files lie in: pending is 1 while files are still to be uploaded, made is when
-- the newest file was made that was uploaded (Unix milliseconds, 0 for none), fault is why the last attempt failed.
CREATE TABLE backup_remote (
    schedule BIGINT NOT NULL,
    place    TEXT NOT NULL,
    pending  BIGINT NOT NULL DEFAULT 0,
    made     BIGINT NOT NULL DEFAULT 0,
    fault    TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (schedule, place)
);
