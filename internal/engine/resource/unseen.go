package resource

import (
	"maps"
	"reflect"
	"slices"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// keepHidden keeps references to resources that the caller does not see when a request sets the field: the caller was not shown them, so
// it cannot have meant to remove them. A single reference stays if the request has null, which the caller was shown; another value
// replaces it.
func (c *Change) keepHidden() error {
	if !c.IsRequested() || !c.Caller.Limited() || c.Row == nil {
		return nil
	}
	v := reflect.ValueOf(c.New).Elem()
	for _, f := range c.Type.Fields {
		if f.Column != "" || f.ReadOnly || !c.SetFields[f.Name] {
			continue
		}
		switch f.Kind {
		case schema.Reference:
			if v.FieldByIndex(f.Index).Interface().(schema.Ref) != (schema.Ref{}) {
				continue
			}
			was := reflect.ValueOf(c.Old).Elem().FieldByIndex(f.Index).Interface().(schema.Ref)
			unseen, err := c.hiddenIDs([]int64{was.ID})
			if err != nil {
				return err
			}
			if len(unseen) > 0 {
				v.FieldByIndex(f.Index).Set(reflect.ValueOf(was))
			}
		case schema.References:
			list := v.FieldByIndex(f.Index).Interface().(schema.RefList)
			links, err := c.Tx.Links(c.Row.ID, f.Name)
			if err != nil {
				return err
			}
			links = slices.DeleteFunc(links, func(id int64) bool {
				return slices.ContainsFunc(list.Items, func(item schema.RefItem) bool { return item.ID == id })
			})
			unseen, err := c.hiddenIDs(links)
			if err != nil {
				return err
			}
			for _, id := range unseen {
				list.Items = append(list.Items, schema.RefItem{ID: id})
			}
			v.FieldByIndex(f.Index).Set(reflect.ValueOf(list))
		}
	}
	return nil
}

// hiddenIDs returns those of the resources that the caller does not see.
func (c *Change) hiddenIDs(ids []int64) ([]int64, error) {
	heads := map[int64]store.Head{}
	if err := c.Tx.Heads(slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id == 0 }), heads); err != nil {
		return nil, err
	}
	if len(heads) == 0 {
		return nil, nil
	}
	seen, err := c.API.Sees(c.Tx, slices.Collect(maps.Values(heads)), c.Caller)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(heads)), func(id int64) bool { return seen[id] }), err
}
