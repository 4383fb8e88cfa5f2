package server

import "testing"

// A small heap may be four times garbage; there is never much of it, but in proportion to what lives.
func TestCollectorFollowsTheHeap(t *testing.T) {
	for _, c := range []struct {
		live uint64
		many bool
		want int
	}{{0, false, 400}, {8 << 20, false, 400}, {12 << 20, false, 400}, {24 << 20, false, 200}, {48 << 20, false, 100}, {1 << 30, false, 60},
		{8 << 20, true, 60}} {
		if got := percentFor(c.live, c.many); got != c.want {
			t.Errorf("with %d MiB (%t) it is %d %%, and not %d", c.live>>20, c.many, got, c.want)
		}
	}
}
