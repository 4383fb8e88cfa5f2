package store

import "sync"

// broadcaster wakes those who wait for something to happen.
type broadcaster struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// wait gives a channel that is closed at the next wake.
func (b *broadcaster) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

// wake wakes all who wait.
func (b *broadcaster) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
