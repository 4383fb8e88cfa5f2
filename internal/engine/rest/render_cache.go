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

// maxCachedBody is the maximum size of a cached body, in bytes.
const maxCachedBody = 4 << 10

// isCacheable reports whether completed rows of the resource may be cached until the next change in the database. They may not if the row
// comes from another source, such as an operation, if its values change by themselves, or if it does not exist.
func (rd *renderer) isCacheable(r *store.Resource) bool {
	c := rd.completes(r)
	return c != nil && c.From == store.Resources && !c.Fleeting && r.ID != 0
}

// loadCached sets a row to its cached completed form; false if it is not cached.
func (rd *renderer) loadCached(r *store.Resource) bool {
	if !rd.isCacheable(r) {
		return false
	}
	done, ok := rd.api.shown.Get(rd.tx, r.ID)
	if ok = ok && done.version == r.Version; ok {
		r.Body, r.Refs = done.body, done.refs
	}
	return ok
}

// storeCached caches a completed row.
func (rd *renderer) storeCached(r *store.Resource) {
	if rd.isCacheable(r) && len(r.Body) <= maxCachedBody {
		done := r.Clone()
		rd.api.shown.Put(rd.tx, r.ID, shownRow{done.Version, done.Body, done.Refs})
	}
}

// prepareOne is prepare for one row, with the cache.
func (rd *renderer) prepareOne(r *store.Resource) error {
	rows := []*store.Resource{r}
	if rd.loadCached(r) {
		return rd.loadFor(rows)
	}
	err := rd.prepare(rows)
	if err == nil {
		rd.storeCached(r)
	}
	return err
}
