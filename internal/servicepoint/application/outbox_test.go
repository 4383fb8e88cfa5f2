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
		o.Acknowledge(all[len(all)-1].Number)
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

// TestOutboxKeepsReturnedRecords checks that a returned record is not dropped and does not change: the service point may have stored it.
func TestOutboxKeepsReturnedRecords(t *testing.T) {
	var o Outbox
	add := func(n int) {
		t.Helper()
		for range n {
			if err := o.Add("event", 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(maxBatch)
	before := o.Records(t.Context())
	add(maxPending) // as many as are returned must go
	after := o.Records(t.Context())
	if len(after) != len(before) {
		t.Fatalf("%d records are returned, want %d", len(after), len(before))
	}
	for i := range after {
		if after[i].Number != before[i].Number || after[i].Lost != 0 {
			t.Fatalf("record %d became %d with %d lost", before[i].Number, after[i].Number, after[i].Lost)
		}
	}
	o.Acknowledge(after[len(after)-1].Number)
	if next := o.Records(t.Context())[0]; next.Lost != maxBatch || next.Number != 2*maxBatch+1 {
		t.Errorf("the next record is %d with %d lost, want %d with %d", next.Number, next.Lost, 2*maxBatch+1, maxBatch)
	}
}
