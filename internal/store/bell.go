package store

import "sync"

// bell wakes those who wait for something to happen.
type bell struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// next gives a channel that is closed when the bell is rung.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
