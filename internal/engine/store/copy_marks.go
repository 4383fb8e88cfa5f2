package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Marks are numbers, by kind, that no assigned number exceeds.
type Marks map[string]int64

var markKinds = []string{"resource", "txn", "change"}

// transferPage is the number of rows per read.
const transferPage = 500

// Dump reads all copied tables in one snapshot. It calls begin with the marks, then emit for the rows, table by table, in the order of
// their keys.
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
		for _, t := range s.layout.ListCarried() {
			if err := tx.dump(t, nil, emit); err != nil {
				return fmt.Errorf("read %s: %w", t.Name, err)
			}
		}
		return nil
	})
}

// keys returns the columns of the key. Dump orders the rows of a table by them.
func (t *Table) keys() []string {
	if t.Key == 0 {
		return t.Columns[len(t.Columns)-1:]
	}
	return t.Columns[:t.Key]
}

// keyOf returns the key of a row.
func (t *Table) keyOf(row []any) []any {
	if t.Key == 0 {
		return row[len(row)-1:]
	}
	return row[:t.Key]
}

// dump reads a table page by page in the order of its key, starting after the key after. nil means from the start.
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

// ErrNotEmpty is returned if the target of a restore or a migration contains data.
var ErrNotEmpty = errors.New("the target already contains data; restore and migrate into an empty database")

// checkEmpty returns ErrNotEmpty if a copied table has a row. Tables that do not exist in an older schema are skipped.
func (l *Layout) checkEmpty(c conn) error {
	for _, t := range l.ListCarried() {
		exists, err := hasTable(c, t.Name)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		var n int64
		if err := c.each("SELECT count(*) FROM (SELECT 1 FROM "+t.Name+" LIMIT 1) t", nil,
			func(r row) error { return r.scan(&n) }); err != nil {
			return err
		}
		if n > 0 {
			return ErrNotEmpty
		}
	}
	return nil
}

// hasTable reports whether the database has a table.
func hasTable(c conn, name string) (exists bool, err error) {
	err = c.each(c.sqlDialect().hasTable, []any{name}, func(r row) error { return r.scan(&exists) })
	return exists, err
}

// rebuild recreates the derived tables, and continues the numbers that the database assigns after the copied rows. Derived tables that do
// not exist in an older schema are created by their migration.
func (tx *Tx) rebuild() error {
	if err := tx.conn.advanceSequences(); err != nil {
		return fmt.Errorf("advance the counters: %w", err)
	}
	totals := &Extension{Name: "totals", Tables: []Table{totalSums.Table}, Rebuild: recountTotals}
	trigrams := &Extension{Name: "trigrams", Tables: []Table{pendingTextTable}, Rebuild: reindexTexts}
	for _, e := range append([]*Extension{totals, trigrams}, tx.store.layout.Extensions...) {
		if e.Rebuild == nil {
			continue
		}
		if complete, err := tx.hasTables(e); err != nil {
			return err
		} else if !complete {
			continue
		}
		if err := e.Rebuild(tx); err != nil {
			return fmt.Errorf("rebuild %s: %w", e.Name, err)
		}
	}
	return nil
}

// HasTables reports whether the database has all tables of an extension. An older schema, which is being copied, may lack some.
func (tx *Tx) HasTables(extension string) (bool, error) {
	for _, e := range tx.store.layout.Extensions {
		if e.Name == extension {
			return tx.hasTables(e)
		}
	}
	return false, nil
}

func (tx *Tx) hasTables(e *Extension) (bool, error) {
	for _, t := range e.Tables {
		if exists, err := hasTable(tx.conn, t.Name); err != nil || !exists {
			return false, err
		}
	}
	return true, nil
}

// Load writes everything in one transaction, completely or not at all. It calls fill with functions that write the marks and the rows, in
// the order of Dump.
func (s *Store) Load(ctx context.Context, fill func(mark func(Marks) error, add func(t *Table, row []any) error) error) error {
	load := func(c conn) error {
		if err := s.layout.checkEmpty(c); err != nil {
			return err
		}
		l := &loader{c: c, schema: s.schema}
		if err := fill(func(m Marks) error { return setMarks(c, m) }, l.add); err != nil {
			return err
		}
		if err := l.flush(); err != nil {
			return err
		}
		tx := s.newTx(ctx, c, 0)
		tx.writing = true
		return tx.rebuild()
	}
	err := s.engine.fill(ctx, load)
	s.engine.afterFill()
	s.recordForeignCommit(nil)
	return err
}

// loader collects rows of one table and writes them in batches.
type loader struct {
	c conn
	// schema is the schema version of the database.
	schema int
	t      *Table
	rows   [][]any
}

// setMarks continues the numbers after the marks.
func setMarks(c conn, m Marks) error {
	for _, kind := range markKinds {
		if err := c.setMark(kind, m[kind]); err != nil {
			return err
		}
	}
	return nil
}

// loadRows is the number of rows that the loader collects before it writes them.
const loadRows = 5000

func (l *loader) add(t *Table, row []any) error {
	if want := len(t.columnsAt(l.schema)); len(row) != want {
		return fmt.Errorf("a row of %s has %d columns instead of %d", t.Name, len(row), want)
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
	err := l.c.bulk(l.t.Name, l.t.columnsAt(l.schema), l.rows)
	l.rows = l.rows[:0]
	return err
}
