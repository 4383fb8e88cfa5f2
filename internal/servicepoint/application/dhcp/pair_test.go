package dhcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/dhcppair"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// pairMember is a server of a pair in a test.
type pairMember struct {
	*service
	t       *testing.T
	dir     string
	address string
	at6     netip.AddrPort
	pair    dhcpdata.Pair
	listen  string
	size    int
}

// pairUnits returns the content of a server of a pair: a network with a range of size addresses, one of IPv6, and .20 reserved for
// hardware 9.
func pairUnits(t testing.TB, x dhcpdata.Pair, size int) dhcpdata.Units {
	t.Helper()
	self, address := int64(2), "127.0.0.2"
	if x.Primary {
		self, address = 1, "127.0.0.1"
	}
	last := netip.AddrFrom4([4]byte{10, 0, byte(1 + (size-1)/256), byte(size - 1)})
	return dhcpdata.Units{
		dhcpdata.ServerUnit: unit(t, dhcpdata.ServerUnit, dhcpdata.Server{ID: self, Name: "buoy", Configuration: 2,
			DUID:      dhcpdata.Hex{0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(self)},
			Addresses: []netip.Addr{netip.MustParseAddr(address)}}, x),
		dhcpdata.NetworkUnit(7): unit(t, dhcpdata.NetworkUnit(7), noPing, option("dhcp-cache-threshold", 0),
			dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/16"), Gateway: netip.MustParseAddr("10.0.0.1"), Pair: x.ID},
			dhcpdata.Pool{ID: 8, Ranges: []dhcpdata.Interval{{First: netip.MustParseAddr("10.0.1.0"), Last: last}}},
			dhcpdata.Reservation{ID: 9, Address: netip.MustParseAddr("10.0.0.20"), MAC: dhcpdata.Hex{2, 0, 0, 0, 0, 9}}),
		dhcpdata.NetworkUnit(40): unit(t, dhcpdata.NetworkUnit(40),
			dhcpdata.Option{V6: true, Code: 23, Name: "dns-servers", Value: dhcpdata.Hex(net.ParseIP("2001:db8::53")),
				From: dhcpdata.Source{Level: dhcpdata.AtNetwork, ID: 40}},
			dhcpdata.Network{ID: 40, Prefix: netip.MustParsePrefix("2001:db8:1::/48"), Pair: x.ID},
			dhcpdata.Pool{ID: 41, Ranges: []dhcpdata.Interval{{First: netip.MustParseAddr("2001:db8:1::1:0"),
				Last: netip.MustParseAddr("2001:db8:1::1:ff")}}},
			dhcpdata.Pool{ID: 42, DelegatedLength: 56, Ranges: []dhcpdata.Interval{{First: netip.MustParseAddr("2001:db8:1:8000::"),
				Last: netip.MustParseAddr("2001:db8:1:bfff:ffff:ffff:ffff:ffff")}}})}
}

// newPairMembers starts the servers of a pair and connects them. MCLT is 60 seconds, and size the number of addresses.
func newPairMembers(t *testing.T, size int) (one, two *pairMember) {
	t.Helper()
	port := freeport.Reserve(t)
	one = &pairMember{t: t, dir: t.TempDir(), size: size, address: freeport.Reserve(t).String(), listen: freeport.Reserve(t).String(),
		at6:  netip.AddrPortFrom(netip.IPv6Loopback(), freeport.Reserve(t).Port()),
		pair: dhcpdata.Pair{ID: 2, Primary: true, Partner: 2, PartnerName: "two", Endpoint: port, MCLT: 60, Split: 128, Override: 2}}
	two = &pairMember{t: t, dir: t.TempDir(), size: size, address: freeport.Reserve(t).String(), listen: port.String(),
		at6:  netip.AddrPortFrom(netip.IPv6Loopback(), freeport.Reserve(t).Port()),
		pair: dhcpdata.Pair{ID: 1, Partner: 1, PartnerName: "one", Endpoint: port, MCLT: 60, Split: 128, Override: 2}}
	one.start()
	two.start()
	meet(one, two)
	return one, two
}

// meet tells each server the key of the other.
func meet(one, two *pairMember) {
	one.pair.PartnerKey, two.pair.PartnerKey = two.engine.key.sum[:], one.engine.key.sum[:]
	one.deliver()
	two.deliver()
}

func (m *pairMember) start() {
	m.t.Helper()
	m.service = newService(m.dir, slog.New(slog.DiscardHandler))
	if m.failed != nil {
		m.t.Fatal(m.failed)
	}
	m.t.Cleanup(func() { _ = m.Close() })
	m.deliver()
	if err := m.Configure(json.RawMessage(fmt.Sprintf(`{"listen":[%q],"listen6":[%q],"listenPair":%q}`, m.address, m.at6,
		m.listen))); err != nil {
		m.t.Skipf("no IPv6 on the loopback interface: %v", err)
	}
}

func (m *pairMember) deliver() {
	m.t.Helper()
	deliver(m.t, func(text []byte) error { return m.ApplyContent(bytes.NewReader(text)) }, pairUnits(m.t, m.pair, m.size))
}

func (m *pairMember) state() string {
	for _, p := range m.engine.pairStates() {
		return p.State
	}
	return ""
}

// agree waits until the pair is normal and nothing is pending.
func agree(t *testing.T, one, two *pairMember) {
	t.Helper()
	waitFor(t, func() bool {
		for _, m := range []*pairMember{one, two} {
			if all := m.engine.pairStates(); len(all) != 1 || all[0].State != dhcppair.StateNormal || all[0].Pending > 0 {
				return false
			}
		}
		return len(differences(one, two)) == 0
	})
}

// differences returns the addresses with different holders.
func differences(one, two *pairMember) (all []string) {
	leases := [2]map[netip.Addr]string{{}, {}}
	for i, m := range []*pairMember{one, two} {
		m.engine.mu.Lock()
		for l := range m.engine.table.all {
			if l.state == dhcpdata.Leased {
				leases[i][l.address] = l.holder.client
			}
		}
		m.engine.mu.Unlock()
	}
	for a, client := range leases[0] {
		if leases[1][a] != client {
			all = append(all, a.String())
		}
	}
	for a := range leases[1] {
		if _, ok := leases[0][a]; !ok {
			all = append(all, a.String())
		}
	}
	return all
}

// pairClient is a client with sockets to both servers.
func pairClient(m *pairMember, n int) *client {
	c := dial(m.t, m.address, 0)
	c.mac = net.HardwareAddr{2, 0, 0, 1, byte(n >> 8), byte(n)}
	return c
}

// clientOf returns the number of a client that a side answers in the state NORMAL.
func clientOf(side dhcppair.Side, from int) int {
	for ; ; from++ {
		if low := dhcppair.Bucket(net.HardwareAddr{2, 0, 0, 1, byte(from >> 8), byte(from)}) < 128; low == (side == dhcppair.Primary) {
			return from
		}
	}
}

// TestPair checks the states of a pair. First leases last for MCLT, and renewals at either server have the complete lease time. Each
// server answers its own clients, and after the override also those of the partner. While one server is down, the other one renews its
// leases, and both agree after its return.
func TestPair(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	agree(t, one, two)
	n := clientOf(dhcppair.Primary, 1)
	if m := pairClient(two, n).ask(dhcpv4.MessageTypeDiscover); m != nil {
		t.Errorf("the secondary answers a client of the primary: %v", m)
	}
	c := pairClient(one, n)
	a := c.lease()
	if m := c.renew(a); m == nil || m.IPAddressLeaseTime(0) > time.Minute && m.IPAddressLeaseTime(0) < 23*time.Hour {
		t.Errorf("a renewal at once is %v", m)
	}
	agree(t, one, two)
	waitFor(t, func() bool { // the acknowledgement has arrived
		m := c.renew(a)
		return m != nil && m.IPAddressLeaseTime(0) > 23*time.Hour
	})
	agree(t, one, two)
	other := pairClient(two, n)
	if m := other.renew(a); m == nil || m.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("the renewal at the secondary is %v", m)
	}
	late := pairClient(two, clientOf(dhcppair.Primary, n+1))
	if m := late.ask(dhcpv4.MessageTypeDiscover, func(d *dhcpv4.DHCPv4) { d.NumSeconds = 2 }); m == nil {
		t.Error("the secondary does not answer after the override")
	}
	agree(t, one, two)

	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return two.state() == dhcppair.StateInterrupted })
	if m := other.renew(a); m == nil || m.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("the renewal without the primary is %v", m)
	}
	if m := pairClient(two, n+1).ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.ParseIP("10.0.1.98"))); m != nil {
		t.Errorf("a renewal of an address that only the primary can have leased is answered with %v", m)
	}
	b := pairClient(two, clientOf(dhcppair.Primary, n+100)).lease()
	if dhcppair.BaseOwner(netip.MustParseAddr(b)) != dhcppair.Secondary {
		t.Errorf("the secondary leases %s, which belongs to the primary", b)
	}
	one.start()
	agree(t, one, two)
}

// TestPairReservation checks that the owner of a reserved address answers its client, and after that either server.
func TestPairReservation(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	agree(t, one, two)
	reserved := func(m *pairMember) *client { return dial(t, m.address, 9) }
	if m := reserved(two).ask(dhcpv4.MessageTypeDiscover, func(d *dhcpv4.DHCPv4) { d.NumSeconds = 9 }); m != nil {
		t.Errorf("the server that does not own the reserved address answers %v", m)
	}
	if a := reserved(one).lease(); a != "10.0.0.20" {
		t.Errorf("the reserved client gets %s", a)
	}
	agree(t, one, two)
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return two.state() == dhcppair.StateInterrupted })
	if a := reserved(two).lease(); a != "10.0.0.20" {
		t.Errorf("the reserved client gets %s from the secondary", a)
	}
}

// TestPairShares checks that a server without free addresses gets some of its partner, until all are leased.
func TestPairShares(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 16)
	agree(t, one, two)
	seen := map[string]bool{}
	for n := 0; len(seen) < 14; n++ {
		number := clientOf(dhcppair.Primary, n)
		n = number
		c := pairClient(one, number)
		waitFor(t, func() bool { return c.ask(dhcpv4.MessageTypeDiscover) != nil })
		a := c.lease()
		if seen[a] {
			t.Fatalf("%s was leased twice", a)
		}
		seen[a] = true
	}
	agree(t, one, two)
}

// TestPairLostDisk checks that a server with an empty disk gets all leases of its partner, and leases nothing for the time of MCLT.
func TestPairLostDisk(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	agree(t, one, two)
	n := clientOf(dhcppair.Primary, 1)
	a := pairClient(one, n).lease()
	agree(t, one, two)
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	one.dir = t.TempDir()
	one.start()
	meet(one, two)
	waitFor(t, func() bool { return one.state() == dhcppair.StateRecoverWait && len(differences(one, two)) == 0 })
	if m := pairClient(one, n).renew(a); m != nil {
		t.Errorf("the recovering server answers %v", m)
	}
	if len(one.Health()) == 0 {
		t.Error("the recovering server is healthy")
	}
	if m := pairClient(two, n).renew(a); m == nil || m.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("the other server answers %v", m)
	}
}

// TestPairDown checks a declaration: the server continues alone, and a partner that was declared down leases nothing before they reconnect.
func TestPairDown(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	agree(t, one, two)
	n := clientOf(dhcppair.Primary, 1)
	a := pairClient(one, n).lease()
	agree(t, one, two)
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return two.state() == dhcppair.StateInterrupted })
	two.pair.PartnerDown, two.pair.Declaration = true, 5
	two.deliver()
	if two.state() != dhcppair.StatePartnerDown {
		t.Errorf("the state is %s", two.state())
	}
	if m := pairClient(two, n).renew(a); m == nil || m.IPAddressLeaseTime(0) < 23*time.Hour {
		t.Errorf("the renewal is %v", m)
	}
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	one.pair.DeclaredDown = 5
	one.start()
	if one.state() != dhcppair.StateRecover {
		t.Errorf("the state of the server that was declared down is %s", one.state())
	}
	if m := pairClient(one, n).renew(a); m != nil {
		t.Errorf("the server that was declared down answers %v", m)
	}
	two.start()
	if two.state() != dhcppair.StatePartnerDown {
		t.Errorf("the state after a restart is %s", two.state())
	}
	agree(t, one, two)
}

// TestPair6 checks the leases of IPv6 of a pair.
func TestPair6(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	agree(t, one, two)
	n := byte(1)
	for ; dhcppair.Bucket(duidOf(n)) >= 128; n++ {
	}
	c := dial6(t, one.at6, n)
	a, prefix := c.lease()
	if a == "" || prefix == "" {
		t.Fatalf("the client gets %q and %q", a, prefix)
	}
	agree(t, one, two)
	for _, one := range []string{a, netip.MustParsePrefix(prefix).Addr().String()} {
		if dhcppair.BaseOwner(netip.MustParseAddr(one)) != dhcppair.Primary {
			t.Errorf("the primary leases %s of the secondary", one)
		}
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return two.state() == dhcppair.StateInterrupted })
	c = dial6(t, two.at6, n)
	m := c.ask(6, again(a, prefix)) // REBIND
	if m == nil {
		t.Fatal("the other server does not answer a REBIND")
	}
	if b, p := leased(m); b != a || p != prefix {
		t.Errorf("the client has %s and %s after %s and %s", b, p, a, prefix)
	}
}

// TestPairReports checks that the manager learns the state and the key of a server of a pair.
func TestPairReports(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	agree(t, one, two)
	all := collected(t, one.service, func(all []dhcplease.Record) bool {
		return len(all) > 0 && all[len(all)-1].Pair != nil && all[len(all)-1].Pair.State == dhcppair.StateNormal
	})
	p := all[len(all)-1].Pair
	if p.Partner != 2 || !p.Connected || p.Key != one.engine.key.fingerprint() || p.MCLT != 60 {
		t.Errorf("the report is %+v", p)
	}
}

// TestPairRefusesOtherKey checks that a server with another key is not a partner.
func TestPairRefusesOtherKey(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	agree(t, one, two)
	two.pair.PartnerKey = bytes.Repeat([]byte{1}, 32)
	two.deliver()
	waitFor(t, func() bool { return one.state() == dhcppair.StateInterrupted })
	for range 20 {
		if two.state() == dhcppair.StateNormal {
			t.Fatal("a stranger is a partner")
		}
		time.Sleep(dialInterval / 10) // several attempts to connect
	}
	meet(one, two)
	agree(t, one, two)
}

// TestPairFreesAbandonedAddress checks that both servers of a pair learn of an address that a machine uses without a lease, whether its
// hardware address is known or not, and of a reserved address that its client declines, and that the address is free again on both after
// its time.
func TestPairFreesAbandonedAddress(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 16)
	agree(t, one, two)
	reserved := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	for i, by := range []*holder{holderWithout(net.HardwareAddr{2, 0, 0, 0, 0, 99}), holderWithout(nil),
		{client: dhcpdata.Identity(1, reserved, nil), hardware: string(reserved)}} {
		var a netip.Addr
		if by.hardware == string(reserved) {
			a = netip.MustParseAddr("10.0.0.20")
		}
		one.engine.mu.Lock()
		p := one.engine.pairOf(7)
		for n := range 16 {
			if at := netip.AddrFrom4([4]byte{10, 0, 1, byte(n)}); !a.IsValid() && p.Record(at).Owner == p.side() && !p.Record(at).IsHeld() {
				a = at
			}
		}
		one.engine.abandon(&dhcpdata.Decision{Network: 7, Pool: 8, Address: a, AbandonSeconds: 2}, by, dhcplease.Abandon)
		one.engine.mu.Unlock()
		is := func(m *pairMember, state dhcpdata.State, held bool) bool {
			m.engine.mu.Lock()
			defer m.engine.mu.Unlock()
			l := m.engine.table.lease(a)
			return l != nil && l.state == state && m.engine.pairOf(7).Record(a).IsHeld() == held
		}
		waitFor(t, func() bool { return is(one, dhcpdata.Abandoned, true) && is(two, dhcpdata.Abandoned, true) })
		waitFor(t, func() bool { return is(one, dhcpdata.Free, false) && is(two, dhcpdata.Free, false) })
		if t.Failed() {
			t.Fatalf("case %d", i)
		}
	}
}
