-- When tokens and key sets were used last, to the hour, in seconds since 1970.
CREATE TABLE credential_used (
    id   TEXT COLLATE "C" PRIMARY KEY,
    used BIGINT NOT NULL
);
