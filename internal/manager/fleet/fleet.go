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

	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/stream"
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

	// programs are the applications that there are, releases gives those of the program itself.
	programs checkin.Programs
	releases Releases

	// mostMoved and movedAtOnce are how many service points of a rollout are moved in a step, and in a transaction of it.
	maxMoved, movedAtOnce int

	// ordering says whether orders are being given, or told.
	ordering ordering

	// elsewhere has a token when somebody else may have changed any of the service points.
	changedElsewhere chan struct{}

	// begun has a token when a rollout is to go on at once (Begun), ended when an update has ended (Ended).
	begun, ended chan struct{}

	// closing is closed when check-ins are no longer held open.
	closing   chan struct{}
	closeOnce sync.Once

	// shown is what lists have shown of service points, by their ids.
	shownCache *store.Cache[string, *shown]
	// found is what questions have found (scanner.find), forgotten how many service points were let go of in heard.
	keyCache  *store.Cache[string, foundKeys]
	forgotten atomic.Int64

	// presence is held by who writes down when service points were heard of.
	presence sync.Mutex

	mu sync.Mutex
	// heard is when this manager last heard of service points. Guarded by mu.
	contacts map[string]contact
	// heardNodes is the same of the nodes of those that may have several. Guarded by mu.
	nodeContacts map[nodeID]contact
	// reports are what is to be written of what service points say. Guarded by mu.
	reports reports
	// streams are the batches of records that come up. Guarded by mu, but for what is set before the first one comes.
	streams streams
	// holds are the service points with something held open. Guarded by mu.
	waitersOf map[string]*waiters
	// woken are check-ins that were woken and that nobody looks for yet, lookers how many goroutines do. Guarded by mu.
	woken       []*waitingCheckIn
	wakeWorkers int
	// paces is when the next report of somebody may be written. Guarded by mu.
	paces map[reportSource]time.Time
	// movesOf are the moves of the transactions under way, by their transaction. Guarded by mu; the moves themselves are the transaction's.
	movesOf map[*store.Tx]*moves
	// logs are closed when the end of a log that somebody waits for may have come, by its id. Guarded by mu.
	logs map[string]chan struct{}
	// observe is called for each move that was committed; nil where nobody asks.
	observe func(Move)
	// began is what Begins was called with last, in Unix milliseconds.
	startedAt atomic.Int64
	// told is told of moves of service points in their transactions; nil where nobody is.
	notifyMove func(tx *store.Tx, ids []string, field, after string, reasons []string) error
}

// Begins sets the time from which on service points could reach this manager. New sets the current time.
func (s *Service) Begins(at time.Time) { s.startedAt.Store(at.UnixMilli()) }

// New makes the service. interval 0 means checkin.Interval.
func New(s *store.Store, a *Authority, log *slog.Logger, interval time.Duration, programs checkin.Programs, releases Releases) *Service {
	if interval <= 0 {
		interval = checkin.Interval
	}
	f := &Service{store: s, authority: a, log: log, programs: programs, releases: releases, interval: interval, closing: make(chan struct{}),
		changedElsewhere: make(chan struct{}, 1), begun: make(chan struct{}, 1), ended: make(chan struct{}, 1), contacts: map[string]contact{},
		nodeContacts: map[nodeID]contact{}, waitersOf: map[string]*waiters{},
		paces:   map[reportSource]time.Time{},
		movesOf: map[*store.Tx]*moves{}, logs: map[string]chan struct{}{}}
	f.shownCache = store.NewCache[string](s, store.CacheOptions[*shown]{Topics: []string{shownTopic}, Max: maxShown})
	f.keyCache = store.NewCache[string](s, store.CacheOptions[foundKeys]{Topics: []string{rowsTopic}, Max: maxQuestions})
	f.streams.takers = map[string]StreamTaker{stream.Events: f.eventTaker()}
	a.now = f.now
	f.Begins(f.now())
	f.reports.busy = map[string]bool{}
	f.maxMoved, f.movedAtOnce = maxMoved, movedAtOnce
	if !s.OneWriter() {
		f.movedAtOnce = maxMoved
	}
	s.Watch(logTopic, f.wakeLogs)
	s.Watch(topic, func(ids []string) {
		for _, id := range ids {
			f.Wake(id)
		}
		if ids != nil {
			return
		}
		select {
		case f.changedElsewhere <- struct{}{}:
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
	// What a measurement alone makes of it is left, so that times do not go to and fro.
	if known := time.Duration(s.ahead.Load()); err == nil && (ahead-known).Abs() > clockNoise {
		s.ahead.Store(int64(ahead))
	}
	return err
}

// clockNoise is by how much two measurements of the database's clock may differ while it goes right.
const clockNoise = 100 * time.Millisecond

// topic is what a transaction touches, with the id (store.Detail), that changes what a service point is to run, or takes it or its
// certificate away.
const topic = "fleet"

// Attend sees, until ctx ends, to the check-ins held open for service points that somebody else may have changed, it is not said which.
func (s *Service) Attend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changedElsewhere:
		}
		if err := s.wakeChanged(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "looking for changed service points", "error", err)
		}
	}
}

// lookAtAll wakes the check-ins of service points that are not there any more, wait for a new registration, or are to run something else.
func (s *Service) wakeChanged(ctx context.Context) error {
	s.mu.Lock()
	changed := make(map[string]int64, len(s.waitersOf))
	for id, h := range s.waitersOf {
		changed[id] = h.desired
	}
	s.mu.Unlock()
	if len(changed) == 0 {
		return nil
	}
	if err := s.store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var id string
			var desired int64
			err := scan(&id, &desired)
			if held, ok := changed[id]; ok && held == desired {
				delete(changed, id)
			}
			return err
		}, "SELECT id, desired + logs_asked FROM service_point WHERE status <> ?", Waiting)
	}); err != nil {
		return err
	}
	for id := range changed {
		s.Wake(id)
	}
	return nil
}

// forget lets go of a service point that was deleted.
func (s *Service) forget(id string) {
	s.mu.Lock()
	delete(s.contacts, id)
	for n := range int64(MaxNodeCount) {
		delete(s.nodeContacts, nodeID{id, n + 1})
	}
	s.mu.Unlock()
	s.Wake(id)
}

// There reports whether there is a service point with an id.
func There(tx *store.Tx, id string) (there bool, err error) {
	err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM service_point WHERE id = ?)", id).Scan(&there)
	return there, err
}
