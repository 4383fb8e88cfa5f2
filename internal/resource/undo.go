package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"portolan/internal/problem"
	"portolan/internal/store"
)

// Fitter is asked, behind Check, whether a resource may be there as it is, apart from the space it
// takes. When it comes back by an undo nothing else of its rules is asked.
type Fitter interface{ Fits(c *Change) error }

// image is a resource as the history keeps it.
type image struct {
	store.Resource
	Body json.RawMessage `json:"body"`
}

// undone is one change that is taken back: the resource as the change found it and as it left it.
type undone struct {
	resource      int64
	before, after *store.Resource
}

// Undo takes back what a transaction changed, in the order from its last change to its first, as a
// transaction of its own. Where a later transaction changed the same resource, or something has come
// to depend on it, nothing is taken back and the reason is given. force takes back over later changes
// of the same resources; what is in the way as such still refuses.
func (c *Change) Undo(transaction int64, force bool) error {
	changes, err := c.Tx.Changes(transaction)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return problem.NotFound("there is no transaction %d", transaction)
	}
	c.Tx.DescribeUndo(fmt.Sprintf("Undid transaction %d", transaction))
	own, err := c.Tx.Number()
	if err != nil {
		return err
	}
	found, err := c.rows(changes)
	if err != nil {
		return err
	}
	var unmade []*store.Resource
	for i := len(changes) - 1; i >= 0; i-- {
		u := undone{resource: changes[i].Resource}
		if u.before, err = readImage(changes[i].Before); err != nil {
			return err
		}
		if u.after, err = readImage(changes[i].After); err != nil {
			return err
		}
		if err := c.takeBack(u, transaction, own, force); err != nil {
			return err
		}
		if u.before == nil {
			unmade = append(unmade, u.after)
		}
	}
	for _, row := range unmade {
		if err := c.checkUnmade(row); err != nil {
			return err
		}
	}
	if err := c.respan(found, changes); err != nil {
		return err
	}
	return c.checkRestored(changes)
}

// rows reads the resources that changes are about, as they are now.
func (c *Change) rows(changes []store.EntryChange) (map[int64]*store.Resource, error) {
	rows := map[int64]*store.Resource{}
	for _, change := range changes {
		row, err := c.Tx.Get(change.Resource)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		rows[change.Resource] = row
	}
	return rows, nil
}

func readImage(text json.RawMessage) (*store.Resource, error) {
	if text == nil {
		return nil, nil
	}
	var i image
	if err := json.Unmarshal(text, &i); err != nil {
		return nil, fmt.Errorf("reading an image of the history: %w", err)
	}
	i.Resource.Body = i.Body
	return &i.Resource, nil
}

func cannotUndo(format string, args ...any) error {
	return problem.Conflict("UndoConflict", "the transaction cannot be undone: "+format, args...)
}

func (c *Change) takeBack(u undone, transaction, own int64, force bool) error {
	shown := u.after
	if shown == nil {
		shown = u.before
	}
	t := c.API.types[shown.Type]
	if t == nil || !t.Collection.Undoable() {
		return cannotUndo("a change of a %s cannot be taken back", shown.Type)
	}
	now, err := c.Tx.Get(u.resource)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if now != nil {
		if err := c.Tx.LoadLinks(now); err != nil {
			return err
		}
		if !force && now.Version != transaction && now.Version != own {
			return cannotUndo("%s %d was changed by transaction %d since", now.Type, now.ID, now.Version)
		}
	}
	switch {
	case u.after != nil && now == nil:
		return cannotUndo("%s %d was deleted since", u.after.Type, u.resource)
	case u.before == nil:
		return c.Tx.Remove(now)
	case u.after == nil && now != nil:
		return cannotUndo("%s %d is there again", now.Type, now.ID)
	case u.after == nil:
		return c.remake(u.before)
	}
	back := *u.before
	return c.Tx.Replace(now, &back)
}

// checkUnmade checks that nothing needs a resource that is not there any more.
func (c *Change) checkUnmade(now *store.Resource) error {
	children, err := c.Tx.Children(now.ID)
	if err != nil {
		return err
	}
	if len(children) > 0 {
		return cannotUndo("resource %d lies below %s %d since", children[0], now.Type, now.ID)
	}
	var source int64
	if err := c.Tx.Each(func(scan func(...any) error) error { return scan(&source) },
		"SELECT source FROM reference WHERE target = ? ORDER BY source DESC LIMIT 1", now.ID); err != nil {
		return err
	}
	if source != 0 {
		return cannotUndo("resource %d refers to %s %d since", source, now.Type, now.ID)
	}
	return nil
}

// remake takes back that a resource was deleted. It has its number again.
func (c *Change) remake(before *store.Resource) error {
	if before.Parent > RootID {
		if _, err := c.Tx.Head(before.Parent); errors.Is(err, store.ErrNotFound) {
			return cannotUndo("resource %d, which %s %d lay below, is not there any more", before.Parent, before.Type, before.ID)
		} else if err != nil {
			return err
		}
	}
	back := *before
	return c.Tx.Insert(&back)
}

// respan keeps the books of free space: found are the resources as they were before.
func (c *Change) respan(found map[int64]*store.Resource, changes []store.EntryChange) error {
	after, err := c.rows(changes)
	if err != nil || c.API.Respan == nil {
		return err
	}
	var moves []Respan
	for _, id := range slices.Sorted(maps.Keys(after)) {
		moves = append(moves, Respan{found[id], after[id]})
	}
	blocked, err := c.API.Respan(c.Tx, moves)
	if blocked != nil {
		return cannotUndo("the space of %s %d has been taken since", blocked.Type, blocked.ID)
	}
	return err
}

// Respan is a resource before and after its span or its parent changed; nil where it was, or is, not
// there.
type Respan struct{ Before, After *store.Resource }

// checkRestored checks what is there again: that what it refers to is there, and that it fits.
func (c *Change) checkRestored(changes []store.EntryChange) error {
	seen := map[int64]bool{}
	for _, change := range changes {
		if seen[change.Resource] || change.Before == nil {
			continue
		}
		seen[change.Resource] = true
		row, err := c.Tx.Get(change.Resource)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if err := c.Tx.LoadLinks(row); err != nil {
			return err
		}
		for _, refs := range [][]store.Ref{row.Refs, row.Links} {
			for _, ref := range refs {
				if _, err := c.Tx.Head(ref.Target); errors.Is(err, store.ErrNotFound) {
					return cannotUndo("resource %d, to which the %s of %s %d referred, is not there any more", ref.Target, ref.Field, row.Type, row.ID)
				} else if err != nil {
					return err
				}
			}
		}
		o, err := c.API.types[row.Type].object(row)
		if err != nil {
			return err
		}
		if f, ok := o.(Fitter); ok {
			n := *c
			n.Type, n.New, n.Row = c.API.types[row.Type], o, row
			if err := f.Fits(&n); err != nil {
				return cannotUndo("%s %d does not fit any more: %s", row.Type, row.ID, err)
			}
		}
	}
	return nil
}
