-- Events that a notification group is to be told of.
CREATE TABLE notice (
    receiver BIGINT NOT NULL,
    event    BIGINT NOT NULL,
    PRIMARY KEY (receiver, event)
);
