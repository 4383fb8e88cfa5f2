package server

import (
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
)

// memoryLimit is how many bytes of memory the manager tries to stay below.
const memoryLimit = 384 << 20

// memoryOfServicePoint is how many bytes more a manager may take for each service point that is connected: while it waits, it takes 12 KiB.
const memoryOfServicePoint = 16 << 10

// connections counts those of service points, and lets the memory limit follow.
type connections struct {
	// limit is how many bytes a manager takes without any; 0 where the limit is not its own.
	limit int64
	mu    sync.Mutex
	// open is how many there are, limited how many the limit was last set for. Guarded by mu.
	open, limited int
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
}

// Tune sets the process up for serving: the heap of a manager is small and its garbage much, so the
// collector may wait until four times the live heap was allocated. GOGC in the environment wins, as does
// GOMEMLIMIT. It gives the limit of memory, in bytes, for Options.MemoryLimit; 0 where it is not this program's to set.
func Tune() (limit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" { // what is garbage goes earlier where there is much
		debug.SetMemoryLimit(memoryLimit)
		return memoryLimit
	}
	return 0
}
