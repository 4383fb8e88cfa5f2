package resource

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// undone is one change to be undone: the resource before and after it.
type undone struct {
	resource      int64
	before, after *store.Resource
}

// Undo undoes the changes of a transaction, from its last to its first, in a new transaction. It fails, with the reason, if a later
// transaction changed the same resource, or if other resources depend on one by now. force ignores later changes of the same resources;
// other conflicts still fail.
func (c *Change) Undo(transaction int64, force bool) error {
	horizon, err := c.Tx.Horizon()
	if err != nil {
		return err
	}
	changes, err := c.Tx.Changes(transaction)
	if err != nil {
		return err
	}
	if noted, err := c.Tx.IsNoted(transaction); err != nil || noted {
		return cmp.Or(err, cannotUndo("transaction %d did not change a resource; reverse its effect by hand", transaction))
	}
	if transaction == horizon.Transaction || len(changes) == 0 && horizon.At > 0 { // the transaction may be kept in part
		return problem.NotFound("transaction %d does not exist: the history starts at %s", transaction,
			schema.FormatTime(time.UnixMilli(horizon.At)))
	}
	if len(changes) == 0 {
		return problem.NotFound("transaction %d does not exist", transaction)
	}
	// Requests for approval stay unchanged: they are approved or denied, not undone.
	changes = slices.DeleteFunc(changes, func(one store.EntryChange) bool {
		image := one.After
		if image == nil {
			image = one.Before
		}
		r, err := store.DecodeImage(image)
		return err == nil && c.API.byName[r.Collection] != nil && c.API.byName[r.Collection].Guard == Asking
	})
	if len(changes) == 0 {
		return cannotUndo("a workflow request cannot be undone; approve, deny or withdraw it")
	}
	if err := c.Tx.DescribeUndo(transaction); err != nil {
		return err
	}
	own, err := c.Tx.Number()
	if err != nil {
		return err
	}
	var ids []int64
	for _, change := range changes {
		ids = append(ids, change.Resource)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found, err := c.Tx.Load(ids)
	if err != nil {
		return err
	}
	now := maps.Clone(found)
	whole := createdOrDeleted(changes)
	removed := map[int64]*store.Resource{}
	for i := len(changes) - 1; i >= 0; i-- {
		u := undone{resource: changes[i].Resource}
		if u.before, err = store.DecodeImage(changes[i].Before); err != nil {
			return err
		}
		if u.after, err = store.DecodeImage(changes[i].After); err != nil {
			return err
		}
		if now[u.resource], err = c.undoChange(u, now[u.resource], whole, transaction, own, force); err != nil {
			return err
		}
		if u.before == nil {
			removed[u.resource] = u.after
		}
	}
	if err := c.releaseReports(slices.Sorted(maps.Keys(removed))); err != nil {
		return err
	}
	if err := c.checkRemoved(removed); err != nil {
		return err
	}
	after, err := c.Tx.Load(ids)
	if err != nil {
		return err
	}
	if err := c.updateSpace(ids, found, after); err != nil {
		return err
	}
	if err := c.checkNames(ids, found, after); err != nil {
		return err
	}
	return c.checkRestored(changes, after)
}

// checkNames refuses an undo that changes the absolute name of a resource with children that were created after the transaction. Their
// absolute names end in its name, and the undo would not change them. ids are sorted; found and after are the resources before and after
// the undo.
func (c *Change) checkNames(ids []int64, found, after map[int64]*store.Resource) error {
	for _, id := range ids {
		before, row := found[id], after[id]
		if before == nil || row == nil || before.Key == row.Key {
			continue
		}
		children, err := c.Tx.Children(id)
		if err != nil {
			return err
		}
		children = slices.DeleteFunc(children, func(child int64) bool { _, changed := slices.BinarySearch(ids, child); return changed })
		since, err := c.Tx.Load(children)
		if err != nil {
			return err
		}
		for _, child := range since {
			if child != nil && child.Key != "" {
				return cannotUndo("%s (%d) was created in %s (%d) afterwards", describeRow(child), child.ID, describeRow(before), before.ID)
			}
		}
	}
	return nil
}

func cannotUndo(format string, args ...any) error {
	return problem.Conflict("UndoConflict", "Cannot undo the transaction: "+format, args...)
}

// undoChange undoes one change of a resource, given as it is now, and returns the resulting resource.
func (c *Change) undoChange(u undone, now *store.Resource, whole map[int64]bool, transaction, own int64,
	force bool) (*store.Resource, error) {
	shown := shownOf(u)
	t := c.API.types[shown.Type]
	if t == nil || !c.API.CollectionOf(t).IsUndoable() && !c.isUndoneWithResource(t, u, whole) {
		return nil, cannotUndo("changes of %s (%d) cannot be undone", describeRow(shown), shown.ID)
	}
	if now != nil && !force && now.Version != transaction && now.Version != own && !equalRows(now, u.after) {
		return nil, cannotUndo("%s (%d) was changed afterwards, by transaction %d", describeRow(now), now.ID, now.Version)
	}
	switch {
	case u.after != nil && now == nil:
		return nil, cannotUndo("%s (%d) was deleted afterwards", describeRow(u.after), u.after.ID)
	case u.before == nil:
		return nil, c.Tx.RemoveLoaded(now)
	case u.after == nil && now != nil:
		return nil, cannotUndo("%s (%d) already exists", describeRow(now), now.ID)
	case u.after == nil:
		return c.restore(u.before)
	}
	back := *u.before
	return &back, c.Tx.Replace(now, &back)
}

// RefusesUndo reports whether an undo of these changes, which are all changes of one transaction, is refused regardless of later changes.
// An error means that an image cannot be decoded.
func (a *API) RefusesUndo(changes []store.EntryChange) (bool, error) {
	c, whole, requests := &Change{API: a}, createdOrDeleted(changes), 0
	for _, one := range changes {
		u := undone{resource: one.Resource}
		var err error
		if u.before, err = store.DecodeImage(one.Before); err != nil {
			return false, err
		}
		if u.after, err = store.DecodeImage(one.After); err != nil {
			return false, err
		}
		t := a.types[shownOf(u).Type]
		switch {
		case t != nil && a.CollectionOf(t).Guard == Asking: // Undo leaves requests for approval as they are
			requests++
		case t == nil || !a.CollectionOf(t).IsUndoable() && !c.isUndoneWithResource(t, u, whole):
			return true, nil
		}
	}
	return requests > 0 && requests == len(changes), nil
}

// createdOrDeleted returns the resources that a transaction created or deleted.
func createdOrDeleted(changes []store.EntryChange) map[int64]bool {
	found := map[int64]bool{}
	for _, c := range changes {
		if c.Before == nil || c.After == nil {
			found[c.Resource] = true
		}
	}
	return found
}

// isUndoneWithResource reports whether a change of an access right is undone with its resource: it was created or deleted together with
// that resource.
func (c *Change) isUndoneWithResource(t *schema.Type, u undone, whole map[int64]bool) bool {
	if c.API.CollectionOf(t).Guard != Granted || u.before != nil && u.after != nil {
		return false
	}
	right := u.before
	if right == nil {
		right = u.after
	}
	return whole[right.Ref("resource")]
}

// equalRows reports whether a resource equals its state after a transaction. Later transactions may have changed it if their
// changes were undone.
func equalRows(now, after *store.Resource) bool {
	if after == nil || now.Type != after.Type || now.Name != after.Name || now.Parent != after.Parent ||
		now.Configuration != after.Configuration || now.Key != after.Key || !bytes.Equal(now.Low, after.Low) ||
		!bytes.Equal(now.High, after.High) || !bytes.Equal(now.Body, after.Body) {
		return false
	}
	return slices.Equal(sortRefs(now.Refs), sortRefs(after.Refs)) && slices.Equal(sortRefs(now.Links), sortRefs(after.Links))
}

// sortRefs returns references sorted by field and target.
func sortRefs(refs []store.Ref) []store.Ref {
	return slices.SortedFunc(slices.Values(refs), func(a, b store.Ref) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Target, b.Target))
	})
}

// releaseReports removes references to resources that do not exist any more from requests for approval, and from resources of unlogged
// collections, which report on the network and are not part of it: the request or the action that created them, for example. Those
// resources stay.
func (c *Change) releaseReports(removed []int64) error {
	for _, reports := range c.API.collections {
		if reports.Guard != Asking && (!reports.Unlogged || reports.From != store.Resources) {
			continue
		}
		for part := range slices.Chunk(removed, releaseAtOnce) {
			var about []store.Ref // by the number of the request
			if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(reports.Name),
				store.LinksTo{Targets: part}}}, func(row *store.Resource) error {
				t := c.API.types[row.Type]
				for _, ref := range row.Refs {
					if f := t.ByName[ref.Field]; slices.Contains(part, ref.Target) && (f == nil || f.OnDelete != "refuse") {
						about = append(about, store.Ref{Field: ref.Field, Target: row.ID})
					}
				}
				return nil
			}); err != nil {
				return err
			}
			for _, one := range about {
				report, err := c.Tx.Get(one.Target)
				if err != nil {
					return err
				}
				if err := c.Unlink(report, one.Field, report.Ref(one.Field)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// releaseAtOnce is the number of resources in one query for such references.
const releaseAtOnce = 500

// checkRemoved checks that no resource needs one that does not exist any more.
func (c *Change) checkRemoved(removed map[int64]*store.Resource) error {
	needs, needed, below, err := c.Tx.FindDependent(slices.Sorted(maps.Keys(removed)))
	if err != nil || needs == 0 {
		return err
	}
	needing, err := c.Tx.Get(needs)
	if err != nil {
		return err
	}
	how := "refers to %s (%d), which the undo deletes"
	if below {
		how = "was added to %s (%d) afterwards"
	}
	return cannotUndo("%s (%d) "+how, describeRow(needing), needing.ID, describeRow(removed[needed]), removed[needed].ID)
}

// restore restores a deleted resource with its old id.
func (c *Change) restore(before *store.Resource) (*store.Resource, error) {
	back := *before
	return &back, c.Tx.Insert(&back)
}

// updateSpace updates the free space for resources before and after the undo.
func (c *Change) updateSpace(ids []int64, found, after map[int64]*store.Resource) error {
	if c.API.Respan == nil {
		return nil
	}
	var moves []Respan
	for _, id := range ids {
		moves = append(moves, Respan{found[id], after[id]})
	}
	blocked, err := c.API.Respan(c.Tx, moves)
	if blocked != nil {
		return cannotUndo("the addresses of %s (%d) were assigned to another resource afterwards", describeRow(blocked), blocked.ID)
	}
	if errors.Is(err, space.ErrNotFree) {
		return cannotUndo("the addresses were assigned to another resource afterwards")
	}
	return err
}

// Respan is a resource before and after a change of its span or parent; nil if it did not, or does not, exist.
type Respan struct{ Before, After *store.Resource }

// StaleName declares the function that an undo asks whether the absolute name of a row fits its parent (API.StaleName).
func (r *Registry) StaleName(fn func(tx *store.Tx, row *store.Resource) (parent *store.Resource, err error)) {
	r.staleName = fn
}

// Respan declares the function that updates free space when an undo creates, deletes or moves rows (API.Respan).
func (r *Registry) Respan(fn func(tx *store.Tx, moves []Respan) (blocked *store.Resource, err error)) {
	r.respan = fn
}

// checkRestored checks the restored resources: their references must exist, and they must pass their own validation.
func (c *Change) checkRestored(changes []store.EntryChange, after map[int64]*store.Resource) error {
	seen, known := map[int64]bool{}, map[int64]bool{0: true, RootID: true}
	there := func(id int64) (bool, error) {
		if known[id] || after[id] != nil {
			return true, nil
		}
		_, err := c.Tx.Head(id)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		known[id] = err == nil
		return true, err
	}
	for _, change := range changes {
		if seen[change.Resource] || change.Before == nil {
			continue
		}
		seen[change.Resource] = true
		row := after[change.Resource]
		if row == nil {
			continue
		}
		if ok, err := there(row.Parent); err != nil || !ok {
			return cmp.Or(err, cannotUndo("resource %d, the parent of %s (%d), no longer exists", row.Parent, describeRow(row), row.ID))
		}
		for _, ref := range slices.Concat(row.Refs, row.Links) {
			if ok, err := there(ref.Target); err != nil || !ok {
				return cmp.Or(err, cannotUndo("resource %d, the %s of %s (%d), no longer exists", ref.Target, ref.Field,
					describeRow(row), row.ID))
			}
		}
		if c.API.StaleName != nil {
			parent, err := c.API.StaleName(c.Tx, row)
			if err != nil {
				return err
			}
			if parent != nil {
				return cannotUndo("%s (%d), the parent of %s (%d), was renamed afterwards", describeRow(parent), parent.ID, describeRow(row), row.ID)
			}
		}
		o, err := c.API.types[row.Type].Object(row)
		if err != nil {
			return err
		}
		n := *c
		n.Type, n.Old, n.New, n.Row = c.API.types[row.Type], nil, o, row
		if err := n.validate(); err != nil {
			return cannotUndo("%s (%d) is no longer valid: %s", describeRow(row), row.ID, err)
		}
	}
	return nil
}
