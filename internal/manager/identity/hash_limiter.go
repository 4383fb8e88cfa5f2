package identity

import (
	"context"
	"sync"
	"time"
)

// limiter limits concurrent and waiting calls, in total and per client address.
type limiter struct {
	slots, queue chan struct{}
	// maxPerAddress is the maximum number of running and waiting calls of one address.
	maxPerAddress int

	mu sync.Mutex
	// waiting counts the running and waiting calls per address. Guarded by mu.
	waiting map[string]int
}

// Limits of password hashing: concurrent, waiting, and per address.
const (
	maxHashing           = 1
	maxWaiting           = 16
	maxHashingPerAddress = 4
)

func newHashLimiter(maxPerAddress int) *limiter {
	return newLimiter(maxHashing, maxWaiting, maxPerAddress)
}

// newLimiter returns a limiter of concurrent and waiting calls.
func newLimiter(concurrent, waiting, maxPerAddress int) *limiter {
	return &limiter{maxPerAddress: maxPerAddress, slots: make(chan struct{}, concurrent),
		queue: make(chan struct{}, concurrent+waiting), waiting: map[string]int{}}
}

// Limits of requests to authenticators: concurrent, waiting, and per address.
const (
	maxLookups           = 32
	maxLookupsWaiting    = 64
	maxLookupsPerAddress = 8
)

// run calls fn as soon as a slot is free. It returns a 429 problem if too many calls are waiting. An empty remote is the manager itself,
// which is not limited per address.
func (g *limiter) run(ctx context.Context, remote string, fn func()) error {
	if !g.acquire(remote) {
		return tooManyRequests(time.Second, "too many concurrent sign-ins")
	}
	defer g.release(remote)
	select {
	case g.queue <- struct{}{}:
	default:
		return tooManyRequests(time.Second, "too many concurrent sign-ins")
	}
	defer func() { <-g.queue }()
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-g.slots }()
	fn()
	return nil
}

// acquire reports whether the address may start another call, and counts it.
func (g *limiter) acquire(remote string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := networkOf(remote)
	if remote != "" && g.waiting[from] >= g.maxPerAddress {
		return false
	}
	g.waiting[from]++
	return true
}

func (g *limiter) release(remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := networkOf(remote)
	if g.waiting[from]--; g.waiting[from] == 0 {
		delete(g.waiting, from)
	}
}
