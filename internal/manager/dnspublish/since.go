package dnspublish

import (
	"cmp"
	"errors"
	"slices"

	"portolan/internal/engine/store"
)

// examinedZones are the places in the change feed up to which deployments of this manager have examined zones of views that are not live,
// by zone. The next deployment examines the names that have changed since then. After a start or a change of the manager that deploys, it
// examines whole zones.
type examinedZones map[string]store.Position

// maxExamined is the maximum number of zones in examinedZones. At the limit all are dropped.
const maxExamined = 100_000

// record stores the zones that a deployment has examined. A zone that others deployed since its snapshot is dropped: the names that they
// deployed may be older.
func (e examinedZones) record(o *outcome) {
	if len(e) >= maxExamined {
		clear(e)
	}
	for _, id := range o.examinedZones {
		e[id] = o.at
	}
	for _, c := range o.all {
		if c.rebased {
			delete(e, c.zone.id)
		}
	}
}

// earliest returns the first of the places of zones. ok is false if none is known.
func (e examinedZones) earliest(zones []*plannedZone) (first store.Position, ok bool) {
	for _, z := range zones {
		at, known := e[z.id]
		if known && (!ok || cmp.Or(cmp.Compare(at.Settled, first.Settled), cmp.Compare(at.Transaction, first.Transaction)) < 0) {
			first, ok = at, true
		}
	}
	return first, ok
}

// addSince adds the names, addresses and zones that have changed since the zones were examined to now and whole, for views that are not
// live. all is false if there are too many, or if they are not known: then the zones of such views must be examined as a whole.
func (p *plan) addSince(examined examinedZones, zones []*plannedZone, live map[int64]int64, now *dueEntries, whole map[string]bool) (
	all bool, err error,
) {
	first, known := examined.earliest(slices.DeleteFunc(slices.Clone(zones), func(z *plannedZone) bool { return live[z.view] != 0 }))
	if !known {
		return false, nil
	}
	l, err := liveViewsOf(p.tx)
	if err != nil {
		return false, err
	}
	views := map[int64]int64{}
	for _, v := range p.views {
		if live[v.ID] == 0 {
			views[v.ID] = p.configuration
		}
	}
	f := l.collector(p.tx, views)
	all, err = p.tx.EachChangeAfter(first, maxPending, func(before, after *store.Resource) error {
		for _, r := range []*store.Resource{before, after} {
			if r != nil && r.Collection == "zones" && (before == nil || after == nil || !isEqualServed(before, after)) {
				whole[zoneID(r.Ref("view"), r.Key)] = true
			}
		}
		return f.collect(before, after)
	})
	if errors.Is(err, store.ErrPruned) || errors.Is(err, store.ErrForeignPosition) {
		return false, nil
	}
	if err != nil || !all {
		return false, err
	}
	for d := range f.due {
		if d.configuration != p.configuration || d.kind == dueAll { // changes of roles, options and zones are found by their frames
			continue
		}
		if err := now.add(d.kind, d.name); err != nil {
			return false, err
		}
	}
	return true, nil
}

// collector returns a follower for the changes of views; of the live ones for nil.
func (l *liveViews) collector(tx *store.Tx, of map[int64]int64) *liveFollower {
	return &liveFollower{live: l, tx: tx, of: of, due: map[due]bool{}, views: map[int64]int64{}, zones: map[int64][]*store.Resource{},
		branches: map[int64][]due{}}
}

// followed returns the views whose changes are collected, with their configurations.
func (f *liveFollower) followed() (map[int64]int64, error) {
	if f.of != nil {
		return f.of, nil
	}
	return f.live.views(f.tx)
}

// get returns a resource; nil if it does not exist. For changes of earlier transactions it returns deleted resources, too.
func (f *liveFollower) get(id int64) (*store.Resource, error) {
	r, err := f.tx.Get(id)
	switch {
	case !store.IsNotFound(err):
		return r, err
	case f.of != nil:
		return f.tx.LastImage(id)
	}
	return nil, nil
}

// liveViewsOf returns the cache of live views.
func liveViewsOf(tx *store.Tx) (*liveViews, error) {
	l, ok := tx.Extension(deployedName).State.(*liveViews)
	if !ok {
		return nil, errors.New("the database was opened without the extension of what is deployed")
	}
	return l, nil
}
