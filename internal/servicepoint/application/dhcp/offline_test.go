package dhcp

import (
	"encoding/json"
	"net/netip"
	"testing"

	"portolan/internal/wire/dhcplease"
)

// TestHoursWithoutManager checks that all beginnings of leases and all digests of ten hours without the manager are reported: in order,
// each once, and each naming the one before it, also after restarts and checkpoints. The manager confirms them in parts.
func TestHoursWithoutManager(t *testing.T) {
	t.Parallel()
	const minutes, leases, renewed = 600, 200, 50
	dir := t.TempDir()
	e := snapshotEngine(t, dir)
	e.endRecall()
	restart := func() {
		t.Helper()
		if err := e.close(); err != nil {
			t.Fatal(err)
		}
		e = snapshotEngine(t, dir)
	}
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}) }
	began := e.clock.now()
	for i := range leases {
		e.mu.Lock()
		longLease(e, address(i))
		e.mu.Unlock()
	}
	for minute := range minutes {
		e.mu.Lock()
		for i := range renewed {
			e.renewals.put(7, address(i), began+int64(minute)*60)
		}
		e.mu.Unlock()
		e.writeDigests()
		if minute%100 == 99 {
			if err := e.writeCheckpoint(); err != nil {
				t.Fatal(err)
			}
		}
		if minute%200 == 199 {
			restart()
		}
	}
	if err := e.flush(); err != nil {
		t.Fatal(err)
	}
	var last uint64
	begins, digests := map[netip.Addr]int{}, 0
	for part := 0; ; part++ {
		r := newReports(e, "j")
		all := r.read()
		if len(all) == 0 {
			break
		}
		for _, one := range all {
			var record dhcplease.Record
			if err := json.Unmarshal(one.Data, &record); err != nil {
				t.Fatal(err)
			}
			if record.Previous != last || record.Sequence <= last {
				t.Fatalf("record %d names %d before it, and %d was the last", record.Sequence, record.Previous, last)
			}
			last = record.Sequence
			switch {
			case record.Event != nil && record.Event.Kind == dhcplease.Begin:
				begins[record.Event.Lease.Address]++
			case record.Renewals != nil:
				list, err := dhcplease.Unpack(record.Renewals.Packed)
				if err != nil || len(list) != renewed || list[0].Expires != began+int64(digests)*60 {
					t.Fatalf("digest %d has %d renewals until %v: %v", digests, len(list), list, err)
				}
				digests++
			}
		}
		if err := r.kept(all[len(all)-1].Number); err != nil {
			t.Fatal(err)
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
		if part == 3 {
			restart()
		}
	}
	if len(begins) != leases || digests != minutes {
		t.Errorf("%d leases and %d digests were reported, want %d and %d", len(begins), digests, leases, minutes)
	}
	for a, n := range begins {
		if n != 1 {
			t.Errorf("the beginning of %s was reported %d times", a, n)
		}
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
}
