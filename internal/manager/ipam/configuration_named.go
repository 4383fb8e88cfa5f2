package ipam

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// ConfigurationNamed returns the configuration with this name; for an empty name, the only configuration.
func ConfigurationNamed(tx *store.Tx, name string) (*store.Resource, error) {
	found, err := tx.ByName("configurations", 0, name)
	if name == "" {
		found = nil
		err = tx.List(store.Query{From: store.Resources, Where: store.InCollection("configurations"), Limit: 2}, func(r *store.Resource) error {
			found = append(found, r.Clone())
			return nil
		})
	}
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0 && name == "":
		return nil, problem.NotFound("no configuration exists: create one first")
	case len(found) == 0:
		return nil, problem.NotFound("configuration %q does not exist", name)
	case len(found) > 1 && name == "":
		return nil, problem.Invalid("configuration", "several configurations exist: give the name of one")
	}
	return found[0], nil
}
