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

// memoryLimit is the soft memory limit of the manager, in bytes.
const memoryLimit = 384 << 20

// memoryOfServicePoint is added to the limit for each connected service point, in bytes. A waiting service point needs about 12 KiB, with
// garbage less than 30 KiB. The limit must stay out of reach of any fleet: at the limit the garbage collector runs without a pause.
const memoryOfServicePoint = 40 << 10

// GOGC values, in percent of the live heap. A manager has a small heap and much garbage, so collectPercent is high. With a large heap,
// garbage is limited to about maxGarbage bytes (stacks count separately), but to no less than minPercent.
// minPercent also applies when manyPoints or more service points are connected, because their data fills the heap.
const (
	collectPercent = 400
	minPercent     = 60
	maxGarbage     = 48 << 20
	// manyPoints is the number of connections that switches to minPercent. Below half of it, the manager switches back.
	manyPoints = 1024
)

// collecting is the state of the garbage collector settings, if this program controls them (Tune).
var collecting struct {
	mu sync.Mutex
	// own reports whether this program controls GOGC, many whether manyPoints was reached. percent is the last value set. Guarded by mu.
	own, many bool
	percent   int
}

// percentFor returns the GOGC value for a live heap of live bytes.
func percentFor(live uint64, many bool) int {
	if many {
		return minPercent
	}
	return int(min(max(maxGarbage*100/max(live, 1), minPercent), collectPercent))
}

// followHeap sets GOGC from the live heap, now and after each garbage collection.
func followHeap() {
	live := []gauges.Sample{{Name: "/gc/heap/live:bytes"}}
	gauges.Read(live)
	setCollector(live[0].Value.Uint64())
	// The object is unreachable: one of the next two collections finalizes it.
	runtime.SetFinalizer(&struct{ _ [2]*byte }{}, func(any) { followHeap() })
}

// setCollector sets GOGC for a live heap of live bytes if the value changes by more than an eighth.
func setCollector(live uint64) {
	collecting.mu.Lock()
	defer collecting.mu.Unlock()
	percent := percentFor(live, collecting.many)
	if difference := percent - collecting.percent; collecting.own && max(difference, -difference) > collecting.percent/8 {
		collecting.percent = percent
		debug.SetGCPercent(percent)
	}
}

// connections counts the connections of service points and adjusts the memory limit.
type connections struct {
	// limit is the memory limit without connections, in bytes; 0 if this program does not control it.
	limit int64
	mu    sync.Mutex
	// open is the number of connections, limited the number at the last limit change. many is set from manyPoints on. Guarded by mu.
	open, limited int
	many          bool
}

// stateChanged is the ConnState hook of the server.
func (c *connections) stateChanged(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.count(1)
	case http.StateClosed, http.StateHijacked:
		c.count(-1)
	}
}

// count adds more, which may be negative, to the number of connections.
func (c *connections) count(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += more
	const step = 256 // each change of the limit stops the program briefly
	if c.limit > 0 && (c.open-c.limited >= step || c.limited-c.open >= 2*step) {
		c.limited = c.open
		debug.SetMemoryLimit(c.limit + int64(c.open+step)*memoryOfServicePoint)
	}
	if many := c.open >= manyPoints || c.many && c.open >= manyPoints/2; many != c.many {
		c.many = many
		collecting.mu.Lock()
		collecting.many = many
		collecting.mu.Unlock()
		if many { // the next collection may be far away
			setCollector(0)
		}
	}
}

// Tune sets GOGC and the memory limit of the process. The environment variables GOGC and GOMEMLIMIT take precedence.
// It returns the memory limit in bytes for Options.MemoryLimit; 0 if GOMEMLIMIT is set.
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
