-- The version that goes with postgres/0004_limits.sql.

-- Tokens and key sets are principals of their own: what they may do does not end with who made them.
-- maker is who made one, for people to read.
ALTER TABLE credential ADD COLUMN maker TEXT NOT NULL DEFAULT '';
-- What is old is found by its time.
CREATE INDEX txn_at ON txn (at);
