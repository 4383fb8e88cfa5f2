package ipam

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Usable returns the space that a block or network offers to its children. It returns an invalid range for other resources.
func Usable(r *store.Resource) space.Range {
	if r == nil || r.Low == nil {
		return space.Range{}
	}
	all := space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}
	switch r.Collection {
	case "blocks":
		return all
	case "networks":
		return space.Hosts(all)
	}
	return space.Range{}
}

// reallocate updates free space after resources were created, changed or deleted without their rules. It releases all old space before it
// allocates new space, because resources may exchange space. If some space is not free, it returns the first resource that needs it, and
// space.ErrNotFree.
func reallocate(tx *store.Tx, moves []resource.Respan) (blocked *store.Resource, err error) {
	b := &reallocation{tx: tx, previous: map[int64]*store.Resource{}, parents: map[int64]*store.Resource{}}
	moves = slices.DeleteFunc(slices.Clone(moves), func(m resource.Respan) bool { return !hasMoved(m) })
	for _, m := range moves {
		if m.Before != nil {
			b.previous[m.Before.ID] = m.Before
		}
	}
	if err := b.release(moves); err != nil {
		return nil, err
	}
	return b.allocate(moves)
}

// reallocation releases and allocates free space for many resources.
type reallocation struct {
	tx *store.Tx
	// previous contains the changed resources in their old state. parents caches other resources in their current state; nil if a resource
	// does not exist or has no free space.
	previous, parents map[int64]*store.Resource
}

// parent returns a resource that has free space, or nil.
func (b *reallocation) parent(id int64) (*store.Resource, error) {
	if known, ok := b.parents[id]; ok {
		return known, nil
	}
	row, err := b.tx.Get(id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if row != nil && !slices.Contains(spacesIn(b.tx).holders, row.Collection) {
		row = nil
	}
	b.parents[id] = row
	return row, nil
}

// joinRanges sorts ranges and joins those that touch.
func joinRanges(ranges []space.Range) (all []space.Range) {
	slices.SortFunc(ranges, func(a, b space.Range) int { return a.Low.Compare(b.Low) })
	for _, r := range ranges {
		if n := len(all); n > 0 && all[n-1].High.Next() == r.Low {
			all[n-1].High = r.High
			continue
		}
		all = append(all, r)
	}
	return all
}

// hasMoved reports whether the space or the parent of a resource changed.
func hasMoved(m resource.Respan) bool {
	return m.Before == nil || m.After == nil || m.Before.Parent != m.After.Parent ||
		!bytes.Equal(m.Before.Low, m.After.Low) || !bytes.Equal(m.Before.High, m.After.High)
}

// takesSpace reports whether a resource uses space of its parent.
func takesSpace(tx *store.Tx, r *store.Resource) bool {
	return r != nil && r.Low != nil && slices.Contains(spacesIn(tx).takers, r.Collection)
}

// release adds the new usable space of the resources to their own free space, and their old space to the free space of the parents.
func (b *reallocation) release(moves []resource.Respan) error {
	gives := map[int64][]space.Range{}
	for _, m := range moves {
		if m.After != nil {
			if more := Usable(m.After).Subtract(Usable(m.Before)); len(more) > 0 { // addresses have no usable space
				gives[m.After.ID] = append(gives[m.After.ID], more...)
			}
		}
		if !takesSpace(b.tx, m.Before) {
			continue
		}
		parent, err := b.parent(m.Before.Parent)
		if err != nil {
			return err
		}
		if parent == nil {
			continue
		}
		if was, ok := b.previous[parent.ID]; ok {
			parent = was
		}
		if part, ok := Usable(parent).Intersect(RangeOf(m.Before)); ok {
			gives[parent.ID] = append(gives[parent.ID], part)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(gives)) {
		if err := freeAddMany(b.tx, id, joinRanges(gives[id])); err != nil {
			return err
		}
	}
	return nil
}

// allocate removes the space that resources no longer offer from their own free space, and their new space from that of the parents.
func (b *reallocation) allocate(moves []resource.Respan) (blocked *store.Resource, err error) {
	takes := map[int64][]space.Range{}
	for _, m := range moves {
		if m.After != nil && m.Before != nil {
			if less := Usable(m.Before).Subtract(Usable(m.After)); len(less) > 0 {
				takes[m.After.ID] = append(takes[m.After.ID], less...)
			}
		}
		if !takesSpace(b.tx, m.After) {
			continue
		}
		parent, err := b.parent(m.After.Parent)
		if err != nil {
			return nil, err
		}
		if parent != nil {
			takes[parent.ID] = append(takes[parent.ID], RangeOf(m.After))
			continue
		}
		// A configuration has no free space of its own.
		_, err = b.tx.FindOverlapping(m.After.Parent, m.After.Collection, m.After.Low, m.After.High, m.After.ID)
		if err == nil {
			return m.After, space.ErrNotFree
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(takes)) {
		taken, err := freeTakeParts(b.tx, id, joinRanges(takes[id]))
		if err != nil {
			return nil, err
		}
		if taken != nil {
			return findBlocked(moves, id, *taken), space.ErrNotFree
		}
	}
	return nil, nil
}

// findBlocked returns a resource that needs a part of parent's space that is not entirely free.
func findBlocked(moves []resource.Respan, parent int64, part space.Range) *store.Resource {
	for _, m := range moves {
		if m.After == nil || m.After.Low == nil {
			continue
		}
		if m.After.ID == parent || m.After.Parent == parent && part.Contains(RangeOf(m.After)) {
			return m.After
		}
	}
	return nil
}
