package rest

import (
	"maps"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// concealSums records the rows with sums over resources that the caller does not see completely.
func (rd *renderer) concealSums(rows []*store.Resource) error {
	if !rd.limited {
		return nil
	}
	within := map[int64]int64{} // the resource that the sums cover: a range counts resources in its network
	for _, r := range rows {
		t := rd.typeOf(r)
		if t == nil {
			continue
		}
		if slices.ContainsFunc(t.Fields, func(f *schema.Field) bool { return f.Sums }) {
			within[r.ID] = r.ID
			if rd.api.CollectionOf(t).Space == resource.SpansSpace {
				within[r.ID] = r.Parent
			}
		}
		if slices.ContainsFunc(t.Fields, func(f *schema.Field) bool { return f.Tells }) && r.Parent != 0 {
			of, err := rd.configurationAbove(r.Parent)
			if err != nil {
				return err
			}
			if of == 0 { // its former configuration is unknown
				rd.partlyHidden[r.ID] = true
			} else if of != resource.RootID {
				within[r.ID] = of
			}
		}
	}
	if len(within) == 0 {
		return nil
	}
	whole, err := rd.caller.Rights.Whole(rd.tx, slices.Collect(maps.Values(within)))
	if err != nil {
		return err
	}
	var above []store.Head // rows are visible; the resources above them need not be
	for id, of := range within {
		if id != of {
			h, err := rd.tx.Head(of)
			if err != nil {
				return err
			}
			above = append(above, h)
		}
	}
	seen, err := rd.api.Sees(rd.tx, above, rd.caller)
	for id, of := range within {
		rd.partlyHidden[id] = !whole[of] || id != of && !seen[of]
	}
	return err
}

// configurationAbove returns the configuration of a resource, the root if it is outside of all configurations, and 0 if it does not
// exist.
func (rd *renderer) configurationAbove(id int64) (int64, error) {
	h, err := rd.tx.Head(id)
	switch {
	case store.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, err
	case rd.api.Scope != nil && h.Collection == rd.api.Scope.Name:
		return id, nil
	case h.Configuration == 0:
		return resource.RootID, nil
	}
	return h.Configuration, nil
}

// visibleBody returns the body of a resource, with null for fields that count, name or describe resources that the caller does not see.
func (rd *renderer) visibleBody(t *schema.Type, r *store.Resource) ([]byte, error) {
	describes := rd.limited && slices.ContainsFunc(t.Fields, func(f *schema.Field) bool { return rd.describesHidden(f, r) })
	if !rd.partlyHidden[r.ID] && !describes {
		return r.Body, nil
	}
	b := []byte{'{'}
	err := store.Members(r.Body, func(name, raw []byte) error {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(schema.AppendString(b, string(name)), ':')
		if f := t.ByName[string(name)]; f != nil && (rd.partlyHidden[r.ID] && (f.Sums || f.Tells) || rd.describesHidden(f, r)) {
			raw = []byte("null")
		}
		b = append(b, raw...)
		return nil
	})
	return append(b, '}'), err
}

// describesHidden reports whether a field describes the target of a reference that is hidden from the caller.
func (rd *renderer) describesHidden(f *schema.Field, r *store.Resource) bool {
	return f.Of != "" && rd.hidden[r.Ref(f.Of)]
}

// conceal removes the heads that the caller may not see; references to them are shown as null.
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
