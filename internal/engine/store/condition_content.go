package store

// TouchingContent is true for the transactions that changed the resource or a resource below it: one that is below it now, or was when it
// was deleted. The index change_deleted finds the deleted ones.
type TouchingContent struct{ Resource int64 }

func (e TouchingContent) sql(b *builder, row string) {
	b.WriteString(row + ".id IN (WITH RECURSIVE content (id) AS (SELECT CAST(")
	b.arg(e.Resource)
	b.WriteString(" AS BIGINT) UNION " + b.content + ") SELECT txn FROM change JOIN content ON change.resource = content.id)")
}
