package dhcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

// units6 returns content with the network 2001:db8:1::/48 (40): a range (41) of 64 addresses, prefixes of length 56 (42), and an address
// and a prefix that are reserved for client 9.
func units6(t testing.TB, more ...dhcpdata.Item) dhcpdata.Units {
	t.Helper()
	interval := func(first, last string) []dhcpdata.Interval {
		return []dhcpdata.Interval{{First: netip.MustParseAddr(first), Last: netip.MustParseAddr(last)}}
	}
	duid := dhcpdata.Hex((&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}).ToBytes())
	items := append([]dhcpdata.Item{
		dhcpdata.Network{ID: 40, Prefix: netip.MustParsePrefix("2001:db8:1::/48")},
		dhcpdata.Pool{ID: 41, Ranges: interval("2001:db8:1::1:0", "2001:db8:1::1:3f")},
		dhcpdata.Pool{ID: 42, DelegatedLength: 56, Ranges: interval("2001:db8:1:8000::", "2001:db8:1:bfff:ffff:ffff:ffff:ffff")},
		dhcpdata.Reservation{ID: 43, Address: netip.MustParseAddr("2001:db8:1::99"), DUID: duid},
		dhcpdata.Reservation{ID: 44, Address: netip.MustParseAddr("2001:db8:1:8100::"), PrefixLength: 56, DUID: duid},
		dhcpdata.Option{V6: true, Code: 23, Name: "dns-servers", Value: dhcpdata.Hex(net.ParseIP("2001:db8::53")),
			From: dhcpdata.Source{Level: dhcpdata.AtNetwork, ID: 40}}}, more...)
	u := units(t, noPing)
	u[dhcpdata.NetworkUnit(40)] = unit(t, dhcpdata.NetworkUnit(40), items...)
	return u
}

// start6 starts a service that listens for DHCPv6 on the loopback interface.
func start6(t testing.TB, dir string, u dhcpdata.Units) (*service, netip.AddrPort) {
	t.Helper()
	s, address := start(t, dir, u)
	at := netip.AddrPortFrom(netip.IPv6Loopback(), freeport.Reserve(t).Port())
	if err := s.Configure(json.RawMessage(fmt.Sprintf(`{"listen":[%q],"listen6":[%q]}`, address, at))); err != nil {
		t.Skipf("no IPv6 on the loopback interface: %v", err)
	}
	return s, at
}

// client6 is a client behind a relay.
type client6 struct {
	t      testing.TB
	conn   net.Conn
	duid   dhcpv6.DUID
	server dhcpv6.DUID
}

func dial6(t testing.TB, at netip.AddrPort, n byte) *client6 {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "udp6", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client6{t: t, conn: conn, duid: &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, n}}}
}

// ask sends a message through a relay and returns the reply; nil if there is none.
func (c *client6) ask(kind dhcpv6.MessageType, change ...dhcpv6.Modifier) *dhcpv6.Message {
	c.t.Helper()
	m, err := dhcpv6.NewMessage(append([]dhcpv6.Modifier{dhcpv6.WithClientID(c.duid),
		dhcpv6.WithRequestedOptions(dhcpv6.OptionDNSRecursiveNameServer)}, change...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	m.MessageType = kind
	if c.server != nil && kind != dhcpv6.MessageTypeSolicit && kind != dhcpv6.MessageTypeRebind && kind != dhcpv6.MessageTypeConfirm {
		m.AddOption(dhcpv6.OptServerID(c.server))
	}
	relayed, err := dhcpv6.EncapsulateRelay(m, dhcpv6.MessageTypeRelayForward, net.ParseIP("2001:db8:1::1"), net.ParseIP("fe80::1"))
	if err != nil {
		c.t.Fatal(err)
	}
	relayed.AddOption(dhcpv6.OptInterfaceID([]byte("port 7")))
	relayed.AddOption(&dhcpv6.OptRemoteID{EnterpriseNumber: 9, RemoteID: []byte("switch")})
	if _, err := c.conn.Write(relayed.ToBytes()); err != nil {
		c.t.Fatal(err)
	}
	if err := c.conn.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	buffer := make([]byte, 4000)
	for {
		n, err := c.conn.Read(buffer)
		if err != nil {
			return nil
		}
		outer, err := dhcpv6.FromBytes(buffer[:n])
		if err != nil {
			c.t.Fatalf("%x: %v", buffer[:n], err)
		}
		r, ok := outer.(*dhcpv6.RelayMessage)
		if !ok || string(r.Options.InterfaceID()) != "port 7" {
			c.t.Fatalf("the reply to the relay is %v", outer)
		}
		if inner, ok := r.Options.RelayMessage().(*dhcpv6.Message); ok && inner.TransactionID == m.TransactionID {
			c.server = inner.Options.ServerID()
			return inner
		}
	}
}

func withNA(address string) dhcpv6.Modifier {
	if address == "" {
		return dhcpv6.WithIAID([4]byte{0, 0, 0, 1})
	}
	return dhcpv6.WithIANA(dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(address)})
}

func withPD() dhcpv6.Modifier { return dhcpv6.WithIAPD([4]byte{0, 0, 0, 2}) }

// leased returns the address and the prefix of a message.
func leased(m *dhcpv6.Message) (address, prefix string) {
	if m == nil {
		return "no reply", ""
	}
	if one := m.Options.OneIANA(); one != nil && one.Options.OneAddress() != nil {
		address = one.Options.OneAddress().IPv6Addr.String()
	}
	if one := m.Options.OneIAPD(); one != nil && len(one.Options.Prefixes()) > 0 {
		prefix = one.Options.Prefixes()[0].Prefix.String()
	}
	return address, prefix
}

// lease performs a four-way exchange and returns the address and the prefix.
func (c *client6) lease() (address, prefix string) {
	c.t.Helper()
	offer := c.ask(dhcpv6.MessageTypeSolicit, withNA(""), withPD())
	if offer == nil || offer.MessageType != dhcpv6.MessageTypeAdvertise {
		c.t.Fatalf("the reply to a SOLICIT is %v", offer)
	}
	m := c.ask(dhcpv6.MessageTypeRequest, func(d dhcpv6.DHCPv6) {
		d.AddOption(offer.Options.OneIANA())
		d.AddOption(offer.Options.OneIAPD())
	})
	address, prefix = leased(m)
	if offered, delegated := leased(offer); m == nil || address != offered || prefix != delegated || len(m.Options.DNS()) != 1 {
		c.t.Fatalf("the offer is %s, the reply %v", offer, m)
	}
	return address, prefix
}

// again returns a modifier with the address and the prefix of a client.
func again(address, prefix string) dhcpv6.Modifier {
	return func(d dhcpv6.DHCPv6) {
		ia := &dhcpv6.OptIANA{IaId: [4]byte{0, 0, 0, 1}}
		ia.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(address)})
		d.AddOption(ia)
		if _, n, err := net.ParseCIDR(prefix); err == nil {
			pd := &dhcpv6.OptIAPD{IaId: [4]byte{0, 0, 0, 2}}
			pd.Options.Add(&dhcpv6.OptIAPrefix{Prefix: n})
			d.AddOption(pd)
		}
	}
}

// TestLeases6 checks a whole life of leases of IPv6 over a socket: leases, renewals, a restart, a release and a decline, and the records
// for the manager.
func TestLeases6(t *testing.T) {
	dir := t.TempDir()
	s, at := start6(t, dir, units6(t))
	first, reserved := dial6(t, at, 1), dial6(t, at, 9)
	address, prefix := first.lease()
	if !strings.HasPrefix(address, "2001:db8:1::1:") || !strings.HasSuffix(prefix, "::/56") {
		t.Errorf("%s %s", address, prefix)
	}
	if a, p := reserved.lease(); a != "2001:db8:1::99" || p != "2001:db8:1:8100::/56" {
		t.Errorf("reserved: %s %s", a, p)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, at = start6(t, dir, units6(t))
	server := first.server
	first = dial6(t, at, 1)
	first.server = server
	m := first.ask(dhcpv6.MessageTypeRenew, again(address, prefix))
	if a, p := leased(m); a != address || p != prefix {
		t.Errorf("after a restart: %v", m)
	}
	other := dial6(t, at, 2)
	other.server = server
	m = other.ask(dhcpv6.MessageTypeRenew, again(address, ""))
	if m == nil || m.Options.OneIANA().Options.Status() == nil || m.Options.OneIANA().Options.Status().StatusCode != iana.StatusNoBinding {
		t.Errorf("a renewal of another client's address: %v", m)
	}
	records := collected(t, s, func(all []dhcplease.Record) bool { return len(all) >= 4 })
	found := 0
	for _, r := range records {
		if r.Event == nil || r.Event.Kind != dhcplease.Begin || r.Event.Lease.MAC != "020000000001" {
			continue
		}
		l := r.Event.Lease
		if l.DUID != "00030001020000000001" || l.RemoteID != "737769746368" || l.InterfaceID != "706f72742037" || l.Network != 40 ||
			l.Relay != netip.MustParseAddr("2001:db8:1::1") || l.ClientID != "" {
			t.Errorf("%+v", l)
		}
		delegated := fmt.Sprintf("%s/%d", l.Address, l.PrefixLength)
		if l.Address.String() == address && l.PrefixLength == 0 && l.IAID == 1 || delegated == prefix && l.IAID == 2 {
			found++
		}
	}
	if found != 2 {
		t.Errorf("the records are %+v", records)
	}
	if m = first.ask(dhcpv6.MessageTypeRelease, again(address, prefix)); m == nil || m.Options.Status().StatusCode != iana.StatusSuccess {
		t.Errorf("RELEASE: %v", m)
	}
	if stateOf(s, address) != dhcpdata.Free || stateOf(s, strings.TrimSuffix(prefix, "/56")) != dhcpdata.Free {
		t.Error("the lease was not released before the reply")
	}
	if a, p := first.lease(); a != address || p != prefix {
		t.Errorf("a client that returns gets %s and %s, not %s and %s", a, p, address, prefix)
	}
	if m = first.ask(dhcpv6.MessageTypeDecline, again(address, "")); m == nil || stateOf(s, address) != dhcpdata.Abandoned {
		t.Errorf("DECLINE: %v", m)
	}
	if a, _ := first.lease(); a == address {
		t.Error("a declined address is leased again")
	}
}

// failing is a file whose writes fail while fails returns true.
type failing struct {
	journalFile
	fails func() bool
}

func (f *failing) Sync() error {
	if f.fails() {
		return syscall.ENOSPC
	}
	return f.journalFile.Sync()
}

// duidOf returns the identifier of a client.
func duidOf(n byte) []byte { return []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, n} }

// message6For returns a SOLICIT or REQUEST for an address, from a client of the network 2001:db8:1::/48.
func message6For(t testing.TB, e *engine, kind uint8, client byte) *request6 {
	t.Helper()
	packet := []byte{kind, 1, 2, 3}
	packet = dhcpmsg.AppendOption6(packet, dhcpmsg.OptClientID6, duidOf(client))
	packet = dhcpmsg.AppendOption6(packet, dhcpmsg.OptIANA6, []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	if kind == dhcpmsg.Request6 {
		packet = dhcpmsg.AppendOption6(packet, dhcpmsg.OptServerID6, e.content.Load().compiled.ServerDUID())
	}
	m, err := dhcpmsg.Parse6(packet)
	if err != nil {
		t.Fatal(err)
	}
	return &request6{facts: dhcpdata.Facts6{Message: m, Interface: []netip.Prefix{netip.MustParsePrefix("2001:db8:1::1/64")}}}
}

// TestStored6 checks that a lease is on the disk before the reply, and that a full disk gives no lease.
func TestStored6(t *testing.T) {
	var mu sync.Mutex
	fails := false
	o := journalOptions{open: func(path string) (journalFile, error) {
		f, err := openAppend(path)
		return &failing{f, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return fails
		}}, err
	}}
	e, damaged, err := newEngine(t.TempDir(), slog.New(slog.DiscardHandler), o, silence)
	if err := errors.Join(err, damaged); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.close() }()
	deliver(t, func(text []byte) error { return e.takeContent(bytes.NewReader(text)) }, units6(t))
	ask := func(kind uint8, client byte) (got []byte) {
		t.Helper()
		replies := make(chan []byte, 1)
		r := message6For(t, e, kind, client)
		r.reply = func(packet []byte) { replies <- packet }
		e.handle6(r)
		select {
		case got = <-replies:
		case <-time.After(300 * time.Millisecond):
		}
		return got
	}
	last := e.journal.last.Load()
	if ask(3, 1) == nil || e.journal.last.Load() != last+1 {
		t.Error("a REQUEST is not answered, or not stored")
	}
	mu.Lock()
	fails = true
	mu.Unlock()
	if got := ask(3, 2); got != nil {
		t.Errorf("a full disk gives %x", got)
	}
	e.mu.Lock()
	e.table.eachOf(dhcpdata.Identity6(false, 1, duidOf(2)), func(l *lease) { t.Errorf("the lease of %s is in memory", l.address) })
	e.mu.Unlock()
	if got := ask(1, 3); got != nil { // a prefix that cannot be leased is not offered
		t.Errorf("a full disk offers %x", got)
	}
}

// TestForget6 checks that former leases of IPv6 are forgotten with a checkpoint after some time, and current ones are not.
func TestForget6(t *testing.T) {
	e, damaged, err := newEngine(t.TempDir(), slog.New(slog.DiscardHandler), journalOptions{}, silence)
	if err := errors.Join(err, damaged); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.close() }()
	now := e.clock.now()
	add := func(a string, state dhcpdata.State, expires int64) netip.Addr {
		l := &lease{network: 40, address: netip.MustParseAddr(a), state: state, expires: expires, holder: &holder{client: a}}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.table.set(l.address, l)
		return l.address
	}
	old := add("2001:db8::1", dhcpdata.Free, now-forgetAfter6-1)
	kept := []netip.Addr{add("2001:db8::2", dhcpdata.Free, now-100), add("2001:db8::3", dhcpdata.Leased, now+100),
		add("10.0.1.1", dhcpdata.Free, now-forgetAfter6-1)}
	if err := e.writeCheckpoint(); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.table.lease(old) != nil {
		t.Error("the former lease is kept")
	}
	for _, a := range kept {
		if e.table.lease(a) == nil {
			t.Errorf("%s is forgotten", a)
		}
	}
}

// silence is a probe that no machine answers.
func silence(netip.Addr, uint32) (net.HardwareAddr, bool) { return nil, false }
