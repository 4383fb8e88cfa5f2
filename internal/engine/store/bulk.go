package store

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// InsertMany writes new resources like Insert, in batches.
func (tx *Tx) InsertMany(rs []*Resource) error {
	if err := tx.requireWriting(); err != nil || len(rs) == 0 {
		return err
	}
	ids, err := tx.ids.nextMany("resource", len(rs))
	if err != nil {
		return err
	}
	sequence, err := tx.ids.nextMany("change", len(rs))
	if err != nil {
		return err
	}
	number, err := tx.txnNumber()
	if err != nil {
		return err
	}
	resources, changes := make([][]any, len(rs)), make([][]any, 0, len(rs))
	var references [][]any
	for i, r := range rs {
		r.ID, r.Version = ids[i], number
		tx.Touch(r.Collection)
		resources[i] = []any{r.ID, r.Collection, r.Type, nullIfEmpty(r.Name), r.Parent, r.Configuration, r.Low, r.High, nullIfEmpty(r.Key),
			r.Version,
			formatRefs(r.Refs), string(r.Body)}
		for _, refs := range [][]Ref{r.Refs, r.Links} {
			for _, ref := range refs {
				references = append(references, []any{r.ID, ref.Field, ref.Target})
			}
		}
		if err := tx.noteChanged(nil, r); err != nil {
			return err
		}
		if tx.isUnlogged(r.Collection) {
			continue
		}
		changes = append(changes, []any{sequence[i], number, r.ID, "ADD", nil, encodeImage(r)})
		tx.noteLogged(sequence[i])
	}
	for _, b := range []struct {
		table string
		rows  [][]any
	}{{"resource", resources}, {"reference", references}, {"change", changes}} {
		if len(b.rows) == 0 {
			continue
		}
		if err := tx.conn.bulk(b.table, tableColumns(b.table), b.rows); err != nil {
			return err
		}
	}
	_ = tx.Describe("ADD", "ADD") // unless the caller describes it better
	return nil
}

// noteLogged records the number of a change that was written to the history.
func (tx *Tx) noteLogged(sequence int64) {
	if tx.first == 0 {
		tx.first = sequence
	}
	tx.last = sequence
}

// tableColumns returns the columns of one of the store's own tables.
func tableColumns(name string) []string {
	for _, t := range storeTables {
		if t.Name == name {
			return t.Columns
		}
	}
	return nil
}

// Bulk writes new rows to the table of an extension, in batches.
func (tx *Tx) Bulk(t *Table, rows [][]any) error {
	if err := tx.requireWriting(); err != nil || len(rows) == 0 {
		return err
	}
	return tx.conn.bulk(t.Name, t.Columns, rows)
}

// reparentRows is the number of rows that one statement moves.
const reparentRows = 500

// Reparent moves resources, whose links must be loaded, below another parent, in batches. It changes nothing else. It returns the
// resources after the change.
func (tx *Tx) Reparent(rs []*Resource, parent int64) (after []*Resource, err error) {
	if err := tx.requireWriting(); err != nil || len(rs) == 0 {
		return nil, err
	}
	number, err := tx.txnNumber()
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(rs, reparentRows) {
		sequence, err := tx.ids.nextMany("change", len(part))
		if err != nil {
			return nil, err
		}
		changes := make([][]any, 0, len(part))
		args := []any{parent, number}
		for i, r := range part {
			tx.Touch(r.Collection)
			moved := *r
			moved.Parent, moved.Version = parent, number
			after = append(after, &moved)
			if err := tx.noteChanged(r, &moved); err != nil {
				return nil, err
			}
			args = append(args, r.ID)
			if tx.isUnlogged(r.Collection) {
				continue
			}
			changes = append(changes, []any{sequence[i], number, r.ID, "UPDATE", encodeImage(r), encodeImage(&moved)})
			tx.noteLogged(sequence[i])
		}
		if err := tx.Write("UPDATE resource SET parent = ?, version = ? WHERE id IN (?"+strings.Repeat(",?", len(part)-1)+")",
			args...); err != nil {
			return nil, fmt.Errorf("move resources: %w", err)
		}
		for _, r := range part {
			tx.forgetRow(r.ID)
		}
		if err := tx.conn.bulk("change", tableColumns("change"), changes); err != nil {
			return nil, err
		}
	}
	_ = tx.Describe("UPDATE", "UPDATE") // unless the caller describes it better
	return after, nil
}

// RewriteMany replaces resources in batches. old are the resources as read in this transaction, with their links; updated are their
// replacements in the same order. Their references must not change.
func (tx *Tx) RewriteMany(old, updated []*Resource) error {
	if err := tx.requireWriting(); err != nil || len(old) == 0 {
		return err
	}
	number, err := tx.txnNumber()
	if err != nil {
		return err
	}
	sequence, err := tx.ids.nextMany("change", len(old))
	if err != nil {
		return err
	}
	changes := make([][]any, 0, len(old))
	for i, r := range updated {
		tx.Touch(r.Collection)
		r.Version = number
		if err := tx.noteChanged(old[i], r); err != nil {
			return err
		}
		if err := tx.writeChangedColumns(old[i], r); err != nil {
			return err
		}
		if tx.isUnlogged(r.Collection) {
			continue
		}
		changes = append(changes, []any{sequence[i], number, r.ID, "UPDATE", encodeImage(old[i]), encodeImage(r)})
		tx.noteLogged(sequence[i])
	}
	_ = tx.Describe("UPDATE", "UPDATE") // unless the caller describes it better
	return tx.conn.bulk("change", tableColumns("change"), changes)
}

// ListBelow returns the resources of a collection directly below a parent whose span overlaps low-high, with their links, in the order of
// their spans.
func (tx *Tx) ListBelow(parent int64, collection string, low, high []byte) ([]*Resource, error) {
	found, err := tx.ListWithin(parent, collection, low, high, math.MaxInt)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*Resource, len(found))
	for _, r := range found {
		byID[r.ID] = r
	}
	return found, tx.loadLinks(byID)
}

// RemoveMany deletes resources, whose links must be loaded, and their references to others, like RemoveLoaded, in batches.
func (tx *Tx) RemoveMany(rs []*Resource) error {
	if err := tx.requireWriting(); err != nil || len(rs) == 0 {
		return err
	}
	number, err := tx.txnNumber()
	if err != nil {
		return err
	}
	for part := range slices.Chunk(rs, loadAtOnce) {
		sequence, err := tx.ids.nextMany("change", len(part))
		if err != nil {
			return err
		}
		changes, ids := make([][]any, 0, len(part)), make([]int64, len(part))
		for i, r := range part {
			ids[i] = r.ID
			tx.Touch(r.Collection)
			if err := tx.noteChanged(r, nil); err != nil {
				return err
			}
			if tx.isUnlogged(r.Collection) {
				continue
			}
			changes = append(changes, []any{sequence[i], number, r.ID, "DELETE", encodeImage(r), nil})
			tx.noteLogged(sequence[i])
		}
		list, args := InList(ids)
		for _, query := range []string{"DELETE FROM resource WHERE id IN ", "DELETE FROM reference WHERE source IN "} {
			if err := tx.Write(query+list, args...); err != nil {
				return fmt.Errorf("delete resources: %w", err)
			}
		}
		for _, id := range ids {
			tx.forgetRow(id)
		}
		if err := tx.conn.bulk("change", tableColumns("change"), changes); err != nil {
			return err
		}
	}
	_ = tx.Describe("DELETE", "DELETE") // unless the caller describes it better
	return nil
}

// Needed returns those of the resources that other resources are below or refer to.
func (tx *Tx) Needed(ids []int64) (map[int64]bool, error) {
	needed := map[int64]bool{}
	for part := range slices.Chunk(ids, loadAtOnce) {
		list, args := InList(part)
		for _, query := range []string{"SELECT DISTINCT parent FROM resource WHERE parent IN ",
			"SELECT DISTINCT target FROM reference WHERE target IN "} {
			found, err := tx.ids64(query+list, args...)
			if err != nil {
				return nil, err
			}
			for _, id := range found {
				needed[id] = true
			}
		}
	}
	return needed, nil
}

// NewID reserves an id for a resource that is inserted later.
func (tx *Tx) NewID() (int64, error) { return tx.ids.nextResource() }

// loadAtOnce is the number of resources that one statement reads.
const loadAtOnce = 500

// InList returns an SQL list of placeholders for IN, and the ids as its arguments. ids must not be empty.
func InList(ids []int64) (list string, args []any) {
	args = make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return "(?" + strings.Repeat(",?", len(ids)-1) + ")", args
}

// Load reads resources with their links, in batches. The result lacks resources that do not exist.
func (tx *Tx) Load(ids []int64) (map[int64]*Resource, error) {
	all := make(map[int64]*Resource, len(ids))
	for part := range slices.Chunk(ids, loadAtOnce) {
		list, args := InList(part)
		found, err := tx.queryMany("SELECT "+columns+" FROM resource WHERE id IN "+list, args...)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			all[r.ID] = r
		}
	}
	return all, tx.loadLinks(all)
}

// FindDependent returns one resource that is below one of the ids, or refers to it, together with that id. below is true in the first
// case. All results are zero if there is none.
func (tx *Tx) FindDependent(ids []int64) (needs, needed int64, below bool, err error) {
	for part := range slices.Chunk(ids, loadAtOnce) {
		list, args := InList(part)
		for i, query := range []string{"SELECT id, parent FROM resource WHERE parent IN " + list + " LIMIT 1",
			"SELECT source, target FROM reference WHERE target IN " + list + " LIMIT 1"} {
			if err := tx.Each(func(scan func(...any) error) error { return scan(&needs, &needed) }, query, args...); err != nil {
				return 0, 0, false, err
			}
			if needs != 0 {
				return needs, needed, i == 0, nil
			}
		}
	}
	return 0, 0, false, nil
}

// Upwards returns the start of a statement that defines the table up (id, parent). It contains the resource whose id is the statement's
// argument, and the resources above it that are in one of the collections.
func (tx *Tx) Upwards(collections ...string) string {
	return tx.conn.sqlDialect().withAncestors("id = ?", quoteNames(collections...))
}

// Lineage reads the given resources, and all resources above them, with their links, as far as they are in the collections.
func (tx *Tx) Lineage(ids []int64, collections ...string) (map[int64]*Resource, error) {
	all := make(map[int64]*Resource, len(ids))
	names, d := quoteNames(collections...), tx.conn.sqlDialect()
	for part := range slices.Chunk(ids, loadAtOnce) {
		list, args := InList(part)
		found, err := tx.queryMany(d.withAncestors("collection IN ("+names+") AND id IN "+list, names)+d.lineage, args...)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			all[r.ID] = r
		}
	}
	return all, tx.loadLinks(all)
}

// CollectionIs returns the SQL condition that a row is in a collection. row is the alias of the row in the statement, or empty. The name
// is part of the statement and not an argument: SQLite would compare an argument with the conditions of the partial indexes that
// declarations require, and would prepare the statement again each time.
func CollectionIs(row, collection string) string {
	if row != "" {
		row += "."
	}
	return row + "collection = " + quoteNames(collection)
}

// quoteNames returns a list of collection names for SQL. The names are declared and contain no quotes.
func quoteNames(names ...string) string { return "'" + strings.Join(names, "','") + "'" }

// loadLinks reads the links of resources, in batches.
func (tx *Tx) loadLinks(all map[int64]*Resource) error {
	for part := range slices.Chunk(slices.Sorted(maps.Keys(all)), loadAtOnce) {
		list, args := InList(part)
		first, last := part[0], part[len(part)-1]
		where := "source IN " + list
		if last-first < int64(len(part))*denseIDs { // one look-up of the range instead of one for each id
			where, args = "source >= ? AND source <= ?", []any{first, last}
		}
		if err := tx.Each(func(scan func(...any) error) error {
			var source int64
			var ref Ref
			if err := scan(&source, &ref.Field, &ref.Target); err != nil {
				return err
			}
			if r := all[source]; r != nil && !slices.ContainsFunc(r.Refs, func(single Ref) bool { return single.Field == ref.Field }) {
				r.Links = append(r.Links, ref)
			}
			return nil
		}, "SELECT source, field, target FROM reference WHERE "+where+" ORDER BY source, field, target", args...); err != nil {
			return err
		}
	}
	return nil
}

// denseIDs is the number of ids in a range for each wanted one up to which the whole range is read.
const denseIDs = 2

// Referring returns the references to a resource. In the result, Target is the source of each reference.
func (tx *Tx) Referring(target int64) (links []Ref, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		var l Ref
		err := scan(&l.Target, &l.Field)
		links = append(links, l)
		return err
	}, "SELECT source, field FROM reference WHERE target = ? ORDER BY source", target)
	return links, err
}

// TargetsBelow calls fn for each reference by the given field from the resources of a collection directly below a parent. It passes the
// resource, and the low end of the span and the key of the target.
func (tx *Tx) TargetsBelow(parent int64, collection, field string, fn func(source int64, low []byte, key string)) error {
	return tx.Each(func(scan func(...any) error) error {
		var source int64
		var low []byte
		var key string
		err := scan(&source, &low, &key)
		if err == nil {
			fn(source, low, key)
		}
		return err
	}, "SELECT f.source, t.low, t.key FROM resource r JOIN reference f ON f.source = r.id AND f.field = ? JOIN resource t ON t.id = f.target "+
		"WHERE r.parent = ? AND "+CollectionIs("r", collection)+" ORDER BY f.source, t.low", field, parent)
}

// ListReferences returns the references of resources by the given fields, ordered by field and target. Without fields it returns all
// references.
func (tx *Tx) ListReferences(ids []int64, fields ...string) (map[int64][]Ref, error) {
	all := map[int64][]Ref{}
	for part := range slices.Chunk(ids, loadAtOnce) {
		list, args := InList(part)
		by := ""
		if len(fields) > 0 {
			by = " AND field IN (?" + strings.Repeat(",?", len(fields)-1) + ")"
			for _, field := range fields {
				args = append(args, field)
			}
		}
		if err := tx.Each(func(scan func(...any) error) error {
			var source int64
			var ref Ref
			err := scan(&source, &ref.Field, &ref.Target)
			all[source] = append(all[source], ref)
			return err
		}, "SELECT source, field, target FROM reference WHERE source IN "+list+by+" ORDER BY source, field, target", args...); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// FindOverlying returns, for each resource in ids that a sibling of the given collection covers with its span, that sibling. parents are
// the parents of all ids.
func (tx *Tx) FindOverlying(collection string, parents, ids []int64) (map[int64]int64, error) {
	over := map[int64]int64{}
	exists := false
	for part := range slices.Chunk(parents, loadAtOnce) {
		list, args := InList(part)
		var found bool
		if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM resource WHERE "+CollectionIs("", collection)+" AND parent IN "+list+")",
			args...).Scan(&found); err != nil {
			return nil, err
		}
		exists = exists || found
	}
	if !exists {
		return over, nil
	}
	for part := range slices.Chunk(ids, loadAtOnce) {
		list, args := InList(part)
		if err := tx.Each(func(scan func(...any) error) error {
			var id, by int64
			err := scan(&id, &by)
			over[id] = by
			return err
		}, "SELECT a.id, g.id FROM resource a JOIN resource g ON g.parent = a.parent AND "+CollectionIs("g",
			collection)+" AND g.low <= a.low AND "+
			"g.high >= a.low WHERE a.id IN "+list, args...); err != nil {
			return nil, err
		}
	}
	return over, nil
}
