package store

import "testing"

// Rows come without what they lie in once several lists in a row have needed nothing of it that was not remembered, until one does. What
// else an answer needs counts for nothing, nor do answers of something else than such a list.
func TestHeadsAreRemembered(t *testing.T) {
	s := &Store{}
	tx := func() *Tx {
		tx := &Tx{store: s}
		tx.noteListParents(&Resource{ID: 3, Parent: 2, Configuration: 1})
		return tx
	}
	for range minHeadCacheHits {
		if tx().headsAreCached() {
			t.Fatal("they are taken for remembered too soon")
		}
		(&Tx{store: s}).NoteHeads([]int64{1, 2})
		tx().NoteHeads([]int64{7})
	}
	if !tx().headsAreCached() {
		t.Error("they are not taken for remembered")
	}
	tx().NoteHeads([]int64{2, 7})
	if tx().headsAreCached() {
		t.Error("they are taken for remembered behind a list that lacked one")
	}
}

// What lies around something in a collection without space is nothing, and no fault.
func TestAroundWithoutSpace(t *testing.T) {
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			s := openAccess(t, database)
			fillAccess(t, s)
			if err := s.View(t.Context(), func(tx *Tx) error {
				for _, collection := range []string{"things", "scopes"} {
					n, err := tx.Count(Query{From: Resources, Where: All{InCollection(collection), Around{Low: []byte{4, 1}, High: []byte{4, 1}}}})
					if err != nil || n != 0 {
						t.Errorf("of %s there are %d (%v)", collection, n, err)
					}
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
