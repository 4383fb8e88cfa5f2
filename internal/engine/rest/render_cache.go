package rest

import (
	"portolan/internal/engine/store"
)

// shownRow is a completed row of one version of a resource.
type shownRow struct {
	version int64
	body    []byte
	refs    []store.Ref
}

// maxShown is the maximum size of a cached body, in bytes.
const maxShown = 4 << 10

// remembers reports whether completed rows of the resource may be cached until the next change in the database. They may not if the row
// comes from another source, such as an operation, if its values change by themselves, or if it does not exist.
func (rd *renderer) remembers(r *store.Resource) bool {
	c := rd.completes(r)
	return c != nil && c.From == store.Resources && !c.Fleeting && r.ID != 0
}

// remembered sets a row to its cached completed form; false if it is not cached.
func (rd *renderer) remembered(r *store.Resource) bool {
	if !rd.remembers(r) {
		return false
	}
	done, ok := rd.api.shown.Get(rd.tx, r.ID)
	if ok = ok && done.version == r.Version; ok {
		r.Body, r.Refs = done.body, done.refs
	}
	return ok
}

// remember caches a completed row.
func (rd *renderer) remember(r *store.Resource) {
	if rd.remembers(r) && len(r.Body) <= maxShown {
		done := r.Clone()
		rd.api.shown.Put(rd.tx, r.ID, shownRow{done.Version, done.Body, done.Refs})
	}
}

// readyOne is ready for one row, with the cache.
func (rd *renderer) readyOne(r *store.Resource) error {
	rows := []*store.Resource{r}
	if rd.remembered(r) {
		return rd.loadFor(rows)
	}
	err := rd.ready(rows)
	if err == nil {
		rd.remember(r)
	}
	return err
}
