package rest

import (
	"maps"
	"slices"

	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// concealSums notes of which rows the caller does not see all that lies below, where they have what counts it.
func (rd *renderer) concealSums(rows []*store.Resource) error {
	if !rd.limited {
		return nil
	}
	within := map[int64]int64{} // what the sums are of: a range counts what lies in its network
	for _, r := range rows {
		if t := rd.typeOf(r); t != nil && slices.ContainsFunc(t.Fields, func(f *schema.Field) bool { return f.Sums }) {
			within[r.ID] = r.ID
			if rd.api.CollectionOf(t).Space == resource.LiesOverSpace {
				within[r.ID] = r.Parent
			}
		}
	}
	if len(within) == 0 {
		return nil
	}
	whole, err := rd.caller.Rights.Whole(rd.tx, slices.Collect(maps.Values(within)))
	for id, of := range within {
		rd.partly[id] = !whole[of]
	}
	return err
}

// withoutSums gives the body of a resource without what counts resources below it, where the caller does not see all of those.
func (rd *renderer) withoutSums(t *schema.Type, r *store.Resource) ([]byte, error) {
	if !rd.partly[r.ID] {
		return r.Body, nil
	}
	b := []byte{'{'}
	err := store.Members(r.Body, func(name, raw []byte) error {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(schema.AppendString(b, string(name)), ':')
		if f := t.ByName[string(name)]; f != nil && f.Sums {
			raw = []byte("null")
		}
		b = append(b, raw...)
		return nil
	})
	return append(b, '}'), err
}

// conceal takes those heads away that the caller may not see: what refers to them shows null.
func (rd *renderer) conceal(ids []int64) error {
	heads := make([]store.Head, 0, len(ids))
	for _, id := range ids {
		if h, ok := rd.heads[id]; ok && !rd.seen[id] {
			heads = append(heads, h)
		}
	}
	seen, err := rd.api.Sees(rd.tx, heads, rd.caller)
	if err != nil {
		return err
	}
	for _, h := range heads {
		if id := h.ID; !seen[id] {
			rd.hidden[id] = true
			delete(rd.heads, id)
		}
	}
	return nil
}
