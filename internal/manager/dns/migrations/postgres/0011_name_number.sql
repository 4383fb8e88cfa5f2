-- How far the counters of naming policies are: the last number that a NamingPolicyIncrementalValue gave. It is kept beside the value's row, so
-- that neither history nor undo takes it back.
CREATE TABLE name_number (
  value BIGINT PRIMARY KEY,
  last BIGINT NOT NULL
);
