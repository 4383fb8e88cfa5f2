package store

import (
	"context"
	"fmt"
	"sync"
)

// pool contains the read connections. The connection that was returned last is used next: its page cache is warm, and a manager with few
// requests keeps few connections in use.
type pool struct {
	path string
	kind sessionKind
	// slots holds a token for each session in use.
	slots chan struct{}
	mu    sync.Mutex
	// idle are the open sessions that are not in use. mu guards it.
	idle []*session
}

func newPool(path string, size int, kind sessionKind) *pool {
	return &pool{path: path, kind: kind, slots: make(chan struct{}, size)}
}

// acquire returns a session and opens one if none is idle. It waits while all are in use.
func (p *pool) acquire(ctx context.Context) (*session, error) {
	select {
	case p.slots <- struct{}{}:
	default:
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	s, err := newSession(p.path, p.kind)
	if err != nil {
		<-p.slots
		return nil, fmt.Errorf("open read connection: %w", err)
	}
	return s, nil
}

func (p *pool) release(s *session) {
	s.restoreCache()
	p.mu.Lock()
	p.idle = append(p.idle, s)
	p.mu.Unlock()
	<-p.slots
}

// close waits until every session is returned and closes them.
func (p *pool) close() {
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	for _, s := range p.idle {
		_ = s.close() // a reader has no unwritten data
	}
}
