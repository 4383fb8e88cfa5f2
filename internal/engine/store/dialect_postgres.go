package store

import (
	"strconv"
	"strings"
	"sync"
)

var postgresDialect = dialect{
	content: "SELECT x.id FROM content CROSS JOIN LATERAL (SELECT r.id FROM resource r WHERE r.parent = content.id UNION ALL" +
		" SELECT c.resource FROM change c WHERE c.operation = 'DELETE' AND (c.before::json ->> 'parent')::bigint = content.id) x",
	feed: "SELECT id, at, user_id, operation, body, committed, first, last FROM txn WHERE (committed, id) > (?, ?)" +
		" AND committed < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY committed, id LIMIT ?",
	changes: "txn t JOIN change c ON c.txn = t.id WHERE (t.committed, t.id) > (?, ?)",
	oldest: "SELECT t.id, t.at, t.committed FROM history_link l JOIN txn t ON t.id = l.txn" +
		" WHERE t.committed < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY l.place LIMIT 1",
	newest: "SELECT id, at, committed FROM txn WHERE committed < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY " +
		"committed DESC, id DESC LIMIT 1",
	// Each step uses the primary key. Without OFFSET 0 the planner would scan all resources, because it expects many rows from a
	// recursion.
	withAncestors: func(condition, collections string) string {
		return "WITH RECURSIVE up (id, parent) AS (SELECT id, parent FROM resource WHERE " + condition + " UNION" +
			" SELECT r.id, r.parent FROM up CROSS JOIN LATERAL (SELECT id, parent, collection FROM resource WHERE id = up.parent OFFSET 0) r" +
			" WHERE r.collection IN (" + collections + ")) "
	},
	lineage: "SELECT r." + strings.ReplaceAll(columns, ", ", ", r.") +
		" FROM up CROSS JOIN LATERAL (SELECT * FROM resource WHERE id = up.id OFFSET 0) r",
	hasTable:   "SELECT to_regclass(?) IS NOT NULL",
	indexes:    "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename = 'resource'",
	roundTrips: true,
	member: func(b *builder, row string, f Field) {
		if f.Kind == Numeral {
			text := Field{Kind: Bool, Path: f.Path} // without a collation
			b.WriteString("CASE WHEN ")
			text.json(b, row)
			b.WriteString(" ~ '^-?(0|[1-9][0-9]{0,19})([.][0-9]{1,18})?$' AND length(")
			text.json(b, row)
			b.WriteString(") <= 20 THEN ")
			text.json(b, row)
			b.WriteString("::numeric END")
			return
		}
		if f.Indexed && f.Kind == Number {
			b.WriteString("(json_extract(" + row + ".body, '" + path(f.Path) + "')::numeric)")
			return
		}
		if f.Indexed { // PostgreSQL rejects a cast to JSON in an index, because it is not immutable
			b.WriteString("(json_extract(" + row + ".body, '" + path(f.Path) + `') COLLATE "C")`)
			return
		}
		b.WriteString("(" + row + ".body::json #>> ")
		if isPlainPath(f.Path) {
			b.WriteString("'{" + strings.Join(f.Path, ",") + "}'")
		} else {
			b.WriteString("string_to_array(")
			b.arg(strings.Join(f.Path, "\x1f"))
			b.WriteString(", chr(31))")
		}
		b.WriteByte(')')
		switch f.Kind {
		case Number:
			b.WriteString("::numeric")
		case Text:
			b.WriteString(` COLLATE "C"`)
		}
	},
	contains: func(b *builder, column func(), text string) {
		b.WriteString("position(")
		b.arg(text)
		b.WriteString(" IN (")
		column()
		b.WriteString(")) > 0")
	},
	startsWith: func(b *builder, column func(), text string) {
		b.WriteString("starts_with(")
		column()
		b.WriteString(", ")
		b.arg(text)
		b.WriteString(")")
	},
	endsWith: func(b *builder, column func(), text string) {
		b.WriteString("right(")
		column()
		b.WriteString(", length(")
		b.arg(text)
		b.WriteString(")) = ")
		b.arg(text)
	},
	nulls: [2]string{" NULLS FIRST", " NULLS LAST"},
	truth: func(v bool) any { return strconv.FormatBool(v) },
	// One array is planned faster than a list of many numbers.
	numberList: [2]string{" = ANY ('{", "}'::bigint[])"},
	perRow:     " OFFSET 0",
	hidden: func(kind FieldKind) [2]string {
		switch kind {
		case ColumnID, ColumnInt, Number, Numeral:
			return [2]string{"(", " + 0)"}
		case ColumnSpan:
			return [2]string{"(", ` || '\x'::bytea)`}
		}
		return [2]string{"(", " || '')"}
	},
	// A comparison of rows can use only one index. Otherwise the planner would scan the low ends of a whole collection.
	containersOf: func(scopes string, steps []walkStep, of string) string {
		var k []string
		for _, s := range steps {
			k = append(k, "("+quoteNames(s.above, s.below)+")")
		}
		return aroundStart(scopes) + " JOIN (VALUES " + strings.Join(k, ", ") + ") k (above, below) ON k.above = a.collection" +
			" CROSS JOIN LATERAL (SELECT s.id, s.high, s.parent, s.collection FROM resource s WHERE (s.parent, s.collection, s.low) <=" +
			" (a.id, k.below, ?) AND s.low IS NOT NULL ORDER BY s.parent DESC, s.collection DESC, s.low DESC LIMIT 1) c" +
			" WHERE c.parent = a.id AND c.collection = k.below AND c.high >= ?)" + endAround(of)
	},
	fragment: postgresFragment,
	size: func(b *builder, text func()) {
		b.WriteString("CASE WHEN position('/' IN ")
		text()
		b.WriteString(") > 0 THEN split_part(")
		text()
		b.WriteString(", '/', 2)::bigint END")
	},
}

// placeholders caches statements with ? replaced by $1, $2 and so on.
type placeholders struct {
	mu    sync.RWMutex
	known map[string]string
}

func (p *placeholders) numberPlaceholders(query string) string {
	p.mu.RLock()
	text, ok := p.known[query]
	p.mu.RUnlock()
	if ok {
		return text
	}
	var b strings.Builder
	n, quoted := 0, false
	for i := range len(query) {
		switch c := query[i]; {
		case c == '\'':
			quoted = !quoted
			b.WriteByte(c)
		case c == '?' && !quoted:
			n++
			b.WriteString("$" + strconv.Itoa(n))
		default:
			b.WriteByte(c)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) > 4*maxStatements {
		p.known = map[string]string{}
	}
	p.known[query] = b.String()
	return b.String()
}
