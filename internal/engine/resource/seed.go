package resource

import "portolan/internal/engine/store"

// EachWithout calls fn for each resource of the collection above that has no child in the collection below that matches a condition.
// Seeds create the missing child there.
func EachWithout(c *Change, above, below string, holds store.Expr, fn func(id int64) error) error {
	var missing []int64
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.InCollection(above)}, func(r *store.Resource) error {
		missing = append(missing, r.ID)
		return nil
	}); err != nil {
		return err
	}
	for _, id := range missing {
		there, err := c.Tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection(below), store.HasParent(id), holds}})
		if err != nil {
			return err
		}
		if there {
			continue
		}
		if err := fn(id); err != nil {
			return err
		}
	}
	return nil
}
