package rest

import (
	"portolan/internal/engine/store"
)

// shownRow is a row as it was completed, of one version of it.
type shownRow struct {
	version int64
	body    []byte
	refs    []store.Ref
}

// maxShown is how large a body may be, in bytes, that is remembered.
const maxShown = 4 << 10

// remembers reports whether it is remembered how a row is completed, while nothing at all changes: not of what comes from a source of its
// own, such as an operation, which has numbers of its own, nor of what changes by itself or is not there.
func (rd *renderer) remembers(r *store.Resource) bool {
	c := rd.completes(r)
	return c != nil && c.From == store.Resources && !c.Fleeting && r.ID != 0
}

// remembered makes a row what it was when it was last completed; false where that is not known.
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

// remember notes how a row was completed.
func (rd *renderer) remember(r *store.Resource) {
	if rd.remembers(r) && len(r.Body) <= maxShown {
		done := r.Clone()
		rd.api.shown.Put(rd.tx, r.ID, shownRow{done.Version, done.Body, done.Refs})
	}
}

// readyOne is ready for one row, and remembers how it was completed.
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
