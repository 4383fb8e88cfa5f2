package store

import "testing"

// TestPlaceOfDeletedRow checks that the place of the last row of a page is that in the page, even if the row is changed or deleted right
// after the list was read.
func TestPlaceOfDeletedRow(t *testing.T) {
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			s := openAccess(t, database)
			low := Field{Kind: ColumnSpan, Path: []string{"low"}}
			for _, c := range []struct {
				order Field
				want  string
			}{{Field{Kind: Text, Path: []string{"code"}, Indexed: true}, "c1"}, {Field{Kind: ColumnText, Path: []string{"name"}}, "n1"},
				{low, "low"}} {
				row := thing("n1")
				row.Body, row.Low, row.High = []byte(`{"code":"c1"}`), []byte("low"), []byte("low")
				insert(t, s, row)
				q := Query{From: Resources, Where: InCollection("things"), Order: []Order{{By: c.order}}, Limit: 1, Shown: true}
				var last Resource
				if err := s.Pages(t.Context(), func(tx *Tx) error {
					if err := tx.List(q, func(r *Resource) error {
						last = *r.Clone()
						return nil
					}); err != nil {
						return err
					}
					if err := s.Update(t.Context(), Author{Name: "test"}, func(tx *Tx) error {
						return tx.Remove(row)
					}); err != nil {
						return err
					}
					at, ok, err := q.PlaceOf(tx, last.ID, last.Name, last.Low)
					value := at.Value
					if key, isKey := value.([]byte); isKey {
						value = string(key)
					}
					if !ok || value != c.want {
						t.Errorf("ordered by %v the place is %v (%t, %v)", c.order.Path, value, ok, err)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
