package store

import (
	"errors"
	"fmt"
	"strings"
)

// ErrBatch means that a batch of rows could not be written. The change may be repeated without WriteInBatches: its single statements then
// return the error at the row that causes it.
var ErrBatch = errors.New("batch of rows not written")

// batchAtOnce is the number of new rows of a table that are written together.
const batchAtOnce = 2000

// batchWriter is the connection of a change that writes its new rows in batches: before the next statement that names one of their tables,
// and at the latest before the commit.
type batchWriter struct {
	conn
	tables []batchedRows
	// failed is the error of the first batch that could not be written. Each later statement returns it as well, because a rule may ignore
	// it.
	failed error
}

// batchedRows are new rows of a table.
type batchedRows struct {
	table string
	rows  [][]any
}

// WriteInBatches makes the transaction write its new resources and history in batches instead of one by one. After ErrBatch the
// caller must roll the transaction back.
func (tx *Tx) WriteInBatches() {
	if _, ok := tx.conn.(*batchWriter); ok || !tx.writing {
		return
	}
	tx.conn = &batchWriter{conn: tx.conn, tables: []batchedRows{{table: "resource"}, {table: "change"}}}
}

// insert writes a row of one of the store's own tables, or adds it to the batch.
func (tx *Tx) insert(table, statement string, row ...any) error {
	g, ok := tx.conn.(*batchWriter)
	if !ok {
		return tx.Write(statement, row...)
	}
	if err := tx.requireWriting(); err != nil || g.failed != nil {
		return errors.Join(err, g.failed)
	}
	for i := range g.tables {
		if t := &g.tables[i]; t.table == table {
			if t.rows = append(t.rows, row); len(t.rows) >= batchAtOnce {
				return g.flush()
			}
			return nil
		}
	}
	return g.execLater(statement, row...)
}

// flush writes the batched rows.
func (g *batchWriter) flush() error {
	for i := range g.tables {
		t := &g.tables[i]
		if len(t.rows) == 0 || g.failed != nil {
			continue
		}
		if err := g.conn.bulk(t.table, tableColumns(t.table), t.rows); err != nil {
			g.failed = fmt.Errorf("%w: %w", ErrBatch, err)
		}
		t.rows = nil
	}
	return g.failed
}

// flushBefore writes the batched rows if a statement may read or write their tables. The views of the schema that read these tables have
// names that contain one of theirs.
func (g *batchWriter) flushBefore(statement string) error {
	if g.failed != nil {
		return g.failed
	}
	for _, t := range g.tables {
		if len(t.rows) > 0 && strings.Contains(statement, t.table) {
			return g.flush()
		}
	}
	return nil
}

func (g *batchWriter) exec(query string, args ...any) (int64, error) {
	if err := g.flushBefore(query); err != nil {
		return 0, err
	}
	return g.conn.exec(query, args...)
}

func (g *batchWriter) execLater(query string, args ...any) error {
	if err := g.flushBefore(query); err != nil {
		return err
	}
	return g.conn.execLater(query, args...)
}

func (g *batchWriter) bulk(table string, columns []string, rows [][]any) error {
	if err := g.flushBefore(table); err != nil {
		return err
	}
	return g.conn.bulk(table, columns, rows)
}

func (g *batchWriter) each(query string, args []any, fn func(row) error) error {
	if err := g.flushBefore(query); err != nil {
		return err
	}
	return g.conn.each(query, args, fn)
}

func (g *batchWriter) list(query string, args []any, short bool, fn func(row) error) error {
	if err := g.flushBefore(query); err != nil {
		return err
	}
	return g.conn.list(query, args, short, fn)
}

// prefetcher returns the connection's own way to read a resource; nil if it has none. Batched rows are written first.
func (tx *Tx) prefetcher() (prefetcher, error) {
	c := tx.conn
	if g, ok := c.(*batchWriter); ok {
		if _, ok := g.conn.(prefetcher); !ok {
			return nil, nil
		}
		if err := g.flush(); err != nil {
			return nil, err
		}
		c = g.conn
	}
	p, _ := c.(prefetcher)
	return p, nil
}

// flushBatch writes the batched rows at the end of a change.
func (tx *Tx) flushBatch() error {
	if g, ok := tx.conn.(*batchWriter); ok {
		return g.flush()
	}
	return nil
}
