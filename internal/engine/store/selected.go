package store

import "strings"

// Selected is true for the resources whose ids a query of an extension selects. Query has a question mark for each of Args. It is written
// for SQLite: on PostgreSQL, the type BLOB is written BYTEA.
type Selected struct {
	Query string
	Args  []any
}

func (e Selected) sql(b *builder, row string) {
	query := e.Query
	if b.roundTrips {
		query = strings.ReplaceAll(query, " AS BLOB)", " AS BYTEA)")
	}
	b.args = append(b.args, e.Args...)
	b.WriteString(row + ".id IN (" + query + ")")
}
