-- What roles, options and zones contributed to the deployed content of a zone: the names, each with a hash (frame.go). The content of a zone
-- with the same frame does not have to be computed again.
CREATE TABLE dns_frame (
    zone TEXT PRIMARY KEY,
    data BLOB NOT NULL
);
-- The order in which queued changes are deployed (live.go): 0 for those of small transactions, 1 for those of large ones, 2 for marks of
-- withheld records, 3 for zones that are deployed as a whole.
ALTER TABLE dns_due ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;
UPDATE dns_due SET lane = 2 WHERE configuration < 0;
CREATE INDEX dns_due_age ON dns_due (lane, changed);
