package store

import "testing"

// TestReadOnce checks that ReadOnce makes the page cache of a snapshot small, and that the connection has its whole cache afterwards. An
// update keeps its cache.
func TestReadOnce(t *testing.T) {
	s := open(t, t.TempDir())
	size := func(tx *Tx) (n int) {
		if err := tx.QueryRow("PRAGMA cache_size").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	var whole, once, after, writing int
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(s.View(t.Context(), func(tx *Tx) error {
		whole = size(tx)
		tx.ReadOnce()
		tx.ReadOnce()
		once = size(tx)
		return nil
	}))
	check(s.View(t.Context(), func(tx *Tx) error { after = size(tx); return nil })) // the connection that was returned last is used next
	check(s.Update(t.Context(), Author{}, func(tx *Tx) error { tx.ReadOnce(); writing = size(tx); return nil }))
	if whole >= 0 || once <= whole || once >= 0 || after != whole || writing != whole {
		t.Errorf("a cache of %d, then %d, and %d afterwards; %d in an update", whole, once, after, writing)
	}
}
