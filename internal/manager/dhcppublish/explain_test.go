package dhcppublish

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"portolan/internal/manager/dhcp"
)

// TestFirstFree compares the first free address with the one of an examination of each address, in pages of leases.
func TestFirstFree(t *testing.T) {
	first := netip.MustParseAddr("10.0.0.0")
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}) }
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable
		size := 1 + r.IntN(40)
		held := map[netip.Addr]dhcp.Holder{}
		refused := map[netip.Addr]bool{}
		var all []dhcp.Holder
		for n := range size {
			switch kind := r.IntN(10); {
			case kind < 7:
				one := dhcp.Holder{Address: at(n), Leased: kind < 5, Abandoned: kind == 5}
				held[one.Address] = one
				all = append(all, one)
			case kind == 7:
				refused[at(n)] = true
			}
		}
		for _, abandoned := range []bool{false, true} {
			var want netip.Addr
			for n := range size {
				one, there := held[at(n)]
				if !refused[at(n)] && (abandoned && one.Abandoned || !abandoned && (!there || !one.Leased && !one.Abandoned)) {
					want = at(n)
					break
				}
			}
			var got netip.Addr
			examined, page := 0, 1+r.IntN(7)
			for from, rest := first, all; !got.IsValid() && from.Compare(at(size-1)) <= 0; {
				some, last := rest, at(size-1)
				if len(rest) > page {
					some, last = rest[:page], rest[page-1].Address
				}
				got, _ = firstFree(from, last, some, abandoned, func(a netip.Addr) bool { return !refused[a] }, &examined)
				rest, from = rest[len(some):], last.Next()
			}
			if got != want {
				t.Fatalf("seed %d, abandoned %v: %s, not %s", seed, abandoned, got, want)
			}
		}
	}
}
