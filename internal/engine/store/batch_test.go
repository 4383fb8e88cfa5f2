package store

import (
	"errors"
	"net/netip"
	"testing"
)

// TestWriteInBatches checks that a change sees its own batched rows, that they are the same as single ones, and that a batch with an
// impossible row fails as a whole.
func TestWriteInBatches(t *testing.T) {
	s := open(t, t.TempDir())
	at := func(last byte) *Resource {
		key := AddrKey(netip.AddrFrom4([4]byte{10, 0, 0, last}))
		return &Resource{Collection: "networks", Type: "IPv4Network", Parent: 1, Low: key, High: key, Body: []byte(`{}`)}
	}
	insert := func(batches bool, rows ...*Resource) error {
		return s.Update(t.Context(), Author{}, func(tx *Tx) error {
			if batches {
				tx.WriteInBatches()
			}
			for i, r := range rows {
				if err := tx.Insert(r); err != nil {
					return err
				}
				if found, err := tx.Get(r.ID); i == 70 && (err != nil || found.ID != r.ID) {
					t.Errorf("resource %d: %v, %v", r.ID, found, err)
				}
			}
			return nil
		})
	}
	var many []*Resource
	for i := range 100 {
		many = append(many, at(byte(i)))
	}
	if err := insert(true, many...); err != nil {
		t.Fatal(err)
	}
	var resources, changes, totals int
	if err := s.View(t.Context(), func(tx *Tx) error {
		return errors.Join(tx.QueryRow("SELECT count(*) FROM resource WHERE parent = 1").Scan(&resources),
			tx.QueryRow("SELECT count(*) FROM change").Scan(&changes),
			tx.QueryRow("SELECT n FROM total WHERE parent = 1").Scan(&totals))
	}); err != nil || resources != 100 || changes != 100 || totals != 100 {
		t.Errorf("%d resources, %d changes, a total of %d: %v", resources, changes, totals, err)
	}
	if err := insert(true, at(200), at(7)); !errors.Is(err, ErrBatch) {
		t.Errorf("the same range twice in a batch: %v", err)
	}
	if err := insert(false, at(200), at(7)); errors.Is(err, ErrBatch) || !Duplicate(err) {
		t.Errorf("the same range twice one by one: %v", err)
	}
	if err := insert(true, at(200)); err != nil { // the failed changes left nothing
		t.Error(err)
	}
}
