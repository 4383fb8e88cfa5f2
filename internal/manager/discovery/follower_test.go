package discovery

import (
	"net/netip"
	"slices"
	"testing"

	"portolan/internal/base/snmpwalk"
	"portolan/internal/base/space"
)

// TestFollower checks that neighbouring devices are read once, in the boundaries only, and up to the limit, also if devices name each
// other.
func TestFollower(t *testing.T) {
	addr := netip.MustParseAddr
	device := func(at string, neighbours ...string) *foundDevice {
		d := &foundDevice{addr(at), &snmpwalk.Device{}}
		for _, n := range neighbours {
			d.Devices = append(d.Devices, addr(n))
		}
		return d
	}
	bounds, err := parseRanges([]string{"10.0.0.0/24", "2001:db8::/64"})
	if err != nil {
		t.Fatal(err)
	}
	f := follower{bounds: bounds, known: map[netip.Addr]bool{}, remaining: 3}
	first := []netip.Addr{addr("10.0.0.1"), addr("10.0.0.2")}
	second := f.next(first, []*foundDevice{device("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.1"),
		device("10.0.0.2", "10.0.0.1", "10.0.0.3", "2001:db8::4")})
	if !slices.Equal(second, []netip.Addr{addr("10.0.0.3"), addr("2001:db8::4")}) || f.isLimited {
		t.Errorf("the neighbours are %v", second)
	}
	third := f.next(second, []*foundDevice{device("10.0.0.3", "10.0.0.1", "10.0.0.5", "10.0.0.6")})
	if !slices.Equal(third, []netip.Addr{addr("10.0.0.5")}) || !f.isLimited {
		t.Errorf("the next neighbours are %v, limited %v", third, f.isLimited)
	}
	if more := f.next(third, []*foundDevice{device("10.0.0.5", "10.0.0.3")}); len(more) != 0 {
		t.Errorf("known devices are read again: %v", more)
	}
	none := follower{bounds: []space.Range{}, known: map[netip.Addr]bool{}, remaining: 100}
	if off := none.next(first, []*foundDevice{device("10.0.0.1", "10.0.0.3")}); len(off) != 0 {
		t.Errorf("without boundaries %v is read", off)
	}
}
