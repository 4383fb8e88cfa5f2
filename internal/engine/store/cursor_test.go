package store

import "testing"

// TestListsOfDifferentColumns checks that lists with different columns, each the first list of its transaction on a connection, do not
// affect each other.
func TestListsOfDifferentColumns(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		for range 3 {
			for _, query := range []string{"SELECT id, parent, version FROM resource WHERE id < ?", "SELECT id FROM resource WHERE id < ?"} {
				if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
					err := tx.Stream(func(func(...any) error) error { return nil }, query, 10)
					if err != nil {
						t.Errorf("%s: %v", query, err) // a retry of the transaction would succeed
					}
					return err
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
