-- Passwords, session tokens, bearer tokens, key sets and access tokens: never a secret, only hashes.
CREATE TABLE credential (
    id      TEXT COLLATE "C" PRIMARY KEY,
    kind    TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    user_id BIGINT NOT NULL,
    role    TEXT COLLATE "C" NOT NULL,
    hash    TEXT COLLATE "C" NOT NULL,
    session BIGINT NOT NULL DEFAULT 0,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL DEFAULT 0,
    revoked BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX credential_hash ON credential (kind, hash);
CREATE INDEX credential_user ON credential (user_id, kind);
CREATE INDEX credential_expires ON credential (expires);
