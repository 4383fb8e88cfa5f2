package store

import (
	"strconv"
	"strings"
)

// path returns a JSON path in SQLite's syntax.
func path(steps []string) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, step := range steps {
		b.WriteString("." + strconv.Quote(step))
	}
	return b.String()
}

var sqliteDialect = dialect{
	content: "SELECT r.id FROM content JOIN resource r ON r.parent = content.id UNION SELECT c.resource FROM content JOIN change c ON" +
		" CAST(json_extract(c.before, '$.parent') AS INTEGER) = content.id AND c.operation = 'DELETE'",
	feed:    "SELECT id, at, user_id, operation, body, 0, first, last FROM txn WHERE 0 <= ? AND id > ? ORDER BY id LIMIT ?",
	changes: "txn t CROSS JOIN change c ON c.txn = t.id WHERE 0 <= ? AND t.id > ?",
	oldest:  "SELECT t.id, t.at, 0 FROM history_link l JOIN txn t ON t.id = l.txn ORDER BY l.place LIMIT 1",
	newest:  "SELECT id, at, 0 FROM txn ORDER BY id DESC LIMIT 1",
	withAncestors: func(condition, collections string) string {
		return "WITH RECURSIVE up (id, parent) AS (SELECT id, parent FROM resource WHERE " + condition + " UNION" +
			" SELECT r.id, r.parent FROM up JOIN resource r ON r.id = up.parent WHERE r.collection IN (" + collections + ")) "
	},
	lineage:  "SELECT " + columns + " FROM resource WHERE id IN (SELECT id FROM up)",
	indexes:  "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'resource'",
	hasTable: "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?",
	member: func(b *builder, row string, f Field) {
		if f.Kind == Numeral {
			text := Field{Kind: Text, Path: f.Path}
			b.WriteString("CASE WHEN json_valid(")
			text.json(b, row)
			b.WriteString(") AND length(")
			text.json(b, row)
			b.WriteString(") <= 20 AND (") // as the PostgreSQL expression: no white space, no exponent
			text.json(b, row)
			b.WriteString(" || '') NOT GLOB '*[^-.0-9]*' THEN CASE WHEN json_type(")
			text.json(b, row)
			b.WriteString(") IN ('integer', 'real') THEN CAST(")
			text.json(b, row)
			b.WriteString(" AS NUMERIC) END END")
			return
		}
		b.WriteString("json_extract(" + row + ".body, ")
		// Paths of declared fields are constants, so that the statement can be reused and can use an index. A member name that a client
		// chose is an argument.
		if isPlainPath(f.Path) {
			b.WriteString("'" + path(f.Path) + "'")
		} else {
			b.arg(path(f.Path))
		}
		b.WriteByte(')')
	},
	contains: func(b *builder, column func(), text string) {
		b.WriteString("instr(")
		column()
		b.WriteString(", ")
		b.arg(text)
		b.WriteString(") > 0")
	},
	startsWith: func(b *builder, column func(), text string) {
		b.WriteString("substr(")
		column()
		b.WriteString(", 1, length(")
		b.arg(text)
		b.WriteString(")) = ")
		b.arg(text)
	},
	endsWith: func(b *builder, column func(), text string) {
		b.WriteString("substr(")
		column()
		b.WriteString(", -length(")
		b.arg(text)
		b.WriteString(")) = ")
		b.arg(text)
	},
	numberList: [2]string{" IN (", ")"},
	truth: func(v bool) any { // json_extract returns 1 and 0
		if v {
			return 1
		}
		return 0
	},
	hidden: func(FieldKind) [2]string { return [2]string{"+", ""} },
	containersOf: func(scopes string, steps []walkStep, of string) string {
		var k []string
		for _, s := range steps {
			k = append(k, "SELECT "+quoteNames(s.above)+" AS above, "+quoteNames(s.below)+" AS below")
		}
		return aroundStart(scopes) + " CROSS JOIN (" + strings.Join(k, " UNION ALL ") + ") k CROSS JOIN resource c" +
			" WHERE k.above = a.collection AND c.id = (SELECT s.id FROM resource s WHERE s.parent = a.id AND s.collection = k.below" +
			" AND s.low IS NOT NULL AND s.low <= ? ORDER BY s.low DESC LIMIT 1) AND c.high >= ?)" + endAround(of)
	},
	fragment: func(b *builder, row string, f Fragment) {
		b.WriteString(row + ".id IN (")
		if f.known {
			b.WriteString("SELECT value FROM json_each(")
			b.arg("[" + idList(f.found) + "]")
			b.WriteByte(')')
		} else {
			b.fragments(b, f)
		}
		b.WriteByte(')')
	},
	fragments: func(b *builder, f Fragment) {
		b.WriteString("SELECT rowid FROM trigram WHERE trigram MATCH ")
		b.arg(f.match())
		b.WriteString(" UNION ALL SELECT id FROM trigram_due")
	},
	size: func(b *builder, text func()) {
		b.WriteString("CASE WHEN instr(")
		text()
		b.WriteString(", '/') > 0 THEN CAST(substr(")
		text()
		b.WriteString(", instr(")
		text()
		b.WriteString(", '/') + 1) AS INTEGER) END")
	},
}
