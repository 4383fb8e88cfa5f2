-- When schedules are due next, and were last, in Unix milliseconds, by what the version of the schedule says; 0 is never.
CREATE TABLE timetable (
    schedule INTEGER PRIMARY KEY,
    version  INTEGER NOT NULL,
    next     INTEGER NOT NULL,
    last     INTEGER NOT NULL
);
