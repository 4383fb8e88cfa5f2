package transfer

import (
	"errors"
	"portolan/internal/manager/dns"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// followedName is the name of the store extension that protects the records of followed views.
const followedName = "followedViews"

// registerFollowed declares the extension. It has no tables; it rejects changes of followed records.
func registerFollowed(r *resource.Registry) {
	f := &followedViews{}
	r.Extension(&store.Extension{Name: followedName, State: f, Opened: f.open, Follow: f.newFollower})
}

// followedViews caches the views that follow a server.
type followedViews struct {
	// known contains the ids of the views of all configurations, under a single key.
	known *store.Cache[struct{}, map[int64]bool]
}

func (f *followedViews) open(s *store.Store) {
	f.known = store.NewCache[struct{}](s, store.CacheOptions[map[int64]bool]{Topics: []string{"views"}, Late: true, Max: 1})
}

// list returns the ids of the views that follow a server.
func (f *followedViews) list(tx *store.Tx) (map[int64]bool, error) {
	if known, ok := f.known.Get(tx, struct{}{}); ok {
		return known, nil
	}
	found := map[int64]bool{}
	err := tx.List(store.Query{From: store.Resources, Where: store.InCollection("views")}, func(r *store.Resource) error {
		if r.Ref("followedServer") != 0 {
			found[r.ID] = true
		}
		return nil
	})
	if err == nil {
		f.known.Put(tx, struct{}{}, found)
	}
	return found, err
}

// newFollower returns the follower of a transaction.
func (f *followedViews) newFollower(tx *store.Tx) store.Follower {
	return &viewFollower{views: f, tx: tx, records: map[int64]*store.Resource{}, zones: map[int64]int64{},
		renamed: map[int64]bool{}}
}

// viewFollower observes the changes of a transaction in followed views.
type viewFollower struct {
	views *followedViews
	tx    *store.Tx
	// isOwn is set if the transaction itself copies records from a followed server.
	isOwn bool
	// records maps the zones with changed records to one of these records. zones maps created, moved and deleted zones to their previous
	// view, 0 for none. renamed contains the external hosts whose name changed.
	records map[int64]*store.Resource
	zones   map[int64]int64
	renamed map[int64]bool
}

// followerOf returns the follower of a transaction.
func followerOf(tx *store.Tx) (*viewFollower, error) {
	f, ok := tx.Follower(tx.Extension(followedName)).(*viewFollower)
	if !ok {
		return nil, errors.New("the database was opened without the extension of followed views")
	}
	return f, nil
}

// Changed records the zones whose records change. A move of a zone moves its records.
func (f *viewFollower) Changed(before, after *store.Resource) error {
	r := after
	if r == nil {
		r = before
	}
	switch r.Collection {
	case "resourceRecords":
		for _, one := range []*store.Resource{before, after} {
			if one != nil {
				f.records[one.Parent] = one
			}
		}
		if before != nil && after != nil && r.Type == dns.ExternalHostType && before.Key != after.Key {
			f.renamed[r.ID] = true
		}
	case "zones":
		if _, known := f.zones[r.ID]; known || before != nil && after != nil && before.Ref("view") == after.Ref("view") {
			return nil
		}
		f.zones[r.ID] = 0
		if before != nil {
			f.zones[r.ID] = before.Ref("view")
		}
	}
	return nil
}

// BeforeCommit does nothing.
func (f *viewFollower) BeforeCommit() error { return nil }

// Refuse rejects changes of followed records, because the next copy from the server would undo them.
func (f *viewFollower) Refuse() error {
	if f.isOwn || len(f.records) == 0 {
		return nil
	}
	followed, err := f.views.list(f.tx)
	if err != nil || len(followed) == 0 {
		return err
	}
	for id := range f.renamed { // a link to an external host is served with its name
		links, err := f.tx.Referring(id)
		if err != nil {
			return err
		}
		for _, l := range links {
			if l.Field != "linkedRecord" {
				continue
			}
			record, err := f.tx.Get(l.Target)
			if err != nil {
				return err
			}
			f.records[record.Parent] = record
		}
	}
	for id, record := range f.records {
		if err := f.checkZone(followed, id, record); err != nil {
			return err
		}
	}
	return nil
}

// checkZone rejects the change of a record if its zone is followed and was followed before the transaction.
func (f *viewFollower) checkZone(followed map[int64]bool, id int64, record *store.Resource) error {
	zone, err := f.tx.Get(id)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	was, moved := f.zones[id]
	if zone.Type != "Zone" || !followed[zone.Ref("view")] || moved && was != zone.Ref("view") {
		return nil
	}
	view, err := f.tx.Get(zone.Ref("view"))
	if err != nil {
		return err
	}
	server, err := f.tx.Get(view.Ref("followedServer"))
	if err != nil {
		return err
	}
	return problem.Forbidden("OperationNotPermitted", "%s %s belongs to zone %s of view %s, which follows server %s: change it there, or set "+
		"the view's followedServer to null", record.Type, problem.Describe(record.ID, record.Key), problem.Describe(zone.ID, zone.Key),
		problem.Describe(view.ID, view.Name), problem.Describe(server.ID, server.Name))
}
