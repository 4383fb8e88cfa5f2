package store

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// totalKey is what is counted together: the resources of a type right below a parent, or below everywhere.
type totalKey struct {
	parent           int64
	collection, kind string
}

// everywhere stands for the parent where all of a collection are counted, wherever they lie.
const everywhere = -1

var totalTable = Table{Name: "total", Columns: []string{"parent", "collection", "type", "n"}, Key: 3,
	Derived: "counted anew from the resources"}

// totals is what a transaction changes of the numbers of resources.
type totals struct {
	delta map[totalKey]int64
	// removed are those that go, of which nothing is counted any more. Only PostgreSQL needs them.
	removed []int64
}

func (t *totals) add(r *Resource, n int64) {
	if t.delta == nil {
		t.delta = map[totalKey]int64{}
	}
	for _, parent := range [...]int64{everywhere, r.Parent} {
		t.delta[totalKey{parent, r.Collection, r.Type}] += n
	}
}

// count notes what a change does to the totals.
func (tx *Tx) count(before, after *Resource) {
	t := &tx.totals
	if before != nil && after != nil && before.Parent == after.Parent && before.Type == after.Type {
		return
	}
	if before != nil {
		t.add(before, -1)
	}
	if after != nil {
		t.add(after, 1)
	} else if tx.RoundTrips() {
		t.removed = append(t.removed, before.ID)
	}
}

// Statements of totals. On PostgreSQL a change adds a row, and one in foldEvery sums up the rows of what it changes
// (Folds), but for those that another one is summing up.
const (
	addTotal  = "INSERT INTO total (parent, collection, type, n) VALUES (?, ?, ?, ?)"
	oneMore   = ", (?, ?, ?, ?)"
	addInto   = " ON CONFLICT (parent, collection, type) DO UPDATE SET n = n + excluded.n"
	dropTotal = "DELETE FROM total WHERE parent = ? AND collection = ? AND type = ? AND n = 0"
	foldTotal = "WITH old AS (DELETE FROM total WHERE ctid = ANY (ARRAY(SELECT ctid FROM total WHERE parent = ? AND collection = ? AND " +
		"type = ? FOR UPDATE SKIP LOCKED)) RETURNING parent, collection, type, n) INSERT INTO total (parent, collection, type, n) " +
		"SELECT parent, collection, type, sum(n) FROM old GROUP BY 1, 2, 3 HAVING sum(n) <> 0"
)

// foldEvery is how many rows stand for one number on the average, at most; bulkTotals is how many numbers are sent one by one.
const (
	foldEvery  = 64
	bulkTotals = 16
)

// writeTotals writes what the transaction changed, in the order of the keys.
func (tx *Tx) writeTotals() error {
	delta := tx.totals.delta
	keys := slices.SortedFunc(maps.Keys(delta), func(a, b totalKey) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.collection, b.collection), cmp.Compare(a.kind, b.kind))
	})
	keys = slices.DeleteFunc(keys, func(k totalKey) bool { return delta[k] == 0 })
	write := tx.addTotals
	if tx.RoundTrips() {
		write = tx.appendTotals
	}
	if err := write(keys, delta); err != nil {
		return fmt.Errorf("writing totals: %w", err)
	}
	return nil
}

// addTotals adds to the one row of each key, and takes away the row of what there is nothing left of.
func (tx *Tx) addTotals(keys []totalKey, delta map[totalKey]int64) error {
	for part := range slices.Chunk(keys, 2) { // what one resource counts for
		args := make([]any, 0, 8)
		for _, k := range part {
			args = append(args, k.parent, k.collection, k.kind, delta[k])
		}
		if err := tx.Write(addTotal+strings.Repeat(oneMore, len(part)-1)+addInto, args...); err != nil {
			return err
		}
	}
	for _, k := range keys {
		if delta[k] < 0 {
			if err := tx.Write(dropTotal, k.parent, k.collection, k.kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// Folds draws whether a transaction sums up the rows that stand for one number that it changes, where changes add rows: one of
// foldEvery does. It is by chance, because what is changed by every second transaction would never meet one of every 64th.
func Folds() bool { return rand.IntN(foldEvery) == 0 } //nolint:gosec // nobody gains by foreseeing it

// appendTotals adds rows.
func (tx *Tx) appendTotals(keys []totalKey, delta map[totalKey]int64) error {
	if len(keys) > bulkTotals {
		rows := make([][]any, len(keys))
		for i, k := range keys {
			rows[i] = []any{k.parent, k.collection, k.kind, delta[k]}
		}
		if err := tx.Bulk(&totalTable, rows); err != nil {
			return err
		}
	} else {
		for _, k := range keys {
			if err := tx.Write(addTotal, k.parent, k.collection, k.kind, delta[k]); err != nil {
				return err
			}
		}
	}
	for _, k := range keys {
		if Folds() {
			if err := tx.Write(foldTotal, k.parent, k.collection, k.kind); err != nil {
				return err
			}
		}
	}
	for part := range slices.Chunk(tx.totals.removed, loadRows) {
		if err := tx.Write("DELETE FROM total WHERE parent = ANY (?)", part); err != nil {
			return err
		}
	}
	return nil
}

// total gives the key by which the resources that a query selects are counted: all of a collection, or those right below one
// parent, of one type or of any, which is empty then. ok is false for any other query.
func (q Query) total() (k totalKey, ok bool) {
	k.parent = everywhere
	for _, e := range conjuncts(nil, q.Where) {
		switch x := e.(type) {
		case inCollections:
			if len(x) != 1 || k.collection != "" && k.collection != x[0] {
				return k, false
			}
			k.collection = x[0]
		case Compare:
			column := ""
			if (x.Field.Kind == ColumnInt || x.Field.Kind == ColumnText) && x.Op == "eq" && x.Field.Via == "" {
				column = x.Field.Path[0]
			}
			id, isID := x.Value.(int64)
			kind, isText := x.Value.(string)
			switch {
			case column == "parent" && isID && id >= 0 && (k.parent == everywhere || k.parent == id):
				k.parent = id
			case column == "type" && isText && kind != "" && (k.kind == "" || k.kind == kind):
				k.kind = kind
			default:
				return k, false
			}
		default:
			return k, false
		}
	}
	return k, q.From == Resources && k.collection != ""
}

// readTotal reads a number. An update counts for itself: what it has changed so far is not written.
func (tx *Tx) readTotal(k totalKey) (n int64, err error) {
	query, args := "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM total WHERE parent = ? AND collection = ?", []any{k.parent, k.collection}
	if k.kind != "" {
		query, args = query+" AND type = ?", append(args, k.kind)
	}
	err = tx.QueryRow(query, args...).Scan(&n)
	return n, err
}

// CountBelow gives how many resources lie below one, at any depth, by the numbers that are kept. It costs what reading those of
// all parents costs, where anything lies below.
func (tx *Tx) CountBelow(id int64) (n int64, err error) {
	var some bool
	if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM total WHERE parent = ?)", id).Scan(&some); err != nil || !some {
		return 0, err
	}
	direct, below := map[int64]int64{}, map[int64][]int64{} // right below each parent: how many, and which are parents themselves
	if err := tx.Each(func(scan func(...any) error) error {
		var parent, above, n int64
		err := scan(&parent, &above, &n)
		direct[parent] = n
		below[above] = append(below[above], parent)
		return err
	}, "SELECT t.parent, r.parent, t.n FROM (SELECT parent, CAST(sum(n) AS BIGINT) AS n FROM total WHERE parent > 0 GROUP BY parent) t"+
		" JOIN resource r ON r.id = t.parent"); err != nil {
		return 0, fmt.Errorf("counting what lies below %d: %w", id, err)
	}
	for waiting := []int64{id}; len(waiting) > 0; {
		last := waiting[len(waiting)-1]
		waiting = append(waiting[:len(waiting)-1], below[last]...)
		n += direct[last]
	}
	return n, nil
}

// recountTotals writes the totals anew from the resources.
func recountTotals(tx *Tx) error {
	for _, query := range []string{"DELETE FROM total",
		"INSERT INTO total (parent, collection, type, n) SELECT parent, collection, type, count(*) FROM resource GROUP BY 1, 2, 3",
		fmt.Sprintf("INSERT INTO total (parent, collection, type, n) SELECT %d, collection, type, count(*) FROM resource GROUP BY 2, 3",
			everywhere)} {
		if err := tx.Write(query); err != nil {
			return fmt.Errorf("counting resources: %w", err)
		}
	}
	return nil
}

// totalsFaults compares the totals with the resources.
func (tx *Tx) totalsFaults(fault func(format string, args ...any)) error {
	return tx.Faulty(fault, "what is kept of how many lie below %d is wrong by type: %s",
		fmt.Sprintf("SELECT parent, collection || '/' || type || ', ' || CAST(sum(n) AS TEXT) || ' too many' FROM ("+
			"SELECT parent, collection, type, n FROM total"+
			" UNION ALL SELECT parent, collection, type, -count(*) FROM resource GROUP BY 1, 2, 3"+
			" UNION ALL SELECT %d, collection, type, -count(*) FROM resource GROUP BY 2, 3"+
			") both_sides GROUP BY parent, collection, type HAVING sum(n) <> 0", everywhere))
}
