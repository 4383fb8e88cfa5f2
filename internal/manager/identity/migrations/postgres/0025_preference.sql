-- Preferences of users at the console: names with JSON objects. changed is in seconds since 1970.
CREATE TABLE user_preference (
    user_id BIGINT NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    value   TEXT NOT NULL,
    changed BIGINT NOT NULL,
    PRIMARY KEY (user_id, name)
);
