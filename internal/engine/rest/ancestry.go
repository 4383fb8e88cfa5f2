package rest

import (
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// loadAbove reads the heads of all that rows lie in.
func (rd *renderer) loadAbove(rows []*store.Resource) error {
	at := make([]int64, len(rows))
	for i, r := range rows {
		at[i] = r.Parent
	}
	for depth := 0; depth < maxDepth; depth++ {
		rd.wanted = rd.wanted[:0]
		for i, id := range at {
			for id > resource.RootID {
				h, ok := rd.heads[id]
				if !ok {
					rd.wanted = append(rd.wanted, id)
					break
				}
				id = h.Parent
			}
			at[i] = id
		}
		if len(rd.wanted) == 0 {
			return nil
		}
		wanted := len(rd.heads)
		if err := rd.load(); err != nil {
			return err
		}
		if len(rd.heads) == wanted { // what it lay in is deleted
			return nil
		}
	}
	return nil
}

// maxDepth bounds how deep resources lie in each other.
const maxDepth = 1000

// appendPath writes what a resource lies in, from the outside.
func (rd *renderer) appendPath(b []byte, r *store.Resource) []byte {
	var above []store.Head
	for id := r.Parent; id > resource.RootID; {
		h, ok := rd.heads[id]
		if !ok {
			break
		}
		above = append(above, h)
		id = h.Parent
	}
	b = append(b, '[')
	for i := len(above) - 1; i >= 0; i-- {
		b = rd.appendHead(b, above[i])
		if i > 0 {
			b = append(b, ',')
		}
	}
	return append(b, ']')
}
