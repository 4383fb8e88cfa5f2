package dhcpdata

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// TestDifferenceOfIntervals compares the difference of random intervals with that of sets of addresses.
func TestDifferenceOfIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
	random := func() (all []Interval) {
		for n := r.IntN(20); n < 256; n += 1 + r.IntN(20) {
			last := min(255, n+r.IntN(15))
			all = append(all, Interval{at(n), at(last)})
			n = last + 1
		}
		return all
	}
	for range 1000 {
		all, taken := random(), random()
		rest := subtractIntervals(all, taken)
		for n := range 256 {
			want := contains(all, at(n)) && !contains(taken, at(n))
			if got := slices.ContainsFunc(rest, func(i Interval) bool { return i.Contains(at(n)) }); got != want {
				t.Fatalf("%v without %v is %v: %s", all, taken, rest, at(n))
			}
		}
	}
}
