package dhcp

import (
	"net/netip"
	"slices"
	"testing"

	"portolan/internal/wire/dhcpdata"
)

// TestReservationEndsLease checks that a client with a client identifier, whose hardware address gets a reservation, does not keep its
// former lease.
func TestReservationEndsLease(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing), nil)
	a := newAsker(t, e)
	id := identifies("\xffduid")
	a.ask(dhcpdata.Discover, 1, id)
	a.want(dhcpdata.Offer, "10.0.1.0")
	a.ask(dhcpdata.Request, 1, id, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	a.ask(dhcpdata.Discover, 2) // without an identifier, and its offer stays
	a.want(dhcpdata.Offer, "10.0.1.1")
	take(t, e, units(t, noPing, dhcpdata.Reservation{ID: 10, Address: netip.MustParseAddr("10.0.0.30"), MAC: dhcpdata.Hex{2, 0, 0, 0, 0, 1}}))
	a.ask(dhcpdata.Discover, 1, id)
	a.want(dhcpdata.Offer, "10.0.0.30")
	a.ask(dhcpdata.Request, 1, id, selects("10.0.0.30"))
	a.want(dhcpdata.Ack, "10.0.0.30")
	if l, _ := e.stateOf("10.0.1.0"); l.State != dhcpdata.Free {
		t.Errorf("the former address is in the state %d", l.State)
	}
	if n := e.table.CountUsed(8); n != 0 {
		t.Errorf("%d leases in the range", n)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestOffersOfBothIdentities checks that the choice of another server withdraws the offer of a reserved address.
func TestOffersOfBothIdentities(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing), nil)
	a := newAsker(t, e)
	id := identifies("\xffduid")
	a.ask(dhcpdata.Discover, 9, id)
	a.want(dhcpdata.Offer, "10.0.0.20")
	a.ask(dhcpdata.Request, 9, id, selects("10.0.0.20"), func(f *dhcpdata.Facts) { f.Options[54] = []byte{192, 0, 2, 1} })
	if _, ok := e.stateOf("10.0.0.20"); ok {
		t.Error("the offer is still there")
	}
	a.none()
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestUnknownClients checks that a client without a record gets no NAK for an address that another server of the network may lease.
func TestUnknownClients(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing), nil)
	a := newAsker(t, e)
	wants := func(address string) func(*dhcpdata.Facts) {
		return func(f *dhcpdata.Facts) { f.Options[50] = netip.MustParseAddr(address).AsSlice() }
	}
	rebinds := func(address string) func(*dhcpdata.Facts) {
		return func(f *dhcpdata.Facts) { f.Client = netip.MustParseAddr(address) }
	}
	for _, set := range []func(*dhcpdata.Facts){wants("10.0.0.77"), rebinds("10.0.0.77"), wants("10.0.1.9"), rebinds("10.0.1.9"),
		wants("10.9.0.1")} {
		a.ask(dhcpdata.Request, 5, set) // in no range, unknown, and of another network
	}
	a.none()
	a.ask(dhcpdata.Request, 5, selects("10.0.0.77"))
	a.want(dhcpdata.Nak, "invalid IP")
	a.ask(dhcpdata.Request, 5, wants("10.0.0.20")) // reserved for another client
	a.want(dhcpdata.Nak, "invalid IP")
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	a.ask(dhcpdata.Request, 5, rebinds("10.0.1.0")) // leased to another client
	a.want(dhcpdata.Nak, "invalid IP")
	a.ask(dhcpdata.Request, 1, wants("10.0.0.77")) // the server knows that the address of this client is another one
	a.want(dhcpdata.Nak, "invalid IP")
	a.none()
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestHardwareIsReported checks that the manager learns of another hardware address or relay of a client with an identifier.
func TestHardwareIsReported(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing, option("dhcp-cache-threshold", 0)), nil)
	a := newAsker(t, e)
	id := identifies("\xffduid")
	relay := func(f *dhcpdata.Facts) { f.Relay = netip.MustParseAddr("10.0.0.2") }
	for _, n := range []byte{1, 2, 2} {
		a.ask(dhcpdata.Request, n, id, selects("10.0.1.0"))
		a.want(dhcpdata.Ack, "10.0.1.0")
	}
	a.ask(dhcpdata.Request, 2, id, selects("10.0.1.0"), relay)
	a.want(dhcpdata.Ack, "10.0.1.0")
	if kinds := journalKinds(t, e); !slices.Equal(kinds, []byte{entryClock, entryEvent, entryEvent, entryRenewal, entryEvent}) {
		t.Errorf("the journal contains %q", kinds)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}
