-- When schedules are due next, and were last, in Unix milliseconds, by what the version of the schedule says; 0 is never.
CREATE TABLE timetable (
    schedule BIGINT PRIMARY KEY,
    version  BIGINT NOT NULL,
    next     BIGINT NOT NULL,
    last     BIGINT NOT NULL
);
