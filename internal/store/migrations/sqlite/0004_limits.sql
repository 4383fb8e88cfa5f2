-- The version that goes with postgres/0004_limits.sql.

-- Tokens and key sets that were made on the command line are principals of their own: they belong to
-- no user, and do not go with one.
UPDATE credential SET user_id = 0 WHERE kind IN ('bearer', 'keyset', 'access');
-- What the store has to remember of itself, such as the horizon of the history.
CREATE TABLE marker (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
-- Answers were found by the clients' keys, and told apart by a hash that anybody could try: they are not kept.
DELETE FROM idempotency;
