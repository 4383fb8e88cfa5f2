package server

import (
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	gauges "runtime/metrics"
	"sync"
)

// memoryLimit is how many bytes of memory the manager tries to stay below.
const memoryLimit = 384 << 20

// memoryOfServicePoint is how many bytes more a manager may take for each service point that is connected. While it waits, it takes about
// 12 KiB, and with what is garbage less than 30. No fleet is to meet the limit: a collector that is held to it runs without a pause.
const memoryOfServicePoint = 40 << 10

// How much is allocated, in percent of the live heap, before the collector runs: the heap of a manager is small and its garbage much.
// Where large work makes it large for a while there may be some mostGarbage bytes of garbage (stacks count beside), and no less than
// leastPercent. That is so, too, where very many service points are connected: the heap is theirs then.
const (
	collectPercent = 400
	leastPercent   = 60
	mostGarbage    = 48 << 20
	// manyPoints is from how many connections on there are very many; it ends with half as many.
	manyPoints = 1024
)

// collecting is what is set of when the collector runs, where that is this program's to set (Tune).
var collecting struct {
	mu sync.Mutex
	// own says that it is, many that very many service points are connected, percent is what was set last. Guarded by mu.
	own, many bool
	percent   int
}

// percentFor gives how much may be allocated before the collector runs, in percent of a live heap of so many bytes.
func percentFor(live uint64, many bool) int {
	if many {
		return leastPercent
	}
	return int(min(max(mostGarbage*100/max(live, 1), leastPercent), collectPercent))
}

// followHeap sets when the collector runs next, and again behind each of its runs, by what those have left.
func followHeap() {
	live := []gauges.Sample{{Name: "/gc/heap/live:bytes"}}
	gauges.Read(live)
	setCollector(live[0].Value.Uint64())
	// Nothing refers to it: the next run finalizes it, or the one after that.
	runtime.SetFinalizer(&struct{ _ [2]*byte }{}, func(any) { followHeap() })
}

// setCollector sets when the collector runs next, where that differs enough to be worth it.
func setCollector(live uint64) {
	collecting.mu.Lock()
	defer collecting.mu.Unlock()
	percent := percentFor(live, collecting.many)
	if difference := percent - collecting.percent; collecting.own && max(difference, -difference) > collecting.percent/8 {
		collecting.percent = percent
		debug.SetGCPercent(percent)
	}
}

// connections counts those of service points, and lets the memory limit follow.
type connections struct {
	// limit is how many bytes a manager takes without any; 0 where the limit is not its own.
	limit int64
	mu    sync.Mutex
	// open is how many there are, limited how many the limit was last set for, many says that they are very many. Guarded by mu.
	open, limited int
	many          bool
}

// stateChanged is a connection's.
func (c *connections) stateChanged(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.count(1)
	case http.StateClosed, http.StateHijacked:
		c.count(-1)
	}
}

// count counts more connections, or fewer.
func (c *connections) count(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += more
	const step = 256 // each time the limit is set the program stands still for a moment
	if c.limit > 0 && (c.open-c.limited >= step || c.limited-c.open >= 2*step) {
		c.limited = c.open
		debug.SetMemoryLimit(c.limit + int64(c.open+step)*memoryOfServicePoint)
	}
	if many := c.open >= manyPoints || c.many && c.open >= manyPoints/2; many != c.many {
		c.many = many
		collecting.mu.Lock()
		collecting.many = many
		collecting.mu.Unlock()
		if many { // not only behind the next run, which may be far away
			setCollector(0)
		}
	}
}

// Tune sets the process up for serving: when the collector runs, and the limit of memory. GOGC in the environment wins, as does
// GOMEMLIMIT. It gives the limit of memory, in bytes, for Options.MemoryLimit; 0 where it is not this program's to set.
func Tune() (limit int64) {
	if os.Getenv("GOGC") == "" {
		collecting.mu.Lock()
		collecting.own = true
		collecting.mu.Unlock()
		followHeap()
	}
	if os.Getenv("GOMEMLIMIT") == "" { // what is garbage goes earlier where there is much
		debug.SetMemoryLimit(memoryLimit)
		return memoryLimit
	}
	return 0
}
