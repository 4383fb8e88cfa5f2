package server

import (
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	gauges "runtime/metrics"
	"sync"
	"time"
)

// memoryLimit is the soft memory limit of a manager without service points, in bytes.
const memoryLimit = 384 << 20

// memoryOfServicePoint is added to the limit for each connected service point. A waiting one needs about 12 KiB, and less than 30 with
// garbage. A fleet must not reach the limit: the garbage collector would run without a pause.
const memoryOfServicePoint = 40 << 10

// Allocation between two runs of the garbage collector, in percent of the live heap. The heap of a manager is small and its garbage large.
// While the heap is large, there are about maxGarbage bytes of garbage, not counting stacks, and at least minPercent. manyPercent is for
// very many connected service points, which then make up the heap.
const (
	collectPercent = 400
	minPercent     = 40
	manyPercent    = 60
	maxGarbage     = 48 << 20
	// manyPoints is the number of connections that count as very many, until there are fewer than half of it.
	manyPoints = 1024
)

// collecting is the state of the garbage collector's setting, if this program controls it (Tune).
var collecting struct {
	mu sync.Mutex
	// own reports that this program controls it, many that very many service points are connected. percent is the last value. Guarded by
	// mu.
	own, many bool
	percent   int
}

// percentFor returns the allocation before the next run, in percent of a live heap of that size.
func percentFor(live uint64, many bool) int {
	if many {
		return manyPercent
	}
	return int(min(max(maxGarbage*100/max(live, 1), minPercent), collectPercent))
}

// followHeap sets the time of the next run, now and after each run, by the live heap.
func followHeap() {
	live := []gauges.Sample{{Name: "/gc/heap/live:bytes"}}
	gauges.Read(live)
	setCollector(live[0].Value.Uint64())
	// The object is unreferenced, so one of the next runs finalizes it.
	runtime.SetFinalizer(&struct{ _ [2]*byte }{}, func(any) { followHeap() })
}

// setCollector sets the time of the next run if it differs enough.
func setCollector(live uint64) {
	collecting.mu.Lock()
	defer collecting.mu.Unlock()
	percent := percentFor(live, collecting.many)
	if difference := percent - collecting.percent; collecting.own && max(difference, -difference) > collecting.percent/8 {
		collecting.percent = percent
		debug.SetGCPercent(percent)
	}
}

// How an idle manager returns memory to the system. It is idle if it allocated less than idleAllocation in idlePeriod. Returning less than
// worthReturning is not worth a run of the garbage collector.
const (
	idlePeriod     = 30 * time.Second
	idleAllocation = 8 << 20
	worthReturning = 12 << 20
)

// heapState are figures of the heap, in bytes: what was allocated since the start, what lived at the last run of the garbage collector, and
// what is taken from the system.
type heapState struct{ allocated, live, taken uint64 }

// readHeap reads the figures.
func readHeap() heapState {
	all := []gauges.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	gauges.Read(all)
	n := func(i int) uint64 { return all[i].Value.Uint64() }
	return heapState{allocated: n(0), live: n(1), taken: n(2) + n(3) + n(4)}
}

// isWorthReturning reports whether an idle manager should return memory. before is the state a period ago.
func (h heapState) isWorthReturning(before heapState) bool {
	return h.allocated-before.allocated < idleAllocation && h.taken > h.live+h.live/2+worthReturning
}

// returnMemory returns the garbage and the program pages of the start to the system at once, and those of work when the manager is idle.
// The garbage collector would keep the garbage: it runs seldom, and not at all while nothing is allocated.
func returnMemory(ctx context.Context) {
	debug.FreeOSMemory()
	dropProgramPages()
	each := time.NewTicker(idlePeriod)
	defer each.Stop()
	for before := readHeap(); ; {
		select {
		case <-ctx.Done():
			return
		case <-each.C:
		}
		now := readHeap()
		if now.isWorthReturning(before) {
			debug.FreeOSMemory()
			dropProgramPages()
		}
		before = now
	}
}

// connections counts connections of service points and adjusts the memory limit.
type connections struct {
	// limit is the memory limit without connections, in bytes; 0 if this program does not control it.
	limit int64
	mu    sync.Mutex
	// open is the number of connections, limited the number at the last change of the limit. isMany reports very many. Guarded by mu.
	open, limited int
	isMany        bool
}

// stateChanged counts a connection that opens or ends (http.Server.ConnState).
func (c *connections) stateChanged(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.count(1)
	case http.StateClosed, http.StateHijacked:
		c.count(-1)
	}
}

// count adds a number of connections, which may be negative.
func (c *connections) count(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += more
	const step = 256 // each change of the limit stops the program for a moment
	if c.limit > 0 && (c.open-c.limited >= step || c.limited-c.open >= 2*step) {
		c.limited = c.open
		debug.SetMemoryLimit(c.limit + int64(c.open+step)*memoryOfServicePoint)
	}
	if many := c.open >= manyPoints || c.isMany && c.open >= manyPoints/2; many != c.isMany {
		c.isMany = many
		collecting.mu.Lock()
		collecting.many = many
		collecting.mu.Unlock()
		if many { // the next run may be far away
			setCollector(0)
		}
	}
}

// Tune sets the garbage collector and the memory limit of the process, unless the environment has GOGC or GOMEMLIMIT. It returns the limit
// in bytes for Options.MemoryLimit; 0 if the environment has one.
func Tune() (limit int64) {
	if os.Getenv("GOGC") == "" {
		collecting.mu.Lock()
		collecting.own = true
		collecting.mu.Unlock()
		followHeap()
	}
	if os.Getenv("GOMEMLIMIT") == "" { // much garbage is collected earlier
		debug.SetMemoryLimit(memoryLimit)
		return memoryLimit
	}
	return 0
}
