package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// totalKey is what is counted together: the resources of a type right below a parent, or below everywhere.
type totalKey struct {
	parent           int64
	collection, kind string
}

// everywhere stands for the parent where all of a collection are counted, wherever they lie.
const everywhere = -1

var totalSums = NewSums(Table{Name: "total", Columns: []string{"parent", "collection", "type", "n"}, Key: 3,
	Derived: "counted anew from the resources"})

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
func (tx *Tx) noteTotals(before, after *Resource) {
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

// writeTotals writes what the transaction changed, in the order of the keys.
func (tx *Tx) writeTotals() error {
	delta := tx.totals.delta
	keys := slices.SortedFunc(maps.Keys(delta), func(a, b totalKey) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.collection, b.collection), cmp.Compare(a.kind, b.kind))
	})
	keys = slices.DeleteFunc(keys, func(k totalKey) bool { return delta[k] == 0 })
	sums := make([]Sum, len(keys))
	for i, k := range keys {
		sums[i] = Sum{[]any{k.parent, k.collection, k.kind}, delta[k]}
	}
	if err := totalSums.Add(tx, sums); err != nil {
		return fmt.Errorf("writing totals: %w", err)
	}
	for part := range slices.Chunk(tx.totals.removed, loadRows) {
		if err := tx.Write("DELETE FROM total WHERE parent = ANY (?)", part); err != nil {
			return fmt.Errorf("writing totals: %w", err)
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

// Totals gives how many resources of a collection lie right below one, by type.
func (tx *Tx) Totals(parent int64, collection string) (map[string]int64, error) {
	return totalSums.By(tx, parent, collection)
}

// Extent gives how many resources there are, by the numbers that are kept, and how large the database is, in bytes.
func (tx *Tx) Extent() (resources, size int64, err error) {
	if err := tx.QueryRow("SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM total WHERE parent = ?", everywhere).Scan(&resources); err != nil {
		return 0, 0, err
	}
	err = tx.QueryRow(tx.store.engine.sizeQuery()).Scan(&size)
	return resources, size, err
}

// CountBelow gives how many resources lie below one, at any depth, by the numbers that are kept. It costs what reading those of
// all parents costs, where anything lies below.
func (tx *Tx) CountBelow(id int64) (n int64, err error) {
	var has bool
	if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM total WHERE parent = ?)", id).Scan(&has); err != nil || !has {
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
