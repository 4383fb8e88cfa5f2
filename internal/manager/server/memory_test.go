package server

import (
	"runtime/debug"
	"testing"
)

// TestCollectorFollowsTheHeap checks the target of the garbage collector: garbage may be four times a small heap, and a smaller proportion
// of a large one.
func TestCollectorFollowsTheHeap(t *testing.T) {
	for _, c := range []struct {
		live uint64
		many bool
		want int
	}{{0, false, 400}, {8 << 20, false, 400}, {12 << 20, false, 400}, {24 << 20, false, 200}, {48 << 20, false, 100},
		{100 << 20, false, 48}, {1 << 30, false, 40}, {8 << 20, true, 60}} {
		if got := percentFor(c.live, c.many); got != c.want {
			t.Errorf("with %d MiB (%t) it is %d %%, and not %d", c.live>>20, c.many, got, c.want)
		}
	}
}

// TestIdleReturnsMemory checks when an idle manager returns memory, and that the figures show the effect of FreeOSMemory.
func TestIdleReturnsMemory(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		before, now heapState
		want        bool
	}{
		{heapState{100 * mib, 8 * mib, 40 * mib}, heapState{101 * mib, 8 * mib, 40 * mib}, true},
		{heapState{100 * mib, 8 * mib, 40 * mib}, heapState{120 * mib, 8 * mib, 40 * mib}, false},       // it works
		{heapState{100 * mib, 8 * mib, 20 * mib}, heapState{101 * mib, 8 * mib, 20 * mib}, false},       // little to return
		{heapState{900 * mib, 200 * mib, 310 * mib}, heapState{901 * mib, 200 * mib, 310 * mib}, false}, // little for its size
		{heapState{900 * mib, 200 * mib, 400 * mib}, heapState{901 * mib, 200 * mib, 400 * mib}, true},
	} {
		if got := c.now.isWorthReturning(c.before); got != c.want {
			t.Errorf("from %+v to %+v it is %t", c.before, c.now, got)
		}
	}
	before := readHeap()
	garbage := make([][]byte, 64)
	for i := range garbage {
		garbage[i] = make([]byte, mib)
	}
	used := readHeap()
	if used.allocated < before.allocated+uint64(len(garbage))*mib {
		t.Errorf("64 MiB were allocated, and the figures went from %+v to %+v", before, used)
	}
	clear(garbage)
	debug.FreeOSMemory()
	if after := readHeap(); after.taken+32*mib > used.taken {
		t.Errorf("of %d MiB, %d are left after 64 were returned", used.taken/mib, after.taken/mib)
	}
}
