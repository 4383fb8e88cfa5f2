package transfer

import (
	"errors"
	"portolan/internal/manager/dns"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// followedName is the name of the extension that keeps the records of followed views as they are followed.
const followedName = "followedViews"

// registerFollowed declares it. It keeps nothing: it refuses what somebody else would change.
func registerFollowed(r *resource.Registry) {
	f := &followedViews{}
	r.Extension(&store.Extension{Name: followedName, State: f, Opened: f.open, Follow: f.newFollower})
}

// followedViews knows the views that follow a server.
type followedViews struct {
	// known are those of all configurations, under the one key there is.
	known *store.Cache[struct{}, map[int64]bool]
}

func (f *followedViews) open(s *store.Store) {
	f.known = store.NewCache[struct{}](s, store.CacheOptions[map[int64]bool]{Topics: []string{"views"}, Late: true, Max: 1})
}

// of gives the followed views.
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

// follow begins to follow a transaction.
func (f *followedViews) newFollower(tx *store.Tx) store.Follower {
	return &viewFollower{views: f, tx: tx, records: map[int64]*store.Resource{}, zones: map[int64]int64{},
		renamed: map[int64]bool{}}
}

// viewFollower sees what a transaction changes of followed views.
type viewFollower struct {
	views *followedViews
	tx    *store.Tx
	// follows says that the transaction is the one that follows.
	isOwn bool
	// records are the zones of which it changes records, each with one of those; zones are those that it makes, moves or deletes, with the
	// view that they were in before, 0 for none. renamed are the external hosts that have another name.
	records map[int64]*store.Resource
	zones   map[int64]int64
	renamed map[int64]bool
}

// followerOf gives what follows a transaction.
func followerOf(tx *store.Tx) (*viewFollower, error) {
	f, ok := tx.Follower(tx.Extension(followedName)).(*viewFollower)
	if !ok {
		return nil, errors.New("the database was opened without the extension of followed views")
	}
	return f, nil
}

// Changed notes the zones whose records change. A move of a zone moves its records.
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

// BeforeCommit keeps nothing.
func (f *viewFollower) BeforeCommit() error { return nil }

// Refuse refuses changes of records that somebody else makes: the next look at the server would undo them.
func (f *viewFollower) Refuse() error {
	if f.isOwn || len(f.records) == 0 {
		return nil
	}
	followed, err := f.views.list(f.tx)
	if err != nil || len(followed) == 0 {
		return err
	}
	for id := range f.renamed { // what leads to an external host has its name
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

// refuse refuses the change of a record, where its zone is followed, and was before.
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
		"the view's followedServer to null", record.Type, problem.About(record.ID, record.Key), problem.About(zone.ID, zone.Key),
		problem.About(view.ID, view.Name), problem.About(server.ID, server.Name))
}
