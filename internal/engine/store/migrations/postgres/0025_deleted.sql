-- The deletions below a resource, for the history of a resource with its content.
CREATE INDEX change_deleted ON change (((before::json ->> 'parent')::bigint)) WHERE operation = 'DELETE';
