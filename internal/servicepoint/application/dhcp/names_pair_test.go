package dhcp

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcppair"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// TestPairNames checks that the server of a pair that holds a lease keeps its names: they change hands with a renewal at the other server,
// and a server without its partner removes those of the partner.
func TestPairNames(t *testing.T) {
	t.Parallel()
	d := startDNS(t)
	one, two := newPairMembers(t, 100)
	for _, m := range []*pairMember{one, two} {
		sendTo(d.at)(m.service)
		u := withItems(t, pairUnits(t, m.pair, m.size), dhcpdata.NetworkUnit(7), option("ddns-updates", true),
			option("ddns-domainname", "lab.example"))
		deliver(t, func(text []byte) error { return m.ApplyContent(bytes.NewReader(text)) }, withZones(t, u))
	}
	agree(t, one, two)
	keeps := func(m *pairMember, a string) bool { return m.engine.names.knows(netip.MustParseAddr(a)) }
	renew := func(m *pairMember, n int, a, name string) {
		t.Helper()
		if r := pairClient(m, n).ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.ParseIP(a)),
			dhcpv4.WithOption(dhcpv4.OptHostName(name))); r == nil || r.MessageType() != dhcpv4.MessageTypeAck {
			t.Fatalf("the renewal is %v", r)
		}
	}
	n := clientOf(dhcppair.Primary, 1)
	a := pairClient(one, n).leaseAs("desk")
	agree(t, one, two)
	waitFor(t, func() bool { return d.lookUp("desk.lab.example.", dns.TypeA) == a })
	if !keeps(one, a) || keeps(two, a) {
		t.Error("the server that granted the lease does not keep its names alone")
	}
	renew(two, n, a, "desk")
	waitFor(t, func() bool { return !keeps(one, a) && keeps(two, a) })
	if got := d.lookUp("desk.lab.example.", dns.TypeA) + d.lookUp(reverseName(a), dns.TypePTR); got != a+"desk.lab.example." {
		t.Errorf("after a renewal at the partner DNS has %s", got)
	}
	renew(one, n, a, "chair") // another name at the first server
	waitFor(t, func() bool {
		return d.lookUp("chair.lab.example.", dns.TypeA) == a && d.lookUp("desk.lab.example.", dns.TypeANY) == "" &&
			d.lookUp(reverseName(a), dns.TypePTR) == "chair.lab.example."
	})
	waitFor(t, func() bool { return keeps(one, a) && !keeps(two, a) })
	pairClient(two, n).release(a) // the client tells the server that does not keep its name
	waitFor(t, func() bool {
		return d.lookUp("chair.lab.example.", dns.TypeANY) == "" && d.lookUp(reverseName(a), dns.TypePTR) == ""
	})

	b := pairClient(one, n).leaseAs("lamp")
	agree(t, one, two)
	waitFor(t, func() bool { return d.lookUp(reverseName(b), dns.TypePTR) == "lamp.lab.example." })
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return two.state() == dhcppair.StateInterrupted })
	pairClient(two, n).release(b)
	waitFor(t, func() bool {
		return d.lookUp("lamp.lab.example.", dns.TypeANY) == "" && d.lookUp(reverseName(b), dns.TypePTR) == ""
	})
}

// TestNamesLeft checks that the names that a partner has left are in the journal before the lease that ends them: a server that is killed
// between the two removes them after its start. If the lease still lasts then, the partner keeps them.
func TestNamesLeft(t *testing.T) {
	dir := t.TempDir()
	open := func() *registrar {
		t.Helper()
		r, err := openRegistrar(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	l := &lease{network: 7, address: netip.MustParseAddr("10.0.1.1"), state: dhcpdata.Leased, holder: &holder{client: "x"},
		names: &dhcpdata.Names{Host: "desk.lab.example.", Reverse: "1.1.0.10.in-addr.arpa.", Forward: true, Partner: true}}
	ended := *l
	ended.state = dhcpdata.Free
	r := open()
	r.prepare([]commit{{named: []*lease{&ended}}})
	if err := r.close(); err != nil { // killed: the memory is not changed
		t.Fatal(err)
	}
	for _, c := range []struct {
		stored *lease
		knows  bool
	}{{&ended, true}, {l, false}} {
		r := open()
		r.start(slices.Values([]*lease{c.stored}))
		if r.knows(l.address) != c.knows {
			t.Errorf("after the start with a lease in state %d, names to remove are known: %t", c.stored.state, !c.knows)
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
	}
}
