package store

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Sums is a table of numbers that are kept in step with rows. Its last column is the number, those before it are its key. On
// PostgreSQL, where changes side by side would wait for one another at one row, each adds a row of its own, and several rows stand
// for one number, which is their sum; one change in foldEvery sums up the rows of what it changes, but for those that another one
// is summing up.
type Sums struct {
	Table Table
	// insert adds one row, more is one row more of the same statement, and into adds to a row that is there already. drop takes
	// away the row of what there is nothing left of. fold sums up. by reads the numbers under all of a key but its last column.
	insert, more, into, drop, fold, by string
}

// Sum is a number to be added under a key.
type Sum struct {
	Key []any
	N   int64
}

// foldEvery is how many rows stand for one number on the average, at most; bulkSums is how many numbers are sent one by one, and
// sumsAtOnce how many one statement has on SQLite.
const (
	foldEvery  = 64
	bulkSums   = 16
	sumsAtOnce = 2
)

// NewSums gives the sums of a table, whose key must be all its columns but the last one.
func NewSums(t Table) *Sums {
	keys := t.Columns[:t.Key]
	names, key := strings.Join(t.Columns, ", "), strings.Join(keys, ", ")
	n, is := t.Columns[t.Key], strings.Join(keys, " = ? AND ")+" = ?"
	marks := "(" + strings.Repeat("?, ", t.Key) + "?)"
	last := keys[len(keys)-1]
	return &Sums{Table: t,
		by: "SELECT " + last + ", CAST(sum(" + n + ") AS BIGINT) FROM " + t.Name + " WHERE " + strings.Join(keys[:len(keys)-1], " = ? AND ") +
			" = ? GROUP BY " + last,
		insert: "INSERT INTO " + t.Name + " (" + names + ") VALUES " + marks,
		more:   ", " + marks,
		into:   " ON CONFLICT (" + key + ") DO UPDATE SET " + n + " = " + t.Name + "." + n + " + excluded." + n,
		drop:   "DELETE FROM " + t.Name + " WHERE " + is + " AND " + n + " = 0",
		fold: "WITH old AS (DELETE FROM " + t.Name + " WHERE ctid = ANY (ARRAY(SELECT ctid FROM " + t.Name + " WHERE " + is +
			" FOR UPDATE SKIP LOCKED)) RETURNING " + names + ") INSERT INTO " + t.Name + " (" + names + ") SELECT " + key + ", sum(" + n +
			") FROM old GROUP BY " + key + " HAVING sum(" + n + ") <> 0"}
}

// Add adds to numbers. Whoever adds to several does so in the order of their keys.
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

// By gives the numbers under the first columns of a key, by the column that comes behind them, the key's last one. Numbers that
// are 0 are not in the answer. An update does not see what it adds at its end.
func (s *Sums) By(tx *Tx, key ...any) (map[string]int64, error) {
	numbers := map[string]int64{}
	err := tx.Each(func(scan func(...any) error) error {
		var kind string
		var n int64
		err := scan(&kind, &n)
		if n != 0 {
			numbers[kind] = n
		}
		return err
	}, s.by, key...)
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
		if Folds() {
			if err := tx.Write(s.fold, one.Key...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Folds draws whether a transaction sums up the rows that stand for one number that it changes, where changes add rows: one of
// foldEvery does. It is by chance, because what is changed by every second transaction would never meet one of every 64th.
func Folds() bool { return rand.IntN(foldEvery) == 0 } //nolint:gosec // nobody gains by foreseeing it
