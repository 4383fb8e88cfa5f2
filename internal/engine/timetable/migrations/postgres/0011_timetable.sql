-- When schedules are due next, and were last, in Unix milliseconds, by what the version of the schedule says; 0 is never. since is when it was
-- said when they are due: what would have been before does not count.
CREATE TABLE timetable (
    schedule BIGINT PRIMARY KEY,
    version  BIGINT NOT NULL,
    next     BIGINT NOT NULL,
    last     BIGINT NOT NULL,
    since    BIGINT NOT NULL
);
