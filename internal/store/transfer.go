package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Table is a table as it is carried from one database to another.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	// key are how many of the first columns are its key.
	key int
	// since is the schema that brought it.
	since int
}

// Tables are all tables that are carried, whole: history and secrets included. Each table of the schema is
// either here or in Derived; a test holds the schema to that.
var Tables = []Table{
	{"resource", strings.Split(columns, ", "), 1, 1},
	{"reference", []string{"source", "field", "target"}, 3, 1},
	{"free", []string{"container", "low", "high"}, 2, 1},
	{"txn", []string{"id", "at", "user_id", "operation", "first", "last", "body"}, 1, 1},
	{"change", []string{"seq", "txn", "resource", "operation", "before", "after"}, 1, 1},
	{"credential", []string{"id", "kind", "name", "user_id", "role", "hash", "session", "created", "expires", "revoked"}, 1, 1},
	{"secret", []string{"name", "value"}, 1, 1},
	{"idempotency", []string{"user_id", "key", "request", "location", "etag", "answer", "created"}, 2, 1},
	{"service_point", []string{"id", "name", "description", "variant", "status", "update_status", "version", "target_version", "key_hash",
		"key_expires", "key_public", "certificates", "last_seen", "report", "desired", "created"}, 1, 1},
	{"fleet_event", []string{"service_point", "at", "field", "old", "new", "seq"}, 0, 1}, // its key is seq, the last
	{"event", []string{"id", "source", "user_id", "body"}, 1, 3},
	{"reverting", []string{"txn", "undo"}, 1, 3},
	{"water", []string{"container", "level"}, 1, 3},
	{"marker", []string{"name", "value"}, 1, 4},
}

// Derived are the tables that are not carried, with the reason: they follow from what is carried, or
// belong to one database alone.
var Derived = map[string]string{
	"usage":          "counted anew from the addresses",
	"counter":        "carried as marks",
	"lease":          "held by managers of this database",
	"origin":         "names this database",
	"filling":        "says that this database is being filled",
	"schema_version": "the schema's own",
}

// Marks are the numbers that none given out is above, by kind.
type Marks map[string]int64

var markKinds = []string{"resource", "txn", "change"}

// SchemaVersion is the version of the schema that this binary has.
func SchemaVersion() int {
	files, err := migrations.ReadDir("migrations/sqlite")
	if err != nil { // they are part of the binary
		panic(err)
	}
	return len(files)
}

// transferPage is how many rows are read, or written, at a time.
const transferPage = 500

// Dump reads everything in one snapshot: the marks first, then the rows table by table, in the order
// of their keys.
func (s *Store) Dump(ctx context.Context, begin func(Marks) error, emit func(t *Table, row []any) error) error {
	return s.View(ctx, func(tx *Tx) error {
		marks := Marks{}
		for _, kind := range markKinds {
			mark, err := tx.Mark(kind)
			if err != nil {
				return err
			}
			marks[kind] = mark
		}
		if err := begin(marks); err != nil {
			return err
		}
		for i := range Tables {
			if err := tx.dump(&Tables[i], nil, emit); err != nil {
				return fmt.Errorf("reading %s: %w", Tables[i].Name, err)
			}
		}
		return nil
	})
}

// keys are the columns by which a table is read in order.
func (t *Table) keys() []string {
	if t.key == 0 {
		return []string{"seq"}
	}
	return t.Columns[:t.key]
}

// keyOf gives the key of a row.
func (t *Table) keyOf(row []any) []any {
	if t.key == 0 {
		return row[len(row)-1:]
	}
	return row[:t.key]
}

// dump reads a table page by page, each behind the key of the one before, beginning behind after; nil
// means at its beginning.
func (tx *Tx) dump(t *Table, after []any, emit func(t *Table, row []any) error) error {
	names, key := strings.Join(t.Columns, ", "), strings.Join(t.keys(), ", ")
	page := fmt.Sprintf("ORDER BY %s LIMIT %d", key, transferPage)
	start := "SELECT " + names + " FROM " + t.Name + " " + page
	next := "SELECT " + names + " FROM " + t.Name + " WHERE (" + key + ") > (?" + strings.Repeat(", ?", len(t.keys())-1) + ") " + page
	for {
		query := next
		if after == nil {
			query = start
		}
		n := 0
		if err := tx.conn.each(query, after, func(r row) error {
			n++
			values := r.values()
			after = t.keyOf(values)
			return emit(t, values)
		}); err != nil {
			return err
		}
		if n < transferPage {
			return nil
		}
	}
}

// ErrNotEmpty is a target that has data already.
var ErrNotEmpty = errors.New("the target holds data already; restoring and migrating need an empty one")

// empty gives ErrNotEmpty where any table has a row.
func empty(c conn, schema int) error {
	for i := range Tables {
		if Tables[i].since > schema {
			continue
		}
		var n int64
		if err := c.each("SELECT count(*) FROM (SELECT 1 FROM "+Tables[i].Name+" LIMIT 1) t", nil,
			func(r row) error { return r.scan(&n) }); err != nil {
			return err
		}
		if n > 0 {
			return ErrNotEmpty
		}
	}
	return nil
}

// Load writes everything in one transaction: all of it is there in the end, or nothing. fill is given
// what takes the marks and the rows, in the order that Dump gives them.
func (s *Store) Load(ctx context.Context, fill func(mark func(Marks) error, add func(t *Table, row []any) error) error) error {
	load := func(c conn) error {
		if err := empty(c, s.schema()); err != nil {
			return err
		}
		l := &loader{c: c}
		if err := fill(func(m Marks) error { return setMarks(c, m) }, l.add); err != nil {
			return err
		}
		if err := l.flush(); err != nil || s.schema() < 3 { // older ones count when they are brought up to date
			return err
		}
		tx := s.begin(ctx, c, 0)
		tx.writing = true
		return recountUsage(tx)
	}
	if s.pg != nil {
		_, err := s.pg.once(ctx, locks{own: lockOfAll}, func(c *pgConn) error { return load(c) })
		s.news(nil)
		return unreachable(err)
	}
	err := s.Update(ctx, Author{}, func(tx *Tx) error { return load(tx.conn) })
	s.remark.Store(true) // the marks came with the data: they are read again
	s.news(nil)
	return err
}

// loader gathers rows of one table and writes them many at a time.
type loader struct {
	c    conn
	t    *Table
	rows [][]any
}

// setMarks lets numbers go on behind the marks.
func setMarks(c conn, m Marks) error {
	for _, kind := range markKinds {
		if err := c.setMark(kind, m[kind]); err != nil {
			return err
		}
	}
	return nil
}

// loadRows is how many rows are gathered.
const loadRows = 5000

func (l *loader) add(t *Table, row []any) error {
	if len(row) != len(t.Columns) {
		return fmt.Errorf("a row of %s has %d columns, want %d", t.Name, len(row), len(t.Columns))
	}
	if l.t != t || len(l.rows) == loadRows {
		if err := l.flush(); err != nil {
			return err
		}
	}
	l.t = t
	l.rows = append(l.rows, row)
	return nil
}

func (l *loader) flush() error {
	if len(l.rows) == 0 {
		return nil
	}
	err := l.c.bulk(l.t.Name, l.t.Columns, l.rows)
	l.rows = l.rows[:0]
	return err
}
