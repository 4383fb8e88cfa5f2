// Package fleet manages service points: their enrolment, presence, health, applications, updates and rollouts. It stores its tables through
// package store and speaks the types of package checkin. It does not depend on address and name management or on HTTP.
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

// Service manages the fleet of one manager process.
type Service struct {
	store     *store.Store
	authority *Authority
	log       *slog.Logger
	// interval is the time between two reports of a service point. It is checkin.Interval, except in tests.
	interval time.Duration
	// clockOffset is the difference between the database's clock and this machine's clock, as a time.Duration. It is positive where the
	// database is ahead.
	clockOffset atomic.Int64

	// programs are the applications that can be deployed. releases returns the published releases of the service point software.
	programs checkin.Programs
	releases Releases

	// maxMoved is the number of service points of a rollout handled in one step, movedAtOnce the number changed in one transaction.
	maxMoved, movedAtOnce int

	// ordering tracks whether this manager is writing or sending orders.
	ordering ordering

	// changedElsewhere holds a token after another manager may have changed any service point.
	changedElsewhere chan struct{}

	// advanceNow holds a token when a rollout has to advance at once (RolloutChanges). ended holds a token when an update has ended
	// (Ended).
	advanceNow, ended chan struct{}

	// closing is closed when check-ins are no longer held open.
	closing   chan struct{}
	closeOnce sync.Once

	// shownCache holds the rendered list entries of service points by id.
	shownCache *store.Cache[string, *shown]
	// keyCache holds the results of list queries (scanner.find). forgotten counts the entries removed from contacts.
	keyCache  *store.Cache[string, foundKeys]
	forgotten atomic.Int64

	// presence is locked while presence is written to the database.
	presence sync.Mutex

	mu sync.Mutex
	// contacts holds this manager's last contact with each service point, by id. Guarded by mu.
	contacts map[string]contact
	// nodeContacts holds the same for each node of a service point that may have several nodes. Guarded by mu.
	nodeContacts map[nodeID]contact
	// reports are the reports that wait to be written. Guarded by mu.
	reports reports
	// streams are the batches of records that wait to be applied. Guarded by mu, except for the fields that are set before the first batch
	// arrives.
	streams streams
	// waitersOf holds the open requests of each service point, by id. Guarded by mu.
	waitersOf map[string]*waiters
	// woken are the check-ins that were woken and are not yet processed. wakeWorkers is the number of goroutines that process them.
	woken       []*waitingCheckIn
	wakeWorkers int
	// paces is the earliest time of the next report of each source. Guarded by mu.
	paces map[reportSource]time.Time
	// changeLogOf holds the changes of each open transaction. mu guards the map; each entry belongs to its transaction.
	changeLogOf map[*store.Tx]*changeLog
	// logs holds a channel for each requested log excerpt, by request id. The channel is closed when the excerpt may have arrived. Guarded
	// by mu.
	logs map[string]chan struct{}
	// observe is called for each committed change; nil disables it.
	observe func(StatusChange)
	// startedAt is the last time passed to Begins, in Unix milliseconds.
	startedAt atomic.Int64
	// notifyChange is called in the transaction that changes the status or the connection of service points; nil disables it.
	notifyChange func(tx *store.Tx, ids []string, field, after string, reasons []string) error
}

// SetStart sets the time since when service points can reach this manager. New sets it to the current time.
func (s *Service) SetStart(at time.Time) { s.startedAt.Store(at.UnixMilli()) }

// New returns a Service. interval 0 means checkin.Interval.
func New(s *store.Store, a *Authority, log *slog.Logger, interval time.Duration, programs checkin.Programs, releases Releases) *Service {
	if interval <= 0 {
		interval = checkin.Interval
	}
	f := &Service{store: s, authority: a, log: log, programs: programs, releases: releases, interval: interval, closing: make(chan struct{}),
		changedElsewhere: make(chan struct{}, 1), advanceNow: make(chan struct{}, 1), ended: make(chan struct{}, 1),
		contacts:     map[string]contact{},
		nodeContacts: map[nodeID]contact{}, waitersOf: map[string]*waiters{},
		paces:       map[reportSource]time.Time{},
		changeLogOf: map[*store.Tx]*changeLog{}, logs: map[string]chan struct{}{}}
	f.shownCache = store.NewCache[string](s, store.CacheOptions[*shown]{Topics: []string{shownTopic}, Max: maxShown})
	f.keyCache = store.NewCache[string](s, store.CacheOptions[foundKeys]{Topics: []string{rowsTopic}, Max: maxQuestions})
	f.streams.takers = map[string]StreamTaker{stream.Events: f.eventTaker(), stream.Counters: f.counterTaker()}
	a.now = f.now
	f.SetStart(f.now())
	f.reports.busy = map[string]bool{}
	f.maxMoved, f.movedAtOnce = maxMoved, movedAtOnce
	if !s.HasOneWriter() {
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
		default: // a token is waiting already
		}
	})
	return f
}

// now returns the time of the database, which all managers share.
func (s *Service) now() time.Time { return s.store.Now().Add(time.Duration(s.clockOffset.Load())) }

// SetClock measures the database's clock. It is called at the start and every few seconds.
func (s *Service) SetClock(ctx context.Context) error {
	ahead, err := s.store.ClockOffset(ctx)
	// A smaller difference is measurement noise and is ignored, so that timestamps do not jump.
	if known := time.Duration(s.clockOffset.Load()); err == nil && (ahead-known).Abs() > clockNoise {
		s.clockOffset.Store(int64(ahead))
	}
	return err
}

// clockNoise is the largest difference between two measurements of a clock that runs correctly.
const clockNoise = 100 * time.Millisecond

// topic is touched, with the service point's id (store.Detail), by a transaction that changes its desired state, deletes it or revokes its
// certificate.
const topic = "fleet"

// Attend handles, until ctx ends, notifications of changes at other managers that do not name the service points. It wakes the check-ins of
// the service points that changed.
func (s *Service) Attend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changedElsewhere:
		}
		if err := s.wakeChanged(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "read changed service points failed", "error", err)
		}
	}
}

// wakeChanged wakes the check-ins of service points that were deleted, that wait for a new registration, or whose desired state changed.
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

// forget removes a deleted service point from the contacts and wakes its open requests.
func (s *Service) forget(id string) {
	s.mu.Lock()
	delete(s.contacts, id)
	for n := range int64(MaxNodeCount) {
		delete(s.nodeContacts, nodeID{id, n + 1})
	}
	s.mu.Unlock()
	s.Wake(id)
}

// Exists reports whether a service point with this id exists.
func Exists(tx *store.Tx, id string) (there bool, err error) {
	err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM service_point WHERE id = ?)", id).Scan(&there)
	return there, err
}
