-- When schedules are due next, and were last, in Unix milliseconds, by what the version of the schedule says; 0 is never. since is when it was
-- said when they are due: what would have been before does not count.
CREATE TABLE timetable (
    schedule INTEGER PRIMARY KEY,
    version  INTEGER NOT NULL,
    next     INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    since    INTEGER NOT NULL
);
