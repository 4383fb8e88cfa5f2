-- Events that a notification group is to be told of.
CREATE TABLE notice (
    receiver INTEGER NOT NULL,
    event    INTEGER NOT NULL,
    PRIMARY KEY (receiver, event)
);
