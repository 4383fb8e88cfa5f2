package ipam

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"portolan/internal/engine/store"
)

// move writes the pending usage changes of a transaction that moved or deleted blocks or networks. It returns the existing containers whose
// usage may have changed. Until then nothing was written: the usage table has the state before the transaction, the resource table the
// state after it.
//
// A moved container carries its usage along. move subtracts this usage from the former ancestors, up to the nearest one that was moved as
// well. Then it adds the usage to the new ancestors in the same way, after everything below the container is settled.
func (c *usageDelta) move(direct map[int64]Usage, from map[int64]int64) (touched []int64, err error) {
	t := &tree{tx: c.tx, heads: map[int64]*store.Head{}, from: from, delta: map[int64]Usage{}}
	moved := slices.Sorted(maps.Keys(from))
	old, err := storedUsage(c.tx, moved)
	if err != nil {
		return nil, err
	}
	for _, id := range moved {
		if err := t.addUpwards(from[id], old[id], -1); err != nil {
			return nil, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(direct)) {
		t.put(id, direct[id], 1)
		if _, ok := from[id]; ok {
			continue
		}
		h, err := t.head(id)
		if err != nil {
			return nil, err
		}
		if h == nil {
			return nil, fmt.Errorf("count addresses: container %d does not exist", id)
		}
		if err := t.addUpwards(h.Parent, direct[id], 1); err != nil {
			return nil, err
		}
	}
	left, err := t.deepestFirst(moved)
	if err != nil {
		return nil, err
	}
	for _, id := range left {
		whole := Usage{}
		for _, part := range []Usage{old[id], t.delta[id]} {
			for state, n := range part {
				whole[state] += n
			}
		}
		if err := t.addUpwards(t.heads[id].Parent, whole, 1); err != nil {
			return nil, err
		}
	}
	return t.write()
}

// tree is the tree of blocks and networks while move changes its usage.
type tree struct {
	tx *store.Tx
	// heads caches the containers by id; nil for an id that is not an existing block or network.
	heads map[int64]*store.Head
	from  map[int64]int64
	delta map[int64]Usage
}

func (t *tree) head(id int64) (*store.Head, error) {
	if h, ok := t.heads[id]; ok {
		return h, nil
	}
	h, err := t.tx.Head(id)
	switch {
	case err == nil && slices.Contains(spacesIn(t.tx).holders, h.Collection):
		t.heads[id] = &h
	case err == nil || errors.Is(err, store.ErrNotFound):
		t.heads[id] = nil
	default:
		return nil, err
	}
	return t.heads[id], nil
}

func (t *tree) put(id int64, u Usage, sign int64) {
	if t.delta[id] == nil {
		t.delta[id] = Usage{}
	}
	for state, n := range u {
		t.delta[id][state] += sign * n
	}
}

// addUpwards adds usage to a container and to its ancestors, up to and including the first one that was moved. Above that one the former
// and the new tree differ.
func (t *tree) addUpwards(id int64, u Usage, sign int64) error {
	for {
		h, err := t.head(id)
		if err != nil {
			return err
		}
		_, moved := t.from[id]
		if h == nil && !moved { // the configuration
			return nil
		}
		t.put(id, u, sign)
		if moved {
			return nil
		}
		id = h.Parent
	}
}

// deepestFirst returns the moved containers that still exist. Each one comes before its ancestors.
func (t *tree) deepestFirst(moved []int64) (left []int64, err error) {
	depth := map[int64]int{}
	for _, id := range moved {
		h, err := t.head(id)
		if err != nil {
			return nil, err
		}
		if h == nil {
			continue
		}
		left = append(left, id)
		for at := h; at != nil; depth[id]++ {
			if at, err = t.head(at.Parent); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(left, func(a, b int64) int { return depth[b] - depth[a] })
	return left, nil
}

// write writes the collected changes and deletes the usage of deleted containers.
func (t *tree) write() (touched []int64, err error) {
	for _, id := range slices.Sorted(maps.Keys(t.delta)) {
		h, err := t.head(id)
		if err != nil {
			return nil, err
		}
		if h == nil {
			continue
		}
		touched = append(touched, id)
		for _, state := range slices.Sorted(maps.Keys(t.delta[id])) {
			if n := t.delta[id][state]; n != 0 {
				if err := t.tx.Write(t.tx.SQL(addUsage[0])+"VALUES (?, ?, ?)"+t.tx.SQL(addUsage[1]), id, state, n); err != nil {
					return nil, fmt.Errorf("write usage: %w", err)
				}
			}
		}
	}
	for id := range t.from {
		h, err := t.head(id)
		if err != nil {
			return nil, err
		}
		if h == nil {
			if err := t.tx.Write("DELETE FROM usage WHERE container = ?", id); err != nil {
				return nil, fmt.Errorf("write usage: %w", err)
			}
		}
	}
	return touched, nil
}
