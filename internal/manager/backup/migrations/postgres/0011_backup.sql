-- Backups that are to be made now, each by its schedule, and how often that was asked; and backup files that were deleted and whose bytes still lie in a directory.
CREATE TABLE backup_due (
    schedule BIGINT PRIMARY KEY,
    asked    BIGINT NOT NULL
);
CREATE TABLE backup_gone (
    place TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (place, name)
);
