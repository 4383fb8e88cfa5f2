// Package fleet is the fleet as the manager sees it: service points, their enrolment, presence and
// health. It keeps its tables through store/ and speaks the types of checkin/; it knows nothing of
// addresses and names, nor of HTTP.
package fleet

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/checkin"
	"portolan/internal/store"
)

// States of a service point (spec.md section 3).
const (
	Waiting      = "WAITING_FOR_PROVISIONING"
	Healthy      = "HEALTHY"
	Unhealthy    = "UNHEALTHY"
	Expired      = "EXPIRED"
	Connected    = "CONNECTED"
	NotConnected = "NOT_CONNECTED"
)

// Service keeps the fleet.
type Service struct {
	store     *store.Store
	authority *Authority
	log       *slog.Logger
	// interval is how often service points report; checkin.Interval but in tests.
	interval time.Duration
	// ahead is by how much the database's clock is ahead of this machine's, as a time.Duration.
	ahead atomic.Int64

	// elsewhere has a token when another manager may have deleted a service point.
	elsewhere chan struct{}

	// closing is closed when check-ins are no longer held open.
	closing   chan struct{}
	closeOnce sync.Once

	mu sync.Mutex
	// heard is when this manager last heard of service points. Guarded by mu.
	heard map[string]heard
	// holds are the service points with a check-in held open. Guarded by mu.
	holds map[string]*hold
	// paces is when the next report of a service point may be written. Guarded by mu.
	paces map[string]time.Time
}

// hold is what the check-ins of one service point that are held open wait for.
type hold struct {
	// open is how many there are; gone is closed when the service point is deleted, or its certificate is good no more.
	open int
	gone chan struct{}
}

// New makes the service. interval 0 means checkin.Interval.
func New(s *store.Store, a *Authority, log *slog.Logger, interval time.Duration) *Service {
	if interval <= 0 {
		interval = checkin.Interval
	}
	f := &Service{store: s, authority: a, log: log, interval: interval, closing: make(chan struct{}), elsewhere: make(chan struct{}, 1),
		heard: map[string]heard{}, holds: map[string]*hold{}, paces: map[string]time.Time{}}
	a.now = f.now
	s.Watch(topic, func() {
		select {
		case f.elsewhere <- struct{}{}:
		default: // it is about to be looked at
		}
	})
	return f
}

// now is the time of the database, which all managers share.
func (s *Service) now() time.Time { return s.store.Now().Add(time.Duration(s.ahead.Load())) }

// SetClock asks the database for the time. It is called at the start and every few seconds.
func (s *Service) SetClock(ctx context.Context) error {
	ahead, err := s.store.Ahead(ctx)
	if err == nil {
		s.ahead.Store(int64(ahead))
	}
	return err
}

// topic is what a transaction touches that takes a service point, or its certificate, away (store.Tx.Touch).
const topic = "fleet"

// Attend ends, until ctx does, the check-ins held open for service points that another manager has
// deleted.
func (s *Service) Attend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.elsewhere:
		}
		if err := s.endDeleted(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "looking for deleted service points", "error", err)
		}
	}
}

// endDeleted ends the check-ins of service points that are not there any more, or wait for a new registration.
func (s *Service) endDeleted(ctx context.Context) error {
	s.mu.Lock()
	gone := make(map[string]bool, len(s.holds))
	for id := range s.holds {
		gone[id] = true
	}
	s.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	if err := s.store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			delete(gone, id)
			return err
		}, "SELECT id FROM service_point WHERE status <> ?", Waiting)
	}); err != nil {
		return err
	}
	for id := range gone {
		s.forget(id)
	}
	return nil
}

// forget lets go of a service point that was deleted.
func (s *Service) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.heard, id)
	delete(s.paces, id)
	if h, ok := s.holds[id]; ok {
		close(h.gone)
		delete(s.holds, id)
	}
}

// hold counts a check-in that is held open. It is let go of by release.
func (s *Service) hold(id string) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.holds[id]
	if !ok {
		h = &hold{gone: make(chan struct{})}
		s.holds[id] = h
	}
	h.open++
	return h
}

func (s *Service) release(id string, h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.open--; h.open == 0 && s.holds[id] == h {
		delete(s.holds, id)
	}
}

// EndCheckins lets every check-in that is held open answer now, and holds none from then on: the manager is
// about to end.
func (s *Service) EndCheckins() { s.closeOnce.Do(func() { close(s.closing) }) }

// closes reports whether the manager is about to end.
func (s *Service) closes() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}
