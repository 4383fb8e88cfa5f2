-- Passwords, session tokens, bearer tokens, key sets and access tokens: never a secret, only hashes.
CREATE TABLE credential (
    id      TEXT PRIMARY KEY,
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    user_id INTEGER NOT NULL,
    role    TEXT NOT NULL,
    hash    TEXT NOT NULL,
    session INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL DEFAULT 0,
    revoked INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE UNIQUE INDEX credential_hash ON credential (kind, hash);
CREATE INDEX credential_user ON credential (user_id, kind);
CREATE INDEX credential_expires ON credential (expires);
