package dhcp

import (
	"bytes"
	"net/netip"
	"testing"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcppair"
)

// TestPairLargeRange checks that a server gives addresses of a range that is too large to be counted, when its partner has none left, and
// that each request continues where the one before ended.
func TestPairLargeRange(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	for _, m := range []*pairMember{one, two} {
		u := pairUnits(t, m.pair, 100)
		u[dhcpdata.NetworkUnit(7)] = unit(t, dhcpdata.NetworkUnit(7), noPing,
			dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/8"), Gateway: netip.MustParseAddr("10.0.0.1"), Pair: m.pair.ID},
			dhcpdata.Pool{ID: 8, Ranges: []dhcpdata.Interval{{First: netip.MustParseAddr("10.1.0.0"), Last: netip.MustParseAddr("10.3.255.255")}}})
		deliver(t, func(text []byte) error { return m.ApplyContent(bytes.NewReader(text)) }, u)
	}
	agree(t, one, two)
	given := func() (n int) {
		two.engine.mu.Lock()
		defer two.engine.mu.Unlock()
		for l := range two.engine.table.all {
			a := l.address
			if r := recordOf(l, a, dhcppair.Secondary); a.Is4() && dhcppair.BaseOwner(a) == dhcppair.Primary && r.Owner == dhcppair.Secondary {
				n++
			}
		}
		return n
	}
	for round := 1; round <= 2; round++ {
		one.engine.mu.Lock()
		p := one.engine.pairs[2]
		p.shareNetwork(7)
		p.shareNetwork(7) // the first one is under way
		one.engine.mu.Unlock()
		waitFor(t, func() bool { return given() >= round*maxGift })
		agree(t, one, two)
		if n := given(); n != round*maxGift {
			t.Fatalf("the secondary got %d addresses after %d requests, not %d", n, round, round*maxGift)
		}
		waitFor(t, func() bool {
			one.engine.mu.Lock()
			defer one.engine.mu.Unlock()
			return !p.sharing[7]
		})
	}
	if p := one.engine.pairs[2]; p.gifts[8] < 4*maxGift {
		t.Errorf("the second request began at the start again: %d", p.gifts[8])
	}
}
