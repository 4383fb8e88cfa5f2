package server

import (
	"slices"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestParentsAreDeclared checks that the parents of all resources are in the declared collections, because visibility is evaluated
// there.
func TestParentsAreDeclared(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	m.oneOfEach()
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var collection, above string
			if err := scan(&collection, &above); err != nil {
				return err
			}
			if c := m.Address.Collection(collection); !slices.Contains(c.Parents, above) {
				t.Errorf("the parents of %s are in %s, declared are %s", collection, above, c.Parents)
			}
			return nil
		}, "SELECT DISTINCT r.collection, p.collection FROM resource r JOIN resource p ON p.id = r.parent")
	}); err != nil {
		t.Fatal(err)
	}
}
