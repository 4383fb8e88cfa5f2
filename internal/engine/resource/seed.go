package resource

import "portolan/internal/engine/store"

// EachWithout calls fn for the resources of a collection below which nothing of another one lies of which a condition holds: what a seed
// makes there is missing.
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
