package address

import (
	"bytes"
	"errors"

	"portolan/internal/resource"
	"portolan/internal/space"
	"portolan/internal/store"
)

// usable is the space that a block or network gives to what lies below it; not valid for others.
func usable(r *store.Resource) space.Range {
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

// respan keeps the books of free space after rows were made, changed or deleted without their rules:
// first all that is given back, then all that is taken, because one's space may be another's before.
// It gives the first resource whose space is not free.
func respan(tx *store.Tx, moves []resource.Respan) (blocked *store.Resource, err error) {
	was := map[int64]*store.Resource{}
	for _, m := range moves {
		if m.Before != nil {
			was[m.Before.ID] = m.Before
		}
	}
	for _, m := range moves {
		if err := giveBack(tx, m, was); err != nil {
			return nil, err
		}
	}
	for _, m := range moves {
		err := takeAgain(tx, m)
		if errors.Is(err, store.ErrTaken) {
			return m.After, err
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// moved reports whether a resource takes up other space, or space of another one.
func moved(m resource.Respan) bool {
	return m.Before == nil || m.After == nil || m.Before.Parent != m.After.Parent ||
		!bytes.Equal(m.Before.Low, m.After.Low) || !bytes.Equal(m.Before.High, m.After.High)
}

// holds reports whether a resource is there and keeps books of free space.
func holds(tx *store.Tx, id int64) (bool, error) {
	h, err := tx.Head(id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return h.Collection == "blocks" || h.Collection == "networks", err
}

// spaced reports whether a resource takes space away from its parent.
func spaced(r *store.Resource) bool {
	return r != nil && r.Low != nil && (r.Collection == "blocks" || r.Collection == "networks" || r.Collection == "addresses")
}

// giveBack gives a resource what it has to give from now on, and its parent the space that it took.
// was are the rows of parents as they were, where they are among those that moved.
func giveBack(tx *store.Tx, m resource.Respan, was map[int64]*store.Resource) error {
	if !moved(m) {
		return nil
	}
	for _, part := range usable(m.After).Without(usable(m.Before)) {
		if err := tx.FreeAdd(m.After.ID, part.Low, part.High); err != nil {
			return err
		}
	}
	if !spaced(m.Before) {
		return nil
	}
	ok, err := holds(tx, m.Before.Parent)
	if err != nil || !ok {
		return err
	}
	parent, ok := was[m.Before.Parent]
	if !ok {
		if parent, err = tx.Get(m.Before.Parent); err != nil {
			return err
		}
	}
	part, ok := usable(parent).Intersect(space.Range{Low: store.KeyAddr(m.Before.Low), High: store.KeyAddr(m.Before.High)})
	if !ok {
		return nil
	}
	return tx.FreeAdd(m.Before.Parent, part.Low, part.High)
}

func takeAgain(tx *store.Tx, m resource.Respan) error {
	if !moved(m) {
		return nil
	}
	if m.After != nil && m.Before != nil {
		for _, part := range usable(m.Before).Without(usable(m.After)) {
			if err := tx.FreeTake(m.After.ID, part.Low, part.High); err != nil {
				return err
			}
		}
	}
	if !spaced(m.After) {
		return nil
	}
	ok, err := holds(tx, m.After.Parent)
	if err != nil {
		return err
	}
	if !ok { // the configuration, which keeps no books
		_, err := tx.Overlapping(m.After.Parent, m.After.Collection, m.After.Low, m.After.High, m.After.ID)
		switch {
		case err == nil:
			return store.ErrTaken
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		return nil
	}
	return tx.FreeTake(m.After.Parent, store.KeyAddr(m.After.Low), store.KeyAddr(m.After.High))
}
