package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// fedChange is a change as the feed sends it, with the properties that clients select by.
type fedChange struct {
	collection string
	// parents are the parents before and after the change.
	parents [2]int64
	text    []byte
}

// FeedEntry returns a transaction as one JSON object: its members in the feed, its position, and at most limit of the selected changes. The
// member more says that there are more changes. It returns nil if no change is selected, except for transactions without changes when
// everything is selected.
func (a *Server) FeedEntry(ctx context.Context, e store.Entry, collections []string, parent int64, limit int) ([]byte, error) {
	f := following{collections: collections, parent: parent}
	var changes []byte
	n := 0
	add := func(c fedChange) error {
		if !f.wantsChange(c) {
			return nil
		}
		if n++; n > limit {
			return errEnoughChanges
		}
		if n > 1 {
			changes = append(changes, ',')
		}
		changes = append(changes, c.text...)
		return nil
	}
	w, err := a.eachChange(ctx, e, add)
	if err != nil && !errors.Is(err, errEnoughChanges) || n == 0 && !(e.IsNoted() && f.wantsAll()) {
		return nil, err
	}
	text := schema.AppendString([]byte(`{"position":`), w.position)
	text = append(append(append(text, ','), w.members...), `,"changes":[`...)
	text = append(append(text, changes...), `],"more":`...)
	return append(strconv.AppendBool(text, n > limit), '}'), nil
}

var (
	errEnoughChanges = errors.New("enough changes")
	errNotEncoded    = errors.New("the changes of a transaction were not encoded")
)

// changeCache caches encoded changes of the latest transactions, which are encoded once for all clients.
type changeCache struct {
	mu    sync.Mutex
	known map[changesKey]*changeBatch
	order []changesKey
}

// changesKey identifies a batch: a transaction, and the number of the change before its first one; 0 for the start.
type changesKey struct {
	position store.Position
	after    int64
}

// maxCachedBatches is the maximum number of cached batches; each has at most a few hundred changes.
const maxCachedBatches = 64

// changeBatch are some encoded changes of a transaction.
type changeBatch struct {
	once    sync.Once
	changes []fedChange
	// last is the number of the last of them; more says that there may be further ones.
	last int64
	more bool
	err  error
	// transaction is the encoded transaction, in the first batch of each.
	transaction *encodedTransaction
}

// encodedTransaction is the encoded transaction: its position, its members, and the event after its changes.
type encodedTransaction struct {
	position     string
	members, end []byte
}

func encodeTransaction(e store.Entry) *encodedTransaction {
	t := &encodedTransaction{position: e.Position.String(), members: strconv.AppendInt([]byte(`"id":`), e.ID, 10)}
	if len(e.Body) > 2 {
		t.members = append(append(t.members, ','), e.Body[1:len(e.Body)-1]...)
	}
	t.end = fmt.Appendf(nil, "id: %s\nevent: transaction\ndata: {%s}\n\n", t.position, t.members)
	return t
}

// eachChange calls fn with the encoded changes of a transaction, and returns the encoded transaction.
func (a *Server) eachChange(ctx context.Context, e store.Entry, fn func(fedChange) error) (*encodedTransaction, error) {
	first, err := a.encodedChanges(e, 0)
	for w := first; err == nil && ctx.Err() == nil; w, err = a.encodedChanges(e, w.last) {
		for _, c := range w.changes {
			if err := fn(c); err != nil {
				return first.transaction, err
			}
		}
		if !w.more {
			return first.transaction, nil
		}
	}
	return nil, errors.Join(err, ctx.Err())
}

// encodedChanges returns the encoded changes of a transaction after one of them, from the cache if another client needed them before.
func (a *Server) encodedChanges(e store.Entry, after int64) (*changeBatch, error) {
	key := changesKey{e.Position, after}
	a.changeCache.mu.Lock()
	w := a.changeCache.known[key]
	if w == nil {
		w = &changeBatch{}
		if a.changeCache.known == nil {
			a.changeCache.known = map[changesKey]*changeBatch{}
		}
		a.changeCache.known[key] = w
		if a.changeCache.order = append(a.changeCache.order, key); len(a.changeCache.order) > maxCachedBatches {
			delete(a.changeCache.known, a.changeCache.order[0])
			a.changeCache.order = a.changeCache.order[1:]
		}
	}
	a.changeCache.mu.Unlock()
	w.once.Do(func() {
		if after == 0 {
			w.transaction = encodeTransaction(e)
		}
		w.err = errNotEncoded // remains if encodeChanges panics
		w.err = a.Store.View(a.closing, func(tx *store.Tx) error { return a.encodeChanges(tx, e, after, w) })
	})
	if w.err != nil { // the next client tries again
		a.changeCache.mu.Lock()
		if a.changeCache.known[key] == w {
			delete(a.changeCache.known, key)
			a.changeCache.order = slices.DeleteFunc(a.changeCache.order, func(k changesKey) bool { return k == key })
		}
		a.changeCache.mu.Unlock()
	}
	return w, w.err
}

// encodeChanges encodes changes of a transaction after one of them, in the form of its operations.
func (a *Server) encodeChanges(tx *store.Tx, e store.Entry, after int64, w *changeBatch) error {
	q := a.SubQuery(a.History.Sub(operationsName), e.ID, resource.Caller{Administrator: true})
	q.Where = store.All{q.Where, store.Compare{Field: store.Field{Kind: store.ColumnID}, Op: "gt", Value: after}}
	q.Limit = batch
	if err := tx.CheckComplete(e); err != nil {
		return err
	}
	var rows []*store.Resource
	if err := tx.List(q, func(r *store.Resource) error {
		rows = append(rows, r.Clone())
		return nil
	}); err != nil {
		return err
	}
	changes := make([]fedChange, len(rows))
	for i, r := range rows {
		var err error
		if changes[i], err = placeOf(r); err != nil {
			return err
		}
	}
	rd := a.renderer(tx, asJSON, resource.Caller{Administrator: true}) // clients of the change feed see everything
	if err := rd.prepare(rows); err != nil {
		return err
	}
	for i, r := range rows {
		text, err := rd.append(nil, r, nil)
		if err != nil {
			return err
		}
		changes[i].text = fmt.Appendf(text[:len(text)-1], `,"transaction":%d,"resourceCollection":"%s"}`, e.ID, changes[i].collection)
		after = r.ID
	}
	w.changes, w.last, w.more = changes, after, len(rows) == batch
	return nil
}

// placeOf returns the collection and the parents of a changed resource, from the images of the change.
func placeOf(r *store.Resource) (c fedChange, err error) {
	var row struct {
		FieldUpdates [2]*struct {
			Collection string `json:"collection"`
			Parent     int64  `json:"parent"`
		} `json:"fieldUpdates"`
	}
	if err = json.Unmarshal(r.Body, &row); err != nil {
		return c, err
	}
	for i, image := range row.FieldUpdates {
		if image != nil {
			c.collection, c.parents[i] = image.Collection, image.Parent
		}
	}
	return c, nil
}
