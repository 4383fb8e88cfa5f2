package dhcp

import (
	"net/netip"
	"testing"

	"portolan/internal/wire/dhcpdata"
)

// TestReservedLeasesOfRange checks that the lease of a reserved address has its range, and is not one of the leases that fill the range.
func TestReservedLeasesOfRange(t *testing.T) {
	u := units(t, noPing)
	whole := dhcpdata.Interval{First: netip.MustParseAddr("10.0.0.10"), Last: netip.MustParseAddr("10.0.0.30")}
	u[dhcpdata.NetworkUnit(7)] = unit(t, dhcpdata.NetworkUnit(7), noPing,
		dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/16"), Gateway: netip.MustParseAddr("10.0.0.1")},
		dhcpdata.Pool{ID: 8, Whole: whole, Ranges: []dhcpdata.Interval{{First: whole.First, Last: netip.MustParseAddr("10.0.0.19")},
			{First: netip.MustParseAddr("10.0.0.21"), Last: whole.Last}}},
		dhcpdata.Reservation{ID: 9, Address: netip.MustParseAddr("10.0.0.20"), MAC: dhcpdata.Hex{2, 0, 0, 0, 0, 9}})
	s, address := start(t, t.TempDir(), u)
	for client, want := range map[byte]netip.Addr{9: netip.MustParseAddr("10.0.0.20"), 1: whole.First} {
		if got := dial(t, address, client).lease(); got != want.String() {
			t.Errorf("client %d gets %s, want %s", client, got, want)
		}
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	for l := range s.engine.table.all {
		if l.pool != 8 {
			t.Errorf("the lease of %s has the range %d", l.address, l.pool)
		}
	}
	if used := s.engine.table.CountUsed(8); used != 1 {
		t.Errorf("%d leases fill the range", used)
	}
}
