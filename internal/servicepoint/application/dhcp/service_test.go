package dhcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// unit returns a unit.
func unit(t testing.TB, id string, items ...dhcpdata.Item) *dhcpdata.Unit {
	t.Helper()
	u, err := dhcpdata.EncodeUnit(id, items...)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func option(name string, value any) dhcpdata.Service {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return dhcpdata.Service{Name: name, Value: text, From: dhcpdata.Source{Level: dhcpdata.AtNetwork, ID: 7}}
}

// units returns content with the network 10.0.0.0/16 (7), the range 10.0.1.0-10.0.200.255 (8), and .0.20 reserved for hardware 9.
func units(t testing.TB, more ...dhcpdata.Item) dhcpdata.Units {
	t.Helper()
	items := append([]dhcpdata.Item{
		dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/16"), Gateway: netip.MustParseAddr("10.0.0.1")},
		dhcpdata.Pool{ID: 8, Ranges: []dhcpdata.Interval{{First: netip.MustParseAddr("10.0.1.0"), Last: netip.MustParseAddr("10.0.200.255")}}},
		dhcpdata.Reservation{ID: 9, Address: netip.MustParseAddr("10.0.0.20"), MAC: dhcpdata.Hex{2, 0, 0, 0, 0, 9}}}, more...)
	return dhcpdata.Units{
		dhcpdata.ServerUnit: unit(t, dhcpdata.ServerUnit, dhcpdata.Server{ID: 1, Name: "buoy", Configuration: 2,
			Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
			DUID:      dhcpdata.Hex{0x00, 0x04, 0xac, 0x9a, 0xd5, 0x54, 0xa0, 0xbb, 0xf3, 0x6a, 0x66, 0x52, 0x7c, 0x2e, 0x18, 0x04, 0x85, 0x3c}}),
		dhcpdata.NetworkUnit(7): unit(t, dhcpdata.NetworkUnit(7), items...)}
}

var revisions atomic.Int64

// deliver sends content to an engine.
func deliver(t testing.TB, take func(text []byte) error, u dhcpdata.Units) {
	t.Helper()
	var text bytes.Buffer
	if err := dhcpdata.WriteAll(&text, dhcpdata.Revision{Number: revisions.Add(1), Hash: u.Hash()}.String(), u); err != nil {
		t.Fatal(err)
	}
	if err := take(text.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// start starts a service in a folder, with content and a listener on the loopback interface.
func start(t testing.TB, dir string, u dhcpdata.Units, prepare ...func(*service)) (*service, string) {
	t.Helper()
	s := newService(dir, slog.New(slog.DiscardHandler))
	if s.failed != nil {
		t.Fatal(s.failed)
	}
	for _, one := range prepare {
		one(s)
	}
	t.Cleanup(func() { _ = s.Close() })
	deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) }, u)
	address := freeport.Reserve(t).String()
	if err := s.Configure(json.RawMessage(fmt.Sprintf(`{"listen":[%q]}`, address))); err != nil {
		t.Fatal(err)
	}
	return s, address
}

// client is a client behind a relay.
type client struct {
	t    testing.TB
	conn net.Conn
	mac  net.HardwareAddr
}

func dial(t testing.TB, address string, n byte) *client {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn, mac: net.HardwareAddr{2, 0, 0, 0, 0, n}}
}

// ask sends a message and returns the reply; nil if there is none.
func (c *client) ask(kind dhcpv4.MessageType, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	c.t.Helper()
	change = append([]dhcpv4.Modifier{dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(c.mac),
		dhcpv4.WithGatewayIP(net.IPv4(10, 0, 0, 1))}, change...)
	m, err := dhcpv4.New(change...)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.exchange(m.ToBytes(), m.TransactionID)
}

func (c *client) exchange(packet []byte, transaction dhcpv4.TransactionID) *dhcpv4.DHCPv4 {
	c.t.Helper()
	if _, err := c.conn.Write(packet); err != nil {
		c.t.Fatal(err)
	}
	if err := c.conn.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	buffer := make([]byte, 2000)
	for {
		n, err := c.conn.Read(buffer)
		if err != nil {
			return nil
		}
		if m, err := dhcpv4.FromBytes(buffer[:n]); err == nil && m.TransactionID == transaction {
			return m
		}
	}
}

// lease performs a four-way exchange and returns the address.
func (c *client) lease() string {
	c.t.Helper()
	offer := c.ask(dhcpv4.MessageTypeDiscover)
	if offer == nil {
		c.t.Fatal("no offer")
	}
	ack := c.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier())))
	if ack == nil || ack.MessageType() != dhcpv4.MessageTypeAck || !ack.YourIPAddr.Equal(offer.YourIPAddr) {
		c.t.Fatalf("the reply to a request is %v", ack)
	}
	return ack.YourIPAddr.String()
}

func (c *client) renew(a string) *dhcpv4.DHCPv4 {
	c.t.Helper()
	return c.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.ParseIP(a)))
}

var noPing = option("ping-check", false)

// TestLeases checks a whole life of leases over a socket: offers, leases, renewals, a release, a decline, and a restart.
func TestLeases(t *testing.T) {
	dir := t.TempDir()
	s, address := start(t, dir, units(t, noPing))
	first, second, reserved := dial(t, address, 1), dial(t, address, 2), dial(t, address, 9)
	if a := first.lease(); a != "10.0.1.0" {
		t.Error(a)
	}
	if a := second.lease(); a != "10.0.1.1" {
		t.Error(a)
	}
	if a := reserved.lease(); a != "10.0.0.20" {
		t.Error(a)
	}
	if m := first.renew("10.0.1.0"); m == nil || m.MessageType() != dhcpv4.MessageTypeAck || m.IPAddressLeaseTime(0) > 24*time.Hour {
		t.Errorf("renewal: %v", m)
	}
	if m := first.renew("10.0.1.1"); m == nil || m.MessageType() != dhcpv4.MessageTypeNak {
		t.Errorf("renewal of another client's address: %v", m)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, address = start(t, dir, units(t, noPing))
	first, second = dial(t, address, 1), dial(t, address, 2)
	if m := second.renew("10.0.1.1"); m == nil || m.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("renewal after a restart: %v", m)
	}
	if _, err := second.conn.Write(message(t, second, dhcpv4.MessageTypeRelease, dhcpv4.WithClientIP(net.IPv4(10, 0, 1, 1)))); err != nil {
		t.Fatal(err)
	}
	if _, err := first.conn.Write(message(t, first, dhcpv4.MessageTypeDecline,
		dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IPv4(10, 0, 1, 0))))); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		return stateOf(s, "10.0.1.1") == dhcpdata.Free && stateOf(s, "10.0.1.0") == dhcpdata.Abandoned
	})
	if a := first.lease(); a == "10.0.1.0" {
		t.Error("a declined address is leased again")
	}
	if a := second.lease(); a != "10.0.1.1" {
		t.Errorf("a client that returns gets %s", a)
	}
	if conditions := s.Health(); len(conditions) > 0 {
		t.Error(conditions)
	}
}

func message(t *testing.T, c *client, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) []byte {
	t.Helper()
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(c.mac),
		dhcpv4.WithGatewayIP(net.IPv4(10, 0, 0, 1))}, change...)...)
	if err != nil {
		t.Fatal(err)
	}
	return m.ToBytes()
}

func stateOf(s *service, a string) dhcpdata.State {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	l, ok := s.engine.table.Lease(netip.MustParseAddr(a))
	if !ok {
		return 99
	}
	return l.State
}

func waitFor(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition did not become true")
		}
	}
}

// collected returns the records of a service until a condition holds.
func collected(t *testing.T, s *service, enough func([]dhcplease.Record) bool) (all []dhcplease.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !enough(all) {
		records := s.Records(ctx)
		if len(records) == 0 {
			t.Fatalf("only %d records: %+v", len(all), all)
		}
		for _, one := range records {
			if one.Kind == dhcplease.Observations {
				continue
			}
			var r dhcplease.Record
			if err := json.Unmarshal(one.Data, &r); err != nil {
				t.Fatal(err)
			}
			if err := r.Check(); err != nil || one.Kind != dhcplease.Stream {
				t.Errorf("%s: %v", one.Data, err)
			}
			all = append(all, r)
		}
		s.Acknowledge(records[len(records)-1].Number)
	}
	return all
}

// TestReports checks the records for the manager: begin, change, release, end by order, and renewals as a digest, in order and once.
func TestReports(t *testing.T) {
	dir := t.TempDir()
	base := []dhcpdata.Item{noPing, option("dhcp-cache-threshold", 0)}
	s, address := start(t, dir, units(t, base...))
	c := dial(t, address, 1)
	a := c.lease()
	c.renew(a)
	for range 2 {
		c.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.ParseIP(a)), dhcpv4.WithOption(dhcpv4.OptHostName("pc")))
	}
	s.engine.writeDigests()
	order := dhcpdata.Order{ID: 77, Address: netip.MustParseAddr(a), Action: dhcpdata.EndLease}
	idle := dhcpdata.Order{ID: 78, Address: netip.MustParseAddr("10.0.9.9"), Action: dhcpdata.EndLease}
	take := func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) }
	deliver(t, take, units(t, append(base, order, idle)...))
	all := collected(t, s, func(all []dhcplease.Record) bool { return len(all) >= 5 })
	var kinds []string
	for i, r := range all {
		if i > 0 && r.Sequence <= all[i-1].Sequence {
			t.Errorf("the sequence %d follows %d", r.Sequence, all[i-1].Sequence)
		}
		switch {
		case r.Event != nil:
			kinds = append(kinds, fmt.Sprintf("%s %s %d", r.Event.Kind, r.Event.Lease.HostName, r.Event.Order))
		case r.Renewals != nil:
			renewals, err := dhcplease.Unpack(r.Renewals.Packed)
			if err != nil || len(renewals) != 1 || renewals[0].Address.String() != a {
				t.Error(renewals, err)
			}
			kinds = append(kinds, "renewals")
		}
	}
	slices.Sort(kinds[len(kinds)-2:]) // the orders are performed in any order
	if got := strings.Join(kinds, ", "); got != "BEGIN  0, CHANGE pc 0, renewals, END pc 77, ORDERED  78" {
		t.Error(got)
	}
	if m := c.renew(a); m == nil || m.MessageType() != dhcpv4.MessageTypeNak {
		t.Errorf("the renewal of an ended lease: %v", m)
	}
	deliver(t, take, units(t, append(base, order)...)) // an order is performed once
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	server := dhcpdata.Server{ID: 1, Name: "buoy", Configuration: 2, Snapshot: 5}
	u := units(t, append(base, order)...)
	u[dhcpdata.ServerUnit] = unit(t, dhcpdata.ServerUnit, server)
	s, address = start(t, dir, u, func(s *service) { s.engine.endRecall() })
	dial(t, address, 3).lease()
	var begins, snapshots int
	for _, r := range collected(t, s, func(all []dhcplease.Record) bool {
		return slices.ContainsFunc(all, func(r dhcplease.Record) bool { return r.Snapshot != nil && r.Snapshot.Last }) &&
			slices.ContainsFunc(all, func(r dhcplease.Record) bool { return r.Event != nil })
	}) {
		if r.Sequence <= all[len(all)-1].Sequence {
			t.Errorf("the acknowledged record %d is sent again", r.Sequence)
		}
		if r.Event != nil && r.Event.Kind == dhcplease.Begin {
			begins++
		}
		if r.Snapshot != nil {
			snapshots++
		}
	}
	if begins != 1 || snapshots != 1 {
		t.Errorf("%d begins, %d parts of snapshots", begins, snapshots)
	}
}

// TestProbe checks that an address that answers is abandoned and reported, and that the client gets another one.
func TestProbe(t *testing.T) {
	taken := netip.MustParseAddr("10.0.1.0")
	s, address := start(t, t.TempDir(), units(t), func(s *service) {
		s.engine.probe = func(a netip.Addr, _ uint32) (net.HardwareAddr, bool) {
			return net.HardwareAddr{2, 0, 0, 0, 0, 99}, a == taken
		}
	})
	if a := dial(t, address, 1).lease(); a != "10.0.1.1" {
		t.Error(a)
	}
	if got := stateOf(s, "10.0.1.0"); got != dhcpdata.Abandoned {
		t.Errorf("the address is in the state %d", got)
	}
	all := collected(t, s, func(all []dhcplease.Record) bool { return len(all) >= 2 })
	if l := all[0].Event.Lease; all[0].Event.Kind != dhcplease.Abandon || all[1].Event.Kind != dhcplease.Begin || l.MAC != "020000000063" ||
		l.HostName != "" {
		t.Errorf("%+v", all)
	}
}

// TestFullJournal checks that no client gets an ACK while the disk is full, that no lease is lost, and that service resumes.
func TestFullJournal(t *testing.T) {
	t.Parallel()
	s, address := start(t, t.TempDir(), units(t, noPing, option("dhcp-cache-threshold", 0)))
	c := dial(t, address, 1)
	a := c.lease()
	j := s.engine.journal
	j.writing.Lock()
	file := j.file
	j.file = brokenFile{file}
	j.writing.Unlock()
	before := leaseAt(s, a)
	if m := c.renew(a); m != nil {
		t.Errorf("a renewal on a full disk: %v", m)
	}
	if leaseAt(s, a).version != before.version {
		t.Error("the failed renewal has changed the lease")
	}
	if m := dial(t, address, 2).ask(dhcpv4.MessageTypeDiscover); m != nil {
		t.Errorf("an offer on a full disk: %v", m)
	}
	if conditions := s.Health(); len(conditions) != 1 || !strings.Contains(conditions[0], "cannot be written") {
		t.Error(conditions)
	}
	j.writing.Lock()
	j.file = file
	j.writing.Unlock()
	waitFor(t, func() bool { return !s.engine.full.Load() })
	if m := c.renew(a); m == nil || m.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("a renewal with space: %v", m)
	}
}

func leaseAt(s *service, a string) *lease {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	return s.engine.table.lease(netip.MustParseAddr(a))
}

// brokenFile is a file on a full disk.
type brokenFile struct{ journalFile }

func (brokenFile) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
func (brokenFile) Truncate(int64) error      { return nil }

// TestExpiry checks that a lease expires, is reported, and that its address goes to the next client only after all others.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s, address := start(t, t.TempDir(), units(t, noPing, option("default-lease-time", 1), option("min-lease-time", 1)))
	if a := dial(t, address, 1).lease(); a != "10.0.1.0" {
		t.Error(a)
	}
	all := collected(t, s, func(all []dhcplease.Record) bool { return len(all) >= 2 })
	if all[1].Event.Kind != dhcplease.Expire {
		t.Errorf("%+v", all[1])
	}
	if a := dial(t, address, 2).lease(); a != "10.0.1.1" {
		t.Error(a)
	}
	if a := dial(t, address, 1).lease(); a != "10.0.1.0" {
		t.Errorf("the former client gets %s", a)
	}
}

// TestBadInput checks that malformed messages over the socket are counted by reason and that the server continues.
func TestBadInput(t *testing.T) {
	s, address := start(t, t.TempDir(), units(t, noPing))
	c := dial(t, address, 1)
	good := message(t, c, dhcpv4.MessageTypeDiscover)
	for reason, change := range map[string]func([]byte) []byte{
		"short":            func(p []byte) []byte { return p[:100] },
		"not-a-request":    func(p []byte) []byte { p[0] = 2; return p },
		"hardware-length":  func(p []byte) []byte { p[2] = 255; return p },
		"hops":             func(p []byte) []byte { p[3] = 17; return p },
		"truncated-option": func(p []byte) []byte { return append(p[:243], 12, 200) },
		"no-end-option":    func(p []byte) []byte { return p[:243] },
		"no-network":       func(p []byte) []byte { copy(p[24:], []byte{0, 0, 0, 1}); return p },
		"bad-message":      func(p []byte) []byte { copy(p[24:], []byte{224, 0, 0, 1}); return p },
	} {
		before := refusals(s, reason)
		if _, err := c.conn.Write(change(slices.Clone(good))); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return refusals(s, reason) > before })
	}
	if _, err := c.conn.Write(make([]byte, 60_000)); err != nil {
		t.Fatal(err)
	}
	if a := c.lease(); a != "10.0.1.0" {
		t.Error(a)
	}
}

func refusals(s *service, reason string) int64 {
	_, _, refused, _ := s.engine.counters.copy()
	return refused[reason]
}

// TestFlood checks that a flood of DISCOVERs from random hardware addresses is bounded, and that renewals are answered meanwhile.
func TestFlood(t *testing.T) {
	s, address := start(t, t.TempDir(), units(t, noPing))
	c := dial(t, address, 1)
	a := c.lease()
	e := s.engine
	for n := range maxOffersPerRelay + 1000 {
		e.mu.Lock()
		e.table.offer(offer{network: 7, pool: 8, client: fmt.Sprint(n), relay: netip.MustParseAddr("10.0.0.1")},
			netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}))
		e.mu.Unlock()
	}
	if n := e.table.offers.all.Len(); n != maxOffersPerRelay {
		t.Errorf("%d offers", n)
	}
	if m := dial(t, address, 2).ask(dhcpv4.MessageTypeDiscover); m != nil {
		t.Errorf("an offer beyond the limit: %v", m)
	}
	if refusals(s, tooMany) == 0 {
		t.Error("the refusal is not counted")
	}
	if m := c.renew(a); m == nil || m.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("a renewal: %v", m)
	}
}

// TestSwapContent checks that invalid content changes nothing, and that a removed range refuses the next renewal.
func TestSwapContent(t *testing.T) {
	s, address := start(t, t.TempDir(), units(t, noPing))
	c := dial(t, address, 1)
	a := c.lease()
	revision := s.Content()
	if err := s.ApplyContent(strings.NewReader("nonsense")); err == nil || s.Content() != revision {
		t.Error(err)
	}
	u := units(t, noPing)
	u[dhcpdata.NetworkUnit(7)] = unit(t, dhcpdata.NetworkUnit(7), dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/16")})
	deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) }, u)
	if m := c.renew(a); m == nil || m.MessageType() != dhcpv4.MessageTypeNak {
		t.Errorf("%v", m)
	}
}

// TestCheckpoint checks that leases survive a checkpoint, and that the journal shrinks after the manager has its records.
func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	s, address := start(t, dir, units(t, noPing))
	for n := range 20 {
		dial(t, address, byte(30+n)).lease()
	}
	collected(t, s, func(all []dhcplease.Record) bool { return len(all) >= 20 })
	if err := s.engine.writeCheckpoint(); err != nil {
		t.Fatal(err)
	}
	dial(t, address, 200).lease()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = start(t, dir, units(t, noPing))
	if n := s.engine.table.CountUsed(8); n != 21 {
		t.Errorf("%d leases", n)
	}
}

// TestWithoutFolder checks that a service without a folder for leases reports that and serves nothing.
func TestWithoutFolder(t *testing.T) {
	s := newService("", slog.New(slog.DiscardHandler))
	if conditions := s.Health(); len(conditions) != 1 || !strings.Contains(conditions[0], errFolder.Error()) {
		t.Error(conditions)
	}
	if err := s.Configure(json.RawMessage(`{}`)); err == nil {
		t.Error("a configuration is accepted")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestConfiguration checks that an invalid configuration is rejected with its field.
func TestConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "", `{"interfaces":["eth0"],"listen":["127.0.0.1:6767"],"metrics":"127.0.0.1:9547"}`: "",
		`{"interfaces":["a/b"]}`: "configuration.interfaces[0]", `{"interfaces":["a","a"]}`: "configuration.interfaces[1]",
		`{"listen":["here"]}`: "configuration.listen[0]", `{"listen":["[::1]:67"]}`: "configuration.listen[0]",
		`{"metrics":"here"}`: "configuration.metrics", `{"engine":"kea"}`: "engine",
	} {
		_, err := read(json.RawMessage(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if got := Kind("").Claims(json.RawMessage(`{"listen":["127.0.0.1:6767"],"metrics":"127.0.0.1:9547"}`)); len(got) != 2 {
		t.Error(got)
	}
}

// TestClock checks that a step of the wall clock is reported once and does not move the clock of leases.
func TestClock(t *testing.T) {
	started := time.Now()
	c := newClock(started)
	if _, stepped := c.check(started.Add(30 * time.Second)); stepped {
		t.Error("30 s are reported")
	}
	for i, want := range []bool{true, false} {
		if seconds, stepped := c.check(started.Add(time.Hour)); stepped != want || seconds < 3590 {
			t.Error(i, seconds, stepped)
		}
	}
	if c.now()-started.Unix() > 60 {
		t.Error("the step has moved the clock")
	}
}

// TestThreshold checks that a range above log-threshold-high is logged once, and again after it was below log-threshold-low.
func TestThreshold(t *testing.T) {
	s, address := start(t, t.TempDir(), units(t, noPing, option("log-threshold-high", 0), option("log-threshold-low", 0)))
	logged := func() bool {
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		return s.engine.table.pool(8).logged
	}
	if s.engine.logThresholds(); logged() {
		t.Error("an empty range is logged")
	}
	dial(t, address, 1).lease()
	if s.engine.logThresholds(); !logged() {
		t.Error("the range is not logged")
	}
}
