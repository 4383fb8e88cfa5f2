package store

import (
	"context"
	"net/netip"
	"testing"
)

// TestExpected checks that rows that were read ahead are found again, and that a change of the transaction itself replaces them.
func TestExpected(t *testing.T) { both(t, expectedRows) }

func expectedRows(t *testing.T, s *Store) {
	low := func(text string) []byte { return AddrKey(netip.MustParseAddr(text)) }
	made := func(name, key, at string, parent int64) *Resource {
		r := thing(name)
		r.Key, r.Configuration, r.Parent = key, 7, parent
		r.Low, r.High = low(at), low(at)
		return r
	}
	old := made("old", "k1", "10.0.0.1", 5)
	insert(t, s, old)
	insert(t, s, made("beside", "k9", "10.0.0.1", 6))
	if err := s.Update(context.Background(), Author{}, func(tx *Tx) error {
		if err := tx.ExpectKeys(7, []string{"k1", "k2", "k3"}); err != nil {
			return err
		}
		if err := tx.ExpectSpans(5, "things", [][]byte{low("10.0.0.1"), low("10.0.0.2"), low("10.0.0.1")}); err != nil {
			return err
		}
		check := func(key, at, want string) {
			t.Helper()
			byKey, err := tx.ResourcesByKey(7, key)
			bySpan, e := tx.BeginningAt(5, "things", low(at))
			if err != nil || e != nil {
				t.Fatal(err, e)
			}
			for _, found := range [][]*Resource{byKey, bySpan} {
				names := ""
				for _, r := range found {
					names += r.Name
				}
				if names != want {
					t.Errorf("%s and %s find %q, want %q", key, at, names, want)
				}
			}
		}
		check("k1", "10.0.0.1", "old")
		check("k2", "10.0.0.2", "")
		if err := tx.Insert(made("new", "k2", "10.0.0.2", 5)); err != nil {
			return err
		}
		check("k2", "10.0.0.2", "new")
		was, err := tx.Get(old.ID)
		if err != nil {
			return err
		}
		after := *was
		after.Name, after.Key, after.Low, after.High = "moved", "k3", low("10.0.0.3"), low("10.0.0.3")
		if err := tx.Replace(was, &after); err != nil {
			return err
		}
		check("k1", "10.0.0.1", "")
		check("k3", "10.0.0.3", "moved")
		if err := tx.Remove(&after); err != nil {
			return err
		}
		check("k3", "10.0.0.3", "")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
