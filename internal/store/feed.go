package store

import "sync"

// feed tells followers in this process that something was committed.
type feed struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next commit
}

// Changed gives a channel that is closed at the next commit after the call.
func (s *Store) Changed() <-chan struct{} {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.feed.next == nil {
		s.feed.next = make(chan struct{})
	}
	return s.feed.next
}

func (f *feed) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil {
		close(f.next)
		f.next = nil
	}
}
