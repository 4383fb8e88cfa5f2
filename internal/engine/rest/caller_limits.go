package rest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"portolan/internal/base/problem"
)

// shares sees to it that no caller has all there is of something, such as the connections for lists.
type shares struct {
	// each is how many a caller may have at a time, waiting how many may wait for theirs.
	each, waiting int

	mu sync.Mutex
	// callers are those that have one or wait for one. Guarded by mu.
	callers map[int64]*share
}

type share struct {
	tokens chan struct{}
	users  int
	// spooled is how many bytes of the caller's answers wait in files.
	spooled atomic.Int64
}

// take waits for one of the caller's, and gives what the caller has; done gives it back. It gives 429 where too many wait already.
func (s *shares) take(ctx context.Context, caller int64) (one *share, done func(), err error) {
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
			"%d requests of yours are under way already: wait for some of them", s.each+s.waiting)
	}
	one.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.users--; one.users == 0 {
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
