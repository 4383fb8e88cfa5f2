-- The files of imports, in parts of at most a MiB, what their logs say, line by line, and who started them.
CREATE TABLE import_part (
    import INTEGER NOT NULL,
    number INTEGER NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (import, number)
) WITHOUT ROWID;
CREATE TABLE import_line (
    import INTEGER NOT NULL,
    number INTEGER NOT NULL,
    line   TEXT NOT NULL,
    PRIMARY KEY (import, number)
) WITHOUT ROWID;
CREATE TABLE import_starter (
    import  INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    token   TEXT NOT NULL,
    name    TEXT NOT NULL
);
