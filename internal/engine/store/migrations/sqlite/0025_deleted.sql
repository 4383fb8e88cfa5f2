-- The deletions below a resource, for the history of a resource with its content.
CREATE INDEX change_deleted ON change (CAST(json_extract(before, '$.parent') AS INTEGER)) WHERE operation = 'DELETE';
