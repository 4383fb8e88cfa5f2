package dhcp

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"portolan/internal/wire/dhcpdata"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// TestMovedAddresses checks that new clients get addresses that were leased before and that have moved to another range, or are not
// reserved any more, also after a restart.
func TestMovedAddresses(t *testing.T) {
	content := func(more ...dhcpdata.Item) dhcpdata.Units {
		u := units(t)
		u[dhcpdata.NetworkUnit(7)] = unit(t, dhcpdata.NetworkUnit(7), append([]dhcpdata.Item{
			dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/16")}, noPing}, more...)...)
		return u
	}
	pool := func(id int64, ranges ...string) dhcpdata.Pool {
		p := dhcpdata.Pool{ID: id}
		for i := 0; i < len(ranges); i += 2 {
			p.Ranges = append(p.Ranges, dhcpdata.Interval{First: netip.MustParseAddr(ranges[i]), Last: netip.MustParseAddr(ranges[i+1])})
		}
		return p
	}
	first := content(pool(8, "10.0.1.0", "10.0.1.1", "10.0.1.3", "10.0.1.3"), dhcpdata.Reservation{ID: 9,
		Address: netip.MustParseAddr("10.0.1.2"),
		MAC:     dhcpdata.Hex{2, 0, 0, 0, 0, 4}})
	for name, second := range map[string]dhcpdata.Units{
		"two ranges":     content(pool(8, "10.0.1.0", "10.0.1.1"), pool(12, "10.0.1.2", "10.0.1.3")),
		"another range":  content(pool(12, "10.0.1.0", "10.0.1.3")),
		"no reservation": content(pool(8, "10.0.1.0", "10.0.1.3")),
	} {
		for _, restarts := range []bool{false, true} {
			dir := t.TempDir()
			s, address := start(t, dir, first)
			for n := range byte(4) {
				c := dial(t, address, n+1)
				a := netip.MustParseAddr(c.lease())
				if _, err := c.conn.Write(leaseholder{c.mac, a}.release(t)); err != nil {
					t.Fatal(err)
				}
				waitFor(t, func() bool {
					s.engine.mu.Lock()
					defer s.engine.mu.Unlock()
					l, ok := s.engine.table.Lease(a)
					return ok && l.State == dhcpdata.Free
				})
			}
			if restarts {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s, address = start(t, dir, second)
			} else {
				deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) }, second)
			}
			var got []string
			for n := range byte(4) {
				if m := dial(t, address, n+50).ask(dhcpv4.MessageTypeDiscover); m != nil {
					got = append(got, m.YourIPAddr.String())
				}
			}
			if slices.Sort(got); !slices.Equal(got, []string{"10.0.1.0", "10.0.1.1", "10.0.1.2", "10.0.1.3"}) {
				t.Errorf("%s, restart %t: new clients get %v", name, restarts, got)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
