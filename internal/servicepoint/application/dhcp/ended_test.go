package dhcp

import (
	"net/netip"
	"testing"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
)

// endOf returns an order that ends the lease of an address.
func endOf(address string) dhcpdata.Order {
	return dhcpdata.Order{ID: 77, Address: netip.MustParseAddr(address), Action: dhcpdata.EndLease}
}

// wantLease checks that an address is leased, and that no operator has ended the lease.
func wantLease(t *testing.T, e *engine, address string) {
	t.Helper()
	if l, ok := e.stateOf(address); !ok || l.State != dhcpdata.Leased || l.Ended {
		t.Errorf("the lease of %s: %+v, %v", address, l, ok)
	}
}

// TestReservedLeaseFollowsOrder checks that a lease after one that an operator ended begins in the journal: it holds after a restart.
func TestReservedLeaseFollowsOrder(t *testing.T) {
	const address = "10.0.0.20"
	d := &disk{}
	e := engineOn(t, d, units(t, noPing), nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 9, selects(address))
	a.want(dhcpdata.Ack, address)
	take(t, e, units(t, noPing, endOf(address)))
	if l, _ := e.stateOf(address); !l.Ended {
		t.Fatalf("the order has not ended the lease: %+v", l)
	}
	a.ask(dhcpdata.Discover, 9)
	a.want(dhcpdata.Offer, address)
	a.ask(dhcpdata.Request, 9, selects(address))
	a.want(dhcpdata.Ack, address)
	wantLease(t, e, address)
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	e = engineOn(t, d, units(t, noPing, endOf(address)), nil)
	wantLease(t, e, address)
	a = newAsker(t, e)
	a.ask(dhcpdata.Request, 9, renews(address))
	a.want(dhcpdata.Ack, address)
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestReservedLease6FollowsOrder checks the same for DHCPv6.
func TestReservedLease6FollowsOrder(t *testing.T) {
	const address = "2001:db8:1::99"
	d := &disk{}
	e := engineOn(t, d, units6(t), nil)
	replies := make(chan struct{}, 10)
	duid := []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 9}
	request := func() {
		t.Helper()
		m := &dhcpmsg.Message6{Type: dhcpmsg.Request6, Relays: []dhcpmsg.Relay6{{Link: netip.MustParseAddr("2001:db8:1::1"),
			Peer: netip.MustParseAddr("fe80::1")}}, Options: dhcpmsg.Options6{{Code: dhcpmsg.OptClientID6, Data: duid},
			{Code: dhcpmsg.OptServerID6, Data: e.content.Load().compiled.ServerDUID()}, {Code: dhcpmsg.OptIANA6, Data: make([]byte, 12)}}}
		e.handle6(&request6{facts: dhcpdata.Facts6{Message: m}, reply: func([]byte) { replies <- struct{}{} }})
		waitFor(t, func() bool { return len(replies) > 0 })
		<-replies
	}
	request()
	wantLease(t, e, address)
	take(t, e, units6(t, endOf(address)))
	if l, _ := e.stateOf(address); !l.Ended {
		t.Fatalf("the order has not ended the lease: %+v", l)
	}
	request()
	wantLease(t, e, address)
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	e = engineOn(t, d, units6(t, endOf(address)), nil)
	wantLease(t, e, address)
	if err := e.close(); err != nil {
		t.Error(err)
	}
}
