package dhcp

import (
	"net/netip"
	"testing"

	"portolan/internal/wire/dhcpdata"
)

// TestCursorAfterChanges checks that a range is searched from its start only if addresses at its start can be free.
func TestCursorAfterChanges(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing), nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	a.ask(dhcpdata.Request, 2, selects("10.0.1.1"))
	a.want(dhcpdata.Ack, "10.0.1.1")
	a.ask(dhcpdata.Discover, 3)
	a.want(dhcpdata.Offer, "10.0.1.2")
	cursor := func() netip.Addr {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.table.pool(8).cursor
	}
	reserved := dhcpdata.Reservation{ID: 10, Address: netip.MustParseAddr("10.0.1.1"), MAC: dhcpdata.Hex{2, 0, 0, 0, 0, 2}}
	for i, u := range []dhcpdata.Units{units(t, noPing, option("authoritative", true)), units(t, noPing, reserved)} {
		take(t, e, u)
		if c := cursor(); c != netip.MustParseAddr("10.0.1.2") {
			t.Errorf("%d: the cursor is %s", i, c)
		}
	}
	take(t, e, units(t, noPing)) // 10.0.1.1 is not reserved any more
	if c := cursor(); c.IsValid() {
		t.Errorf("the cursor is %s", c)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}
