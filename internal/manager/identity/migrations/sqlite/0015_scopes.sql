-- What a token or key set is good for, beside its role: words with a blank between them; empty: everything.
ALTER TABLE credential ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
