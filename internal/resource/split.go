package resource

import (
	"fmt"
	"reflect"

	"portolan/internal/schema"
	"portolan/internal/store"
)

// CopyOnSplit makes what refers to a resource that is split, such as an access right, for one of its parts, too, where the field says
// so (onSplit). The manager makes it, with all rules: who may split need not see what refers, nor may it make such.
func (c *Change) CopyOnSplit(whole, part int64) error {
	manager := c.Following()
	manager.Caller = Caller{}
	for _, t := range c.API.AllTypes() {
		for _, f := range t.Fields {
			if f.OnSplit != "copy" {
				continue
			}
			if err := manager.Each(store.All{store.InCollection(t.Collection), store.LinksTo{Targets: []int64{whole}, Field: f.Name}},
				func(row *store.Resource, o schema.Object) error {
					if row.Type != t.Name { // another one of the collection, which has its own turn
						return nil
					}
					schema.HeadOf(o).ID = 0
					ref, ok := reflect.ValueOf(o).Elem().FieldByIndex(f.Index).Addr().Interface().(*schema.Ref)
					if !ok {
						return fmt.Errorf("%s.%s is no reference to one", t.Name, f.Name)
					}
					*ref = schema.Ref{ID: part}
					_, err := manager.Create(t, o)
					return err
				}); err != nil {
				return err
			}
		}
	}
	return nil
}
