package store

import (
	"database/sql"
	"errors"
)

// conn is a connection of either database, in a snapshot or a transaction. Statements use ? placeholders.
type conn interface {
	// exec runs a statement and returns the number of rows it changed.
	exec(query string, args ...any) (int64, error)
	// execLater runs a statement at once or, at the latest, before the next one.
	execLater(query string, args ...any) error
	// bulk writes rows to a table.
	bulk(table string, columns []string, rows [][]any) error
	// each runs a query and calls fn for each of its rows.
	each(query string, args []any, fn func(row) error) error
	// list is each for large results: only a few rows are in memory at a time. short reports that the result is small.
	list(query string, args []any, short bool, fn func(row) error) error
	// findDamage returns the faults that the database finds in its own storage.
	findDamage() ([]string, error)
	// runShielded runs fn, which only reads. The snapshot remains usable if fn encounters damage.
	runShielded(fn func() error) error
	// mark returns a number of a kind that no assigned number exceeds.
	mark(kind string) (int64, error)
	// setMark continues the numbers of a kind after the mark.
	setMark(kind string, mark int64) error
	// advanceSequences continues the numbers that the database assigns to rows after those of rows written with explicit numbers.
	advanceSequences() error
	// sqlDialect returns the SQL dialect of the database.
	sqlDialect() *dialect
}

// row is a row of a result. It is valid until the next row is read.
type row interface {
	// scan reads the columns into pointers. NULL becomes the zero value unless the destination can represent NULL.
	scan(dest ...any) error
	// readResource reads the columns of a resource into r and reuses the memory of r.
	readResource(r *Resource) error
	// readShown reads the columns of a resource that is only shown.
	readShown(r *Resource) error
	// readHead reads the columns of a head.
	readHead() (Head, error)
	// values returns the columns as int64, string, []byte or nil.
	values() []any
}

// errStop stops a query after its first row.
var errStop = errors.New("stop after the first row")

// queryFirst calls fn for the first row of a query. It returns sql.ErrNoRows if there are no rows.
func queryFirst(c conn, query string, args []any, fn func(row) error) error {
	err := c.each(query, args, func(r row) error {
		if err := fn(r); err != nil {
			return err
		}
		return errStop
	})
	switch {
	case err == nil:
		return sql.ErrNoRows
	case errors.Is(err, errStop):
		return nil
	}
	return err
}

// Damage returns the faults that the database finds in its own storage.
func (tx *Tx) Damage() ([]string, error) { return tx.conn.findDamage() }

// RunShielded runs fn, which only reads, and returns its error. The transaction remains usable after an error caused by damage (IsDamage).
func (tx *Tx) RunShielded(fn func() error) error { return tx.conn.runShielded(fn) }

// Mark returns a number that no assigned number exceeds. kind is resource, txn or change.
func (tx *Tx) Mark(kind string) (int64, error) { return tx.conn.mark(kind) }
