package identity

import (
	"context"
	"sync"
	"time"
)

// gate lets few through at a time, and lets few wait, of one address fewer still.
type gate struct {
	slots, queue chan struct{}
	// each is how many of one address may be in the gate or wait for it.
	each int

	mu sync.Mutex
	// waiting counts those of each address that are in the gate or wait for it. Guarded by mu.
	waiting map[string]int
}

// Passwords that are hashed at a time by a gate, that may wait for it, and that one address may have there.
const (
	maxHashing = 1
	maxWaiting = 16
	maxOfOne   = 4
)

func newGate(each int) *gate { return newGateOf(maxHashing, maxWaiting, each) }

// newGateOf makes a gate that lets some through at a time, and lets some wait.
func newGateOf(through, wait, each int) *gate {
	return &gate{each: each, slots: make(chan struct{}, through), queue: make(chan struct{}, through+wait), waiting: map[string]int{}}
}

// Questions to authenticators that are asked at a time, that may wait, and that one address may have there.
const (
	maxAsking     = 32
	maxAskWaiting = 64
	maxAskOfOne   = 8
)

// pass runs fn when it is the turn of an address; "" stands for the manager itself, which has no share. It gives
// 429 where too many wait already.
func (g *gate) pass(ctx context.Context, remote string, fn func()) error {
	if !g.enter(remote) {
		return tooMany(time.Second, "too many sign-ins at a time")
	}
	defer g.leave(remote)
	select {
	case g.queue <- struct{}{}:
	default:
		return tooMany(time.Second, "too many sign-ins at a time")
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

// enter reports whether an address has room for one more.
func (g *gate) enter(remote string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := site(remote)
	if remote != "" && g.waiting[from] >= g.each {
		return false
	}
	g.waiting[from]++
	return true
}

func (g *gate) leave(remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := site(remote)
	if g.waiting[from]--; g.waiting[from] == 0 {
		delete(g.waiting, from)
	}
}
