-- Preferences of users at the console: names with JSON objects. changed is in seconds since 1970.
CREATE TABLE user_preference (
    user_id INTEGER NOT NULL,
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    changed INTEGER NOT NULL,
    PRIMARY KEY (user_id, name)
);
