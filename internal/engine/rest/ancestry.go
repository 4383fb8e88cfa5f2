package rest

import (
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// loadAbove reads the heads of all resources above the rows.
func (rd *renderer) loadAbove(rows []*store.Resource) error {
	at := make([]int64, len(rows))
	for i, r := range rows {
		at[i] = r.Parent
	}
	for depth := 0; depth < maxDepth; depth++ {
		rd.neededHeads = rd.neededHeads[:0]
		for i, id := range at {
			for id > resource.RootID {
				h, ok := rd.heads[id]
				if !ok {
					rd.neededHeads = append(rd.neededHeads, id)
					break
				}
				id = h.Parent
			}
			at[i] = id
		}
		if len(rd.neededHeads) == 0 {
			return nil
		}
		wanted := len(rd.heads)
		if err := rd.load(); err != nil {
			return err
		}
		if len(rd.heads) == wanted { // a resource above was deleted
			return nil
		}
	}
	return nil
}

// maxDepth is the maximum depth of the resource tree.
const maxDepth = 1000

// appendPath appends the resources above a resource as a JSON array, the outermost first.
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
