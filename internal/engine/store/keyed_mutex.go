package store

import (
	"context"
	"sync"
)

// keyedMutex lets updates within one resource take turns, so that those of one process do not collide.
type keyedMutex struct {
	mu sync.Mutex
	// all has a channel with one token for each resource that anybody works in or waits for.
	all map[int64]*keyedLock
}

type keyedLock struct {
	token chan struct{}
	users int
}

// lock waits for the turn; done gives it to the next. 0 is nothing, and waits for nobody.
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
