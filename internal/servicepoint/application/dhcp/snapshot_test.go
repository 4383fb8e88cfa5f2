package dhcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/stream"
)

// withSnapshot returns content that requests the list of all leases.
func withSnapshot(t testing.TB, number int64) dhcpdata.Units {
	u := units(t, noPing)
	u[dhcpdata.ServerUnit] = unit(t, dhcpdata.ServerUnit, dhcpdata.Server{ID: 1, Name: "buoy", Configuration: 2, Snapshot: number,
		Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	return u
}

// snapshotEngine starts an engine in a folder.
func snapshotEngine(t *testing.T, dir string) *engine {
	t.Helper()
	e, damaged, err := newEngine(dir, slog.New(slog.DiscardHandler), journalOptions{}, nil)
	if err != nil || damaged != nil {
		t.Fatal(err, damaged)
	}
	return e
}

// longLease stores a lease of a client with the longest identifiers.
func longLease(e *engine, a netip.Addr) {
	now := e.clock.now()
	long := strings.Repeat("\xc8", 255)
	h := &holder{client: "c" + a.String(), hardware: "\t\t\t\x00\x00\x01", clientID: long, vendor: long, parameters: long}
	e.change(nil, &lease{network: 7, pool: 8, address: a, state: dhcpdata.Leased, start: now, renewed: now, expires: now + 1000, holder: h},
		dhcplease.Begin, 0)
}

// TestSnapshotParts checks that the manager accepts the parts of the list of all leases. In order, the records contain the leases of the
// server, although leases end meanwhile. The list is written once, also after a checkpoint and a restart.
func TestSnapshotParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := snapshotEngine(t, dir)
	e.endRecall() // the server has reported its leases before
	const n = 600
	var all []netip.Addr
	a := netip.MustParseAddr("10.0.1.0")
	e.mu.Lock()
	for range n {
		longLease(e, a)
		all = append(all, a)
		a = a.Next()
	}
	e.mu.Unlock()
	content := withSnapshot(t, 3)
	deliver(t, func(text []byte) error { return e.takeContent(bytes.NewReader(text)) }, content)
	for _, a := range all[:n/2] {
		e.mu.Lock()
		l := e.table.lease(a)
		e.change(l, endedLease(l, e.clock.now()), dhcplease.Release, 0)
		e.mu.Unlock()
	}
	snapshot := func() int64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.snapshot
	}
	waitFor(t, func() bool { return snapshot() == 3 })
	if err := e.flush(); err != nil {
		t.Fatal(err)
	}
	read := func() (known map[netip.Addr]bool, parts int, last bool) {
		r := newReports(e, "j")
		known = map[netip.Addr]bool{}
		previous := uint64(0)
		for {
			some := r.read()
			if len(some) == 0 {
				return known, parts, last
			}
			for _, one := range some {
				var record dhcplease.Record
				if err := json.Unmarshal(one.Data, &record); err != nil || record.Check() != nil {
					t.Fatalf("%s: %v %v", one.Data[:200], err, record.Check())
				}
				if len(one.Data) > stream.MaxRecord {
					t.Errorf("a record has %d octets", len(one.Data))
				}
				if record.Previous != previous {
					t.Errorf("the record %d follows %d, want %d", record.Sequence, record.Previous, previous)
				}
				previous = record.Sequence
				switch {
				case record.Snapshot != nil:
					if record.Snapshot.Part != parts {
						t.Errorf("part %d, want %d", record.Snapshot.Part, parts)
					}
					parts++
					last = record.Snapshot.Last
					for _, l := range record.Snapshot.Leases {
						known[l.Address] = true
					}
				case record.Event.Kind == dhcplease.Begin:
					known[record.Event.Lease.Address] = true
				default:
					delete(known, record.Event.Lease.Address)
				}
			}
			r.mu.Lock()
			r.pending = nil
			r.mu.Unlock()
		}
	}
	known, parts, last := read()
	if len(known) != n/2 || !last || parts < n/2*2000/stream.MaxRecord {
		t.Errorf("%d leases are known after %d parts, last %v", len(known), parts, last)
	}
	for _, a := range all[:n/2] {
		if known[a] {
			t.Errorf("the lease of %s has ended, and is known", a)
		}
	}
	if err := e.writeCheckpoint(); err != nil {
		t.Fatal(err)
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	e = snapshotEngine(t, dir)
	if got := snapshot(); got != 3 {
		t.Errorf("after a restart, the last snapshot is %d", got)
	}
	deliver(t, func(text []byte) error { return e.takeContent(bytes.NewReader(text)) }, content)
	if _, again, _ := read(); again != parts {
		t.Errorf("%d parts after a restart, %d before", again, parts)
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotIsRepeated checks that a list that was cut off by a stop counts as not written.
func TestSnapshotIsRepeated(t *testing.T) {
	dir := t.TempDir()
	e := snapshotEngine(t, dir)
	entry, err := snapshotEntry(dhcplease.Snapshot{ID: 1, Requested: 4, Leases: []dhcplease.Lease{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.journal.append([][]byte{entry}); err != nil {
		t.Fatal(err)
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	e = snapshotEngine(t, dir)
	deliver(t, func(text []byte) error { return e.takeContent(bytes.NewReader(text)) }, withSnapshot(t, 4))
	waitFor(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.snapshot == 4
	})
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
}

// TestMissingEntriesAreReported checks that the record after missing entries of the journal does not follow the record before them.
func TestMissingEntriesAreReported(t *testing.T) {
	e := snapshotEngine(t, t.TempDir())
	for i := range 4 {
		e.mu.Lock()
		longLease(e, netip.MustParseAddr(fmt.Sprintf("10.0.1.%d", i)))
		e.mu.Unlock()
	}
	if err := e.flush(); err != nil {
		t.Fatal(err)
	}
	r := newReports(e, "j")
	r.seen, r.previous = 0, 0
	r.cursor.next = 3 // as after the loss of a segment
	var record dhcplease.Record
	if err := json.Unmarshal(r.read()[0].Data, &record); err != nil || record.Sequence != 3 || record.Previous != 2 {
		t.Errorf("the record is %d after %d: %v", record.Sequence, record.Previous, err)
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
}
