package dhcp

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"testing"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// restore returns the order to restore a lease of a client with the hardware address 02:00:00:00:00:n.
func restore(id int64, address string, n byte, start, expires int64) dhcpdata.Order {
	return dhcpdata.Order{ID: id, Address: netip.MustParseAddr(address), Action: dhcpdata.RestoreLease, Lease: &dhcpdata.RestoredLease{
		Start: start, Expires: expires, HardwareType: 1, Hardware: dhcpdata.Hex{2, 0, 0, 0, 0, n}, HostName: "lamp",
		CircuitID: dhcpdata.Hex("eth0/1")}}
}

// TestRestoredLeases checks that leases of another server are leased to their clients, once, also after a restart, that a newer lease
// stays, and that the manager learns what became of each.
func TestRestoredLeases(t *testing.T) {
	dir := t.TempDir()
	s, address := start(t, dir, units(t, noPing))
	now := s.engine.clock.now()
	mine := dial(t, address, 1)
	got := mine.lease()
	if got == "" {
		t.Fatal("the client gets no lease")
	}
	abandoned := restore(104, "10.0.1.4", 0, now-50, now+1000)
	abandoned.Lease = &dhcpdata.RestoredLease{Start: now - 50, Expires: now + 1000, Abandoned: true}
	content := units(t, noPing, restore(101, "10.0.100.1", 7, now-100, now+1000), restore(102, got, 8, now-100, now+1000),
		restore(103, "10.0.100.3", 3, now-100, now-1), abandoned, restore(105, "10.0.0.20", 9, now-100, now+1000))
	for range 2 {
		deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) }, content)
	}
	if err := s.engine.flush(); err != nil {
		t.Fatal(err)
	}
	state := func(a string) dhcpdata.LeaseState {
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		l, _ := s.engine.table.Lease(netip.MustParseAddr(a))
		return l
	}
	if l := state("10.0.100.1"); l.State != dhcpdata.Leased || l.Expires != now+1000 || string(l.Hardware) != "\x02\x00\x00\x00\x00\x07" {
		t.Errorf("10.0.100.1 is %+v", l)
	}
	if l := state(got); string(l.Hardware) != "\x02\x00\x00\x00\x00\x01" {
		t.Errorf("the newer lease is %+v", l)
	}
	if l := state("10.0.1.4"); l.State != dhcpdata.Abandoned {
		t.Errorf("the abandoned address is %+v", l)
	}
	kinds := map[int64]dhcplease.Kind{}
	reports := newReports(s.engine, "j")
	for batch := reports.read(); len(batch) > 0; batch = reports.read() {
		for _, one := range batch {
			var r dhcplease.Record
			if err := json.Unmarshal(one.Data, &r); err != nil {
				t.Fatal(err)
			}
			if r.Event != nil && r.Event.Order != 0 {
				if kinds[r.Event.Order] != "" {
					t.Errorf("the order %d is performed twice", r.Event.Order)
				}
				kinds[r.Event.Order] = r.Event.Kind
				if r.Event.Order == 105 && r.Event.Lease.Reservation != 9 || r.Event.Order == 101 && r.Event.Lease.CircuitID == "" {
					t.Errorf("the lease is %+v", r.Event.Lease)
				}
			}
		}
		reports.mu.Lock()
		reports.pending = nil
		reports.mu.Unlock()
	}
	for id, want := range map[int64]dhcplease.Kind{101: dhcplease.Begin, 102: dhcplease.Change, 103: dhcplease.Ordered,
		104: dhcplease.Abandon, 105: dhcplease.Begin} {
		if kinds[id] != want {
			t.Errorf("the order %d is reported as %q, want %s", id, kinds[id], want)
		}
	}
	renewing := dial(t, address, 7)
	if r := renewing.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(netip.MustParseAddr("10.0.100.1").AsSlice())); r == nil ||
		r.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("the renewal is answered by %v", r)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = start(t, dir, content)
	if l := state("10.0.100.1"); l.State != dhcpdata.Leased || l.Expires < now+1000 {
		t.Errorf("after a restart 10.0.100.1 is %+v", l)
	}
}

// TestRestoredLeasesOfPair checks that both servers of a pair restore a lease, and agree about it without a conflict.
func TestRestoredLeasesOfPair(t *testing.T) {
	one, two := newPairMembers(t, 256)
	agree(t, one, two)
	now := one.engine.clock.now()
	for _, m := range []*pairMember{one, two} {
		u := pairUnits(t, m.pair, m.size)
		id := dhcpdata.NetworkUnit(7)
		var orders []dhcpdata.Record
		for n := range byte(20) {
			r, err := dhcpdata.Encode(restore(int64(200+n), netip.AddrFrom4([4]byte{10, 0, 1, n}).String(), n, now-100, now+5000))
			if err != nil {
				t.Fatal(err)
			}
			orders = append(orders, r)
		}
		x, err := dhcpdata.NewUnit(id, append(orders, u[id].Records...))
		if err != nil {
			t.Fatal(err)
		}
		u[id] = x
		deliver(t, func(text []byte) error { return m.ApplyContent(bytes.NewReader(text)) }, u)
	}
	agree(t, one, two)
	for _, m := range []*pairMember{one, two} {
		m.engine.mu.Lock()
		n := 0
		for l := range m.engine.table.all {
			const rounding = 10 // a record contains the length of a lease
			if l.state == dhcpdata.Leased && l.expires >= now+5000 && l.expires <= now+5000+rounding {
				n++
			}
		}
		m.engine.mu.Unlock()
		if n != 20 || m.engine.pairStates()[0].Conflicts != 0 {
			t.Errorf("a server has %d leases and %d conflicts", n, m.engine.pairStates()[0].Conflicts)
		}
	}
}
