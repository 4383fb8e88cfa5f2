package resource

import (
	"reflect"
	"slices"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// CopyOnSplit copies the resources that are set at a split resource, such as options, roles or access rights, for one of its parts: those
// that refer to it by a field with the tag onSplit. The copies are made in the name of the manager, with all rules: the caller of the
// split needs no rights on them.
func (c *Change) CopyOnSplit(whole, part int64) error {
	manager := c.Following()
	manager.Caller = Caller{}
	for _, collection := range c.API.collections {
		fields, where := map[string]*schema.Field{}, map[string]store.Expr{} // by type, and by the name of the field
		for _, t := range collection.Types {
			for _, f := range t.Fields {
				if f.OnSplit != "copy" {
					continue
				}
				fields[t.Name], where[f.Name] = f, store.LinksTo{Targets: []int64{whole}, Field: f.Name}
				if f.Column == "parent" {
					where[f.Name] = store.HasParent(whole)
				}
			}
		}
		for _, at := range where {
			if err := manager.Each(store.All{store.InCollection(collection.Name), at}, func(row *store.Resource, o schema.Object) error {
				if f := fields[row.Type]; f != nil {
					return manager.copyAt(row, o, f, part)
				}
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyAt creates a copy of a resource whose field f refers to another target.
func (c *Change) copyAt(row *store.Resource, o schema.Object, f *schema.Field, target int64) error {
	t := c.API.types[row.Type]
	schema.HeadOf(o).ID = 0
	if f.Column == "parent" {
		schema.HeadOf(o).Parent = target
	} else {
		reflect.ValueOf(o).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(schema.Ref{ID: target}))
	}
	made, err := c.Create(t, o)
	if err != nil {
		return err
	}
	if err := c.Tx.LoadLinks(row); err != nil {
		return err
	}
	for _, link := range row.Links { // lists of references are not part of the object
		if err := c.Tx.LoadLinks(made); err != nil {
			return err
		}
		if slices.Contains(made.Links, link) {
			continue
		}
		if err := c.Link(made, link.Field, link.Target); err != nil {
			return err
		}
		if made, err = c.Tx.Get(made.ID); err != nil {
			return err
		}
	}
	return nil
}
