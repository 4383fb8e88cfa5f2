package store

import "testing"

// TestHeadsAreCached checks that rows are read without heads after several consecutive lists whose heads were all cached, until a list
// lacks one. Other heads, and lists that are not short, do not count.
func TestHeadsAreCached(t *testing.T) {
	s := &Store{}
	tx := func() *Tx {
		tx := &Tx{store: s}
		tx.noteListParents(&Resource{ID: 3, Parent: 2, Configuration: 1})
		return tx
	}
	for range minHeadCacheHits {
		if tx().headsAreCached() {
			t.Fatal("heads are considered cached too soon")
		}
		(&Tx{store: s}).NoteHeads([]int64{1, 2})
		tx().NoteHeads([]int64{7})
	}
	if !tx().headsAreCached() {
		t.Error("heads are not considered cached")
	}
	tx().NoteHeads([]int64{2, 7})
	if tx().headsAreCached() {
		t.Error("heads are considered cached after a list that lacked one")
	}
}

// TestAroundWithoutSpace checks that a collection without space has no resources around a span, and that this is not an error.
func TestAroundWithoutSpace(t *testing.T) {
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			s := openAccess(t, database)
			fillAccess(t, s)
			if err := s.View(t.Context(), func(tx *Tx) error {
				for _, collection := range []string{"things", "scopes"} {
					n, err := tx.Count(Query{From: Resources, Where: All{InCollection(collection), Around{Low: []byte{4, 1}, High: []byte{4, 1}}}})
					if err != nil || n != 0 {
						t.Errorf("%s: found %d (%v)", collection, n, err)
					}
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
