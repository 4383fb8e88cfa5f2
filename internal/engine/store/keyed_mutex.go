package store

import (
	"context"
	"sync"
)

// keyedMutex is a mutex for each key. It serialises the updates of this process that have the same lock, so that they do not conflict.
type keyedMutex struct {
	mu sync.Mutex
	// all contains a lock for each key that is locked or waited for.
	all map[int64]*keyedLock
}

type keyedLock struct {
	token chan struct{}
	users int
}

// lock waits for the lock of a key; done releases it. The key 0 is never locked.
func (t *keyedMutex) lock(ctx context.Context, within int64) (done func(), err error) {
	if within == 0 {
		return func() {}, nil
	}
	t.mu.Lock()
	one := t.all[within]
	if one == nil {
		one = &keyedLock{token: make(chan struct{}, 1)}
		if t.all == nil {
			t.all = map[int64]*keyedLock{}
		}
		t.all[within] = one
	}
	one.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.all, within)
		}
	}
	select {
	case one.token <- struct{}{}:
		return func() { <-one.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
