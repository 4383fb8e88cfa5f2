UPDATE credential SET user_id = 0 WHERE kind IN ('bearer', 'keyset', 'access');
