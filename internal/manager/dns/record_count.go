package dns

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*_record_count.sql
var recordCountMigrations embed.FS

// recordCounts contains the number of records in the zones of each view, by type.
var recordCounts = store.NewSums(store.Table{Name: "record_count", Columns: []string{"view", "type", "n"}, Key: 2,
	Derived: "recomputed from the records"})

// countRecords is the query that counts the records of all views.
const countRecords = "SELECT f.target AS view, r.type, count(*) AS n FROM resource r JOIN reference f ON f.source = r.parent AND" +
	" f.field = 'view' WHERE r.collection = 'resourceRecords' GROUP BY 1, 2"

// registerRecordCounts declares the table with the record counts of views.
func registerRecordCounts(r *resource.Registry) {
	var views *store.Cache[int64, int64]
	r.Extension(&store.Extension{Name: "recordCounts", Migrations: recordCountMigrations, Tables: []store.Table{recordCounts.Table},
		Opened: func(s *store.Store) {
			views = store.NewCache[int64](s, store.CacheOptions[int64]{Topics: []string{"zones"}, Late: true})
		},
		Follow: func(tx *store.Tx) store.Follower { return &recordFollower{tx: tx, views: views} },
		Rebuild: func(tx *store.Tx) error {
			if err := tx.Write("DELETE FROM record_count"); err != nil {
				return err
			}
			return tx.Write("INSERT INTO record_count (view, type, n) " + countRecords)
		},
		Verify: func(tx *store.Tx, fault func(string, ...any)) error {
			return tx.ReportFaults(fault, "the stored numbers of records of view %d are wrong by type: %s", "SELECT view, type || ', ' ||"+
				" CAST(sum(n) AS TEXT) || ' too many' FROM (SELECT view, type, n FROM record_count UNION ALL"+
				" SELECT view, type, -n FROM ("+countRecords+") counted) both_sides GROUP BY view, type HAVING sum(n) <> 0")
		}})
}

// recordKey is the key of a count: the record type and a zone or view.
type recordKey struct {
	below int64
	kind  string
}

// recordFollower counts the record changes of one transaction.
type recordFollower struct {
	tx *store.Tx
	// views caches the view of each zone by zone id. A zone never changes its view, but a later zone may get the id of a zone whose commit
	// failed.
	views *store.Cache[int64, int64]
	// delta contains the changes by zone. changed contains the views of zones that the transaction changed, including deleted zones.
	// deletedViews are the ids of deleted views.
	delta        map[recordKey]int64
	changed      map[int64]int64
	deletedViews []int64
}

// Changed counts a record change, and collects changed zones and deleted views.
func (f *recordFollower) Changed(before, after *store.Resource) error {
	r := cmp.Or(after, before)
	switch {
	case r.Collection == "zones":
		if f.changed == nil {
			f.changed = map[int64]int64{}
		}
		f.changed[r.ID] = ViewOf(r)
	case r.Collection == "views" && after == nil:
		f.deletedViews = append(f.deletedViews, r.ID)
	case r.Collection == "resourceRecords" && (before == nil || after == nil || before.Parent != after.Parent || before.Type != after.Type):
		if f.delta == nil {
			f.delta = map[recordKey]int64{}
		}
		if before != nil {
			f.delta[recordKey{before.Parent, before.Type}]--
		}
		if after != nil {
			f.delta[recordKey{after.Parent, after.Type}]++
		}
	}
	return nil
}

// BeforeCommit writes the counted changes.
func (f *recordFollower) BeforeCommit() error {
	delta := map[recordKey]int64{}
	for k, n := range f.delta {
		view, err := f.findView(k.below)
		if err != nil {
			return fmt.Errorf("count records: %w", err)
		}
		if view != 0 {
			delta[recordKey{view, k.kind}] += n
		}
	}
	keys := slices.SortedFunc(maps.Keys(delta), func(a, b recordKey) int {
		return cmp.Or(cmp.Compare(a.below, b.below), cmp.Compare(a.kind, b.kind))
	})
	var sums []store.Sum
	for _, k := range keys {
		if n := delta[k]; n != 0 {
			sums = append(sums, store.Sum{Key: []any{k.below, k.kind}, N: n})
		}
	}
	if err := recordCounts.Add(f.tx, sums); err != nil {
		return fmt.Errorf("count records: %w", err)
	}
	for _, id := range f.deletedViews {
		if err := f.tx.Write("DELETE FROM record_count WHERE view = ?", id); err != nil {
			return fmt.Errorf("count records: %w", err)
		}
	}
	return nil
}

// findView returns the view of the zone that contains records; 0 if the parent is a template.
func (f *recordFollower) findView(zone int64) (view int64, err error) {
	if view, ok := f.changed[zone]; ok {
		return view, nil
	}
	if view, ok := f.views.Get(f.tx, zone); ok {
		return view, nil
	}
	r, err := f.tx.Get(zone)
	if errors.Is(err, store.ErrNotFound) { // a template that is deleted together with its records
		return 0, nil
	}
	if err == nil && r.Collection == "zones" {
		view = ViewOf(r)
	}
	if err == nil {
		f.views.Put(f.tx, zone, view)
	}
	return view, err
}

// recordCountsName is the last path segment of the record counts.
const recordCountsName = "recordCounts"

// countViewRecords returns the number of records in the zones of a view, by type.
func countViewRecords(tx *store.Tx, view *store.Resource) (map[string]int64, error) {
	return recordCounts.CountBy(tx, view.ID)
}

// countZoneRecords returns the number of records directly in a zone, by type.
func countZoneRecords(tx *store.Tx, zone *store.Resource) (map[string]int64, error) {
	return tx.Totals(zone.ID, "resourceRecords")
}
