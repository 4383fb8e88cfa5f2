-- Backups that are to be made now, each by its schedule, and backup files that were deleted and whose bytes still lie on a machine.
CREATE TABLE backup_due (
    schedule BIGINT PRIMARY KEY
);
CREATE TABLE backup_gone (
    host TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (host, name)
);
