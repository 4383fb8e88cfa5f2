package rest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"portolan/internal/base/problem"
)

// shares prevents a caller from using all instances of a resource, such as the connections for lists.
type shares struct {
	// each is the number of instances that a caller may use at a time, waiting the number of requests that may wait.
	each, waiting int

	mu sync.Mutex
	// callers are the callers that use or wait for an instance. Guarded by mu.
	callers map[int64]*share
}

// maxIdleShares is the number of callers whose shares are kept without a user, because most callers send another request soon.
const maxIdleShares = 256

type share struct {
	tokens chan struct{}
	users  int
	// spooled is the size of the caller's answers in spool files, in bytes.
	spooled atomic.Int64
}

// acquire waits for an instance and returns the caller's share; done releases the instance. It returns a 429 problem if too many requests
// wait already.
func (s *shares) acquire(ctx context.Context, caller int64) (one *share, done func(), err error) {
	s.mu.Lock()
	one = s.callers[caller]
	if one == nil {
		one = &share{tokens: make(chan struct{}, s.each)}
		if s.callers == nil {
			s.callers = map[int64]*share{}
		}
		s.callers[caller] = one
	}
	if one.users >= s.each+s.waiting {
		s.mu.Unlock()
		return nil, nil, problem.New(http.StatusTooManyRequests, "TooManyRequests",
			"you already have %d requests in progress; wait until some of them finish", s.each+s.waiting)
	}
	one.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.users--; one.users == 0 && len(s.callers) > maxIdleShares {
			delete(s.callers, caller)
		}
	}
	select {
	case one.tokens <- struct{}{}:
		return one, func() { <-one.tokens; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, nil, ctx.Err()
	}
}
