package server

import (
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// memoryLimit is how many bytes of memory the manager tries to stay below.
const memoryLimit = 384 << 20

// memoryOfServicePoint is how many bytes more a manager may take for each service point that is connected. While it waits, it takes about
// 12 KiB, and with what is garbage less than 30. No fleet is to meet the limit: a collector that is held to it runs without a pause.
const memoryOfServicePoint = 40 << 10

// How much is allocated, in percent of the live heap, before the collector runs: the heap of a manager is small and its garbage much. Where
// very many service points are connected the heap is theirs, and garbage would be a multiple of it.
const (
	collectPercent = 400
	fleetPercent   = 60
	// manyPoints is from how many connections on that is so; it ends with half as many.
	manyPoints = 1024
)

// ownCollector says that when the collector runs is this program's to set (Tune).
var ownCollector atomic.Bool

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
	if many := c.open >= manyPoints || c.many && c.open >= manyPoints/2; many != c.many && ownCollector.Load() {
		c.many = many
		percent := collectPercent
		if many {
			percent = fleetPercent
		}
		debug.SetGCPercent(percent)
	}
}

// Tune sets the process up for serving: when the collector runs, and the limit of memory. GOGC in the environment wins, as does
// GOMEMLIMIT. It gives the limit of memory, in bytes, for Options.MemoryLimit; 0 where it is not this program's to set.
func Tune() (limit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
		ownCollector.Store(true)
	}
	if os.Getenv("GOMEMLIMIT") == "" { // what is garbage goes earlier where there is much
		debug.SetMemoryLimit(memoryLimit)
		return memoryLimit
	}
	return 0
}
