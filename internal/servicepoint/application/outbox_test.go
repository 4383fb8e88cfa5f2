package application

import "testing"

// TestOutboxCountsLoss checks that each dropped record is reported by the next record of its kind.
func TestOutboxCountsLoss(t *testing.T) {
	var o Outbox
	for i := range maxPending + 5 {
		kind := "even"
		if i%2 == 1 {
			kind = "odd"
		}
		if err := o.Add(kind, i); err != nil {
			t.Fatal(err)
		}
	}
	lost := map[string]int64{}
	for len(o.pending) > 0 {
		all := o.Records(t.Context())
		for _, r := range all {
			lost[r.Kind] += r.Lost
		}
		o.Kept(all[len(all)-1].Number)
	}
	if lost["even"] != 3 || lost["odd"] != 2 {
		t.Errorf("lost are %v, want 3 even and 2 odd ones", lost)
	}
	for range maxPending + 1 { // all of one kind, and none of the other is left to report it
		if err := o.Add("single", 0); err != nil {
			t.Fatal(err)
		}
	}
	if all := o.Records(t.Context()); all[0].Lost != 1 {
		t.Errorf("the first record reports %d", all[0].Lost)
	}
}
