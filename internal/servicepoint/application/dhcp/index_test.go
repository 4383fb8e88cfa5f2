package dhcp

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"portolan/internal/wire/dhcpdata"
)

// TestIndex compares an index with a map while slots are added and removed. Few hashes, which are close to each other, make entries
// compete for places, also at the end of a shard.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		want := map[uint32][]slotID{}
		next := slotID(1)
		hashes := rapid.SliceOfN(rapid.OneOf(rapid.Uint32Range(0x01fffff0, 0x01ffffff), rapid.Uint32()), 1, 12).Draw(t, "hashes")
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			hash := rapid.SampledFrom(hashes).Draw(t, "hash")
			if all := want[hash]; len(all) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				x.remove(hash, all[i])
				want[hash] = slices.Delete(all, i, i+1)
			} else {
				x.add(hash, next)
				want[hash] = append(all, next)
				next++
			}
			for hash, all := range want {
				var got []slotID
				x.each(hash, func(id slotID) bool { got = append(got, id); return true })
				slices.Sort(got)
				if !slices.Equal(got, all) {
					t.Fatalf("%08x: %d, want %d", hash, got, all)
				}
			}
		}
	})
}

// TestTableOffersRestoredAddress checks that an address whose first lease could not be stored is the next one to be offered.
func TestTableOffersRestoredAddress(t *testing.T) {
	table := newTable(func() int64 { return 0 })
	a := netip.MustParseAddr("10.0.0.10")
	ranges := []dhcpdata.Interval{{First: a, Last: netip.MustParseAddr("10.0.0.10")}}
	next := func() bool {
		_, ok := table.NextFree(7, 8, ranges, false, func(netip.Addr) bool { return true })
		return ok
	}
	if !next() {
		t.Fatal("the address is not free")
	}
	l := &lease{network: 7, pool: 8, address: a, state: dhcpdata.Leased, expires: 100, holder: &holder{client: "h\x01a"}}
	table.set(a, l)
	if next() {
		t.Fatal("a leased address is free")
	}
	table.restore(l, nil)
	for range 2 {
		if !next() {
			t.Error("the address is lost")
		}
	}
}

// TestReturnedAddressesAreKept checks that an address that was offered and never leased is the next one to be offered until it is known,
// and that the memory for such addresses does not grow while none can be stored.
func TestReturnedAddressesAreKept(t *testing.T) {
	table := newTable(func() int64 { return 0 })
	first, last := netip.MustParseAddr("10.0.0.10"), netip.MustParseAddr("10.0.0.11")
	all := func(netip.Addr) bool { return true }
	next := func() netip.Addr {
		a, _ := table.NextFree(7, 8, []dhcpdata.Interval{{First: first, Last: last}}, false, all)
		return a
	}
	failed := func(a netip.Addr) {
		l := &lease{network: 7, pool: 8, address: a, state: dhcpdata.Leased, expires: 100, holder: &holder{client: "h\x01a"}}
		table.set(a, l)
		next()
		table.restore(l, nil)
	}
	for range 100 {
		failed(first)
	}
	if got := next(); got != first {
		t.Errorf("%s is offered, want %s", got, first)
	}
	if n := len(table.pool(8).returned.stack); n > 1 {
		t.Errorf("one address is kept %d times", n)
	}
	table.offer(offer{network: 7, pool: 8, client: "h\x01a"}, first)
	if got := next(); got != last {
		t.Errorf("%s is offered, want %s", got, last)
	}
	table.withdraw("h\x01a")
	if got := next(); got != first {
		t.Errorf("%s is offered after the offer, want %s", got, first)
	}
}

// TestIndexKeepsEqualHashes checks that an index with many slots of one hash finds each of them, as those of a client with one hardware
// address and many identifiers.
func TestIndexKeepsEqualHashes(t *testing.T) {
	var x index
	const n = 20_000
	for id := range slotID(n) {
		x.add(0x01000000, id+1)
	}
	found := 0
	x.each(0x01000000, func(slotID) bool { found++; return true })
	if found != n {
		t.Errorf("%d slots, want %d", found, n)
	}
}
