package store

import (
	"database/sql"
	"errors"
)

// conn is a connection in a snapshot or a transaction, of either database. Statements have ?
// placeholders.
type conn interface {
	// exec runs a statement and gives the number of rows it changed.
	exec(query string, args ...any) (int64, error)
	// later runs a statement, at the latest before the next one.
	execLater(query string, args ...any) error
	// bulk writes rows of a table.
	bulk(table string, columns []string, rows [][]any) error
	// each runs a query and calls fn at each of its rows.
	each(query string, args []any, fn func(row) error) error
	// list is each for answers that may be long: few rows of it are in memory at a time. short says that
	// it is not long.
	list(query string, args []any, short bool, fn func(row) error) error
	// damage lists what the database finds wrong with itself.
	findDamage() ([]string, error)
	// shielded runs fn, which only reads; where fn meets damage, the snapshot goes on behind it.
	runShielded(fn func() error) error
	// mark is a number that no number given out of that kind is above.
	mark(kind string) (int64, error)
	// setMark lets numbers go on behind the mark.
	setMark(kind string, mark int64) error
	// countOn lets the numbers that the database itself gives to rows go on behind those of the rows that were written with theirs.
	advanceSequences() error
	// speaks is the database's dialect.
	sqlDialect() *dialect
}

// row is a row of an answer, good until the next one.
type row interface {
	// scan reads the columns into pointers. NULL is a zero value where a destination has no other
	// way to say it.
	scan(dest ...any) error
	// resource reads the columns of resources into r, using the memory that r has.
	readResource(r *Resource) error
	// shown reads the columns of resources that are only to be shown.
	readShown(r *Resource) error
	// head reads the columns of heads.
	readHead() (Head, error)
	// values gives the columns as int64, string, []byte or nil.
	values() []any
}

// errFirst ends a query after its first row.
var errStop = errors.New("the first row was all that was wanted")

// first calls fn at the first row of a query; sql.ErrNoRows where there is none.
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

// Damage lists what the database finds wrong with itself.
func (tx *Tx) Damage() ([]string, error) { return tx.conn.findDamage() }

// Shielded runs fn, which only reads, and gives its error. Where that comes from a damaged place (IsDamage) the transaction goes on.
func (tx *Tx) Shielded(fn func() error) error { return tx.conn.runShielded(fn) }

// Mark gives a number that no number given out is above; kind is resource, txn or change.
func (tx *Tx) Mark(kind string) (int64, error) { return tx.conn.mark(kind) }
