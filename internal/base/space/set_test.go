package space

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// TestSets checks that set operations have the same results as on sets of single addresses.
func TestSets(t *testing.T) {
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
	whole := Range{at(0), at(40)}
	draw := rapid.Custom(func(t *rapid.T) (s Set) {
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			low := rapid.IntRange(0, 40).Draw(t, "low")
			s = s.Union(Set{{at(low), at(rapid.IntRange(low, 40).Draw(t, "high"))}})
		}
		return s
	})
	has := func(s Set, a netip.Addr) bool {
		for _, r := range s {
			if r.Has(a) {
				return true
			}
		}
		return false
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		for n := range 41 {
			x := at(n)
			if has(a.Union(b), x) != (has(a, x) || has(b, x)) || has(a.Intersect(b), x) != (has(a, x) && has(b, x)) ||
				has(a.Complement(whole), x) == has(a, x) {
				t.Fatalf("%v and %v are wrong at %s", a, b, x)
			}
		}
		for _, s := range []Set{a.Union(b), a.Intersect(b), a.Complement(whole)} {
			for i := 1; i < len(s); i++ {
				if !s[i-1].High.Next().Less(s[i].Low) {
					t.Fatalf("%v touches itself", s)
				}
			}
		}
	})
}
