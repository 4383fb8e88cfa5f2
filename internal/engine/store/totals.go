package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// totalKey identifies a counter: the resources of a type in a collection that are directly below a parent, or everywhere.
type totalKey struct {
	parent           int64
	collection, kind string
}

// everywhere is the parent of the counters of whole collections.
const everywhere = -1

var totalSums = NewSums(Table{Name: "total", Columns: []string{"parent", "collection", "type", "n"}, Key: 3,
	Derived: "recomputed from the resources"})

// totals contains the changes of a transaction to the counters.
type totals struct {
	delta map[totalKey]int64
	// removed are deleted resources, whose counters for their children are deleted. Only PostgreSQL needs them.
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

// noteTotals records the effect of a change on the counters.
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

// writeTotals writes the recorded changes in the order of their keys.
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
		return fmt.Errorf("write totals: %w", err)
	}
	for part := range slices.Chunk(tx.totals.removed, loadRows) {
		if err := tx.Write("DELETE FROM total WHERE parent = ANY (?)", part); err != nil {
			return fmt.Errorf("write totals: %w", err)
		}
	}
	return nil
}

// total returns the counter for the resources of a query: all of a collection, or those directly below one parent, of one type or of any
// type (empty). ok is false for every other query.
func (q Query) total() (k totalKey, ok bool) {
	k.parent = everywhere
	for _, e := range listConjuncts(nil, q.Where) {
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

// readTotal reads a counter. It does not include the uncommitted changes of an update, which are written at its end.
func (tx *Tx) readTotal(k totalKey) (n int64, err error) {
	query, args := "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM total WHERE parent = ? AND collection = ?", []any{k.parent, k.collection}
	if k.kind != "" {
		query, args = query+" AND type = ?", append(args, k.kind)
	}
	err = tx.QueryRow(query, args...).Scan(&n)
	return n, err
}

// Totals returns the number of resources of a collection directly below a resource, by type.
func (tx *Tx) Totals(parent int64, collection string) (map[string]int64, error) {
	return totalSums.CountBy(tx, parent, collection)
}

// Extent returns the number of resources, from the counters, and the size of the database in bytes.
func (tx *Tx) Extent() (resources, size int64, err error) {
	if err := tx.QueryRow("SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM total WHERE parent = ?", everywhere).Scan(&resources); err != nil {
		return 0, 0, err
	}
	err = tx.QueryRow(tx.store.engine.sizeQuery()).Scan(&size)
	return resources, size, err
}

// CountBelow returns the number of resources below a resource at any depth, from the counters. Unless there are none, it reads the
// counters of all parents.
func (tx *Tx) CountBelow(id int64) (n int64, err error) {
	var has bool
	if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM total WHERE parent = ?)", id).Scan(&has); err != nil || !has {
		return 0, err
	}
	// By parent: the number of its direct children, and those children that are parents as well.
	direct, below := map[int64]int64{}, map[int64][]int64{}
	if err := tx.Each(func(scan func(...any) error) error {
		var parent, above, n int64
		err := scan(&parent, &above, &n)
		direct[parent] = n
		below[above] = append(below[above], parent)
		return err
	}, "SELECT t.parent, r.parent, t.n FROM (SELECT parent, CAST(sum(n) AS BIGINT) AS n FROM total WHERE parent > 0 GROUP BY parent) t"+
		" JOIN resource r ON r.id = t.parent"); err != nil {
		return 0, fmt.Errorf("count the resources below %d: %w", id, err)
	}
	for waiting := []int64{id}; len(waiting) > 0; {
		last := waiting[len(waiting)-1]
		waiting = append(waiting[:len(waiting)-1], below[last]...)
		n += direct[last]
	}
	return n, nil
}

// recountTotals recalculates the counters from the resources.
func recountTotals(tx *Tx) error {
	for _, query := range []string{"DELETE FROM total",
		"INSERT INTO total (parent, collection, type, n) SELECT parent, collection, type, count(*) FROM resource GROUP BY 1, 2, 3",
		fmt.Sprintf("INSERT INTO total (parent, collection, type, n) SELECT %d, collection, type, count(*) FROM resource GROUP BY 2, 3",
			everywhere)} {
		if err := tx.Write(query); err != nil {
			return fmt.Errorf("count resources: %w", err)
		}
	}
	return nil
}

// totalsFaults compares the counters with the resources.
func (tx *Tx) totalsFaults(fault func(format string, args ...any)) error {
	return tx.ReportFaults(fault, "the totals of the resources below %d are wrong: %s",
		fmt.Sprintf("SELECT parent, collection || '/' || type || ', ' || CAST(sum(n) AS TEXT) || ' too many' FROM ("+
			"SELECT parent, collection, type, n FROM total"+
			" UNION ALL SELECT parent, collection, type, -count(*) FROM resource GROUP BY 1, 2, 3"+
			" UNION ALL SELECT %d, collection, type, -count(*) FROM resource GROUP BY 2, 3"+
			") both_sides GROUP BY parent, collection, type HAVING sum(n) <> 0", everywhere))
}
