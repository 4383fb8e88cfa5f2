-- Events that nobody has looked at yet who tells others of them.
CREATE TABLE event_due (
    event INTEGER PRIMARY KEY
);
