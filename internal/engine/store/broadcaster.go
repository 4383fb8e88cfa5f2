package store

import "sync"

// broadcaster wakes all goroutines that wait for an event.
type broadcaster struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// wait returns the channel that the next wake closes.
func (b *broadcaster) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

// wake closes the current channel.
func (b *broadcaster) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
