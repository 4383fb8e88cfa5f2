-- Tokens and key sets that were made on the command line are principals of their own: they belong to
-- no user, and do not go with one.
UPDATE credential SET user_id = 0 WHERE kind IN ('bearer', 'keyset', 'access');
