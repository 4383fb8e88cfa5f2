-- The files of imports, in parts of at most a MiB, what their logs say, line by line, and who started them.
CREATE TABLE import_part (
    import BIGINT NOT NULL,
    number BIGINT NOT NULL,
    data   BYTEA NOT NULL,
    PRIMARY KEY (import, number)
);
CREATE TABLE import_line (
    import BIGINT NOT NULL,
    number BIGINT NOT NULL,
    line   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (import, number)
);
CREATE TABLE import_starter (
    import  BIGINT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    token   TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL
);
