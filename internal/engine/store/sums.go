package store

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Sums is a table of counters that are kept in step with rows. The last column is the number; the others are the key. On PostgreSQL,
// concurrent changes would wait for one another at a shared row. There each change adds a row, and a counter is the sum of its rows. For
// each counter that a change touches, it merges the rows with probability 1/foldEvery, except for rows that another change is merging.
type Sums struct {
	Table Table
	// insert adds one row; more adds another row to the same statement; into adds the number to an existing row. drop deletes a row that
	// has become 0. fold merges the rows of a counter. readPrefix reads the numbers under a key without its last column.
	insert, more, into, drop, fold, readPrefix string
}

// Sum is a number to add to the counter with the given key.
type Sum struct {
	Key []any
	N   int64
}

// foldEvery is the mean number of changes of a counter between two merges of its rows. Up to bulkSums numbers are inserted one by one. On
// SQLite a statement inserts sumsAtOnce of them.
const (
	foldEvery  = 64
	bulkSums   = 16
	sumsAtOnce = 2
)

// NewSums returns the Sums of a table. Its key must be all columns but the last one.
func NewSums(t Table) *Sums {
	keys := t.Columns[:t.Key]
	names, key := strings.Join(t.Columns, ", "), strings.Join(keys, ", ")
	n, is := t.Columns[t.Key], strings.Join(keys, " = ? AND ")+" = ?"
	marks := "(" + strings.Repeat("?, ", t.Key) + "?)"
	last := keys[len(keys)-1]
	return &Sums{Table: t,
		readPrefix: "SELECT " + last + ", CAST(sum(" + n + ") AS BIGINT) FROM " + t.Name + " WHERE " +
			strings.Join(keys[:len(keys)-1], " = ? AND ") + " = ? GROUP BY " + last,
		insert: "INSERT INTO " + t.Name + " (" + names + ") VALUES " + marks,
		more:   ", " + marks,
		into:   " ON CONFLICT (" + key + ") DO UPDATE SET " + n + " = " + t.Name + "." + n + " + excluded." + n,
		drop:   "DELETE FROM " + t.Name + " WHERE " + is + " AND " + n + " = 0",
		fold: "WITH old AS (DELETE FROM " + t.Name + " WHERE ctid = ANY (ARRAY(SELECT ctid FROM " + t.Name + " WHERE " + is +
			" FOR UPDATE SKIP LOCKED)) RETURNING " + names + ") INSERT INTO " + t.Name + " (" + names + ") SELECT " + key + ", sum(" + n +
			") FROM old GROUP BY " + key + " HAVING sum(" + n + ") <> 0"}
}

// Add adds to counters. The caller must sort sums by key, so that concurrent changes do not deadlock.
func (s *Sums) Add(tx *Tx, sums []Sum) error {
	if tx.RoundTrips() {
		return s.append(tx, sums)
	}
	for part := range slices.Chunk(sums, sumsAtOnce) {
		var args []any
		for _, one := range part {
			args = append(append(args, one.Key...), one.N)
		}
		if err := tx.Write(s.insert+strings.Repeat(s.more, len(part)-1)+s.into, args...); err != nil {
			return err
		}
	}
	for _, one := range sums {
		if one.N < 0 {
			if err := tx.Write(s.drop, one.Key...); err != nil {
				return err
			}
		}
	}
	return nil
}

// CountBy returns the counters under the first columns of a key, by the last column of the key. It omits counters that are 0. Changes that
// an update writes at its end are not included.
func (s *Sums) CountBy(tx *Tx, key ...any) (map[string]int64, error) {
	numbers := map[string]int64{}
	err := tx.Each(func(scan func(...any) error) error {
		var kind string
		var n int64
		err := scan(&kind, &n)
		if n != 0 {
			numbers[kind] = n
		}
		return err
	}, s.readPrefix, key...)
	return numbers, err
}

// append adds a row for each number.
func (s *Sums) append(tx *Tx, sums []Sum) error {
	rows := make([][]any, len(sums))
	for i, one := range sums {
		rows[i] = append(append(make([]any, 0, len(one.Key)+1), one.Key...), one.N)
	}
	if len(sums) > bulkSums {
		if err := tx.Bulk(&s.Table, rows); err != nil {
			return err
		}
	} else {
		for _, row := range rows {
			if err := tx.Write(s.insert, row...); err != nil {
				return err
			}
		}
	}
	for _, one := range sums {
		if ShouldFold() {
			if err := tx.Write(s.fold, one.Key...); err != nil {
				return err
			}
		}
	}
	return nil
}

// ShouldFold decides at random whether the caller merges the rows of one counter. It returns true once in foldEvery calls on average. A
// fixed order could never select a counter that, for example, every second transaction changes.
func ShouldFold() bool { return rand.IntN(foldEvery) == 0 } //nolint:gosec // it needs no secrecy
