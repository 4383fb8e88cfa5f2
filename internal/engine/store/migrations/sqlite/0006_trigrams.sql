-- The index of what stands anywhere in a text (store/trigram.go), and the resources that it does not have as they are. A manager that
-- begins makes the index anew with the texts that its layout searches.
CREATE TABLE trigram_due (id INTEGER PRIMARY KEY);
CREATE VIRTUAL TABLE trigram USING fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1');
INSERT INTO trigram_due SELECT id FROM resource;
