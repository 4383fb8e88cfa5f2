package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Intervals of the Sender.
const (
	// idlePause is the time between two passes without a new event.
	idlePause = 5 * time.Second
	// leaseLength is the lifetime of the lease. It exceeds a pass, in which requests take at most maxPass.
	leaseLength = 60 * time.Second
	maxPass     = 30 * time.Second
	// firstPause and lastPause are the minimum and maximum time between two attempts. It doubles each time.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// dropAtOnce is the number of dropped events in one transaction.
	dropAtOnce = 10_000
)

// Sender sends the events of services to their destinations. One manager of a database at a time does so. An event can be sent again after
// a failure.
type Sender struct {
	api   *resource.API
	store *store.Store
	log   *slog.Logger
	agent string
	lease *store.Lease
	// Counted is called with a number of events and their result: sent, rejected, dropped or failed. A failed event is sent again.
	Counted func(result string, n int)

	mu sync.Mutex
	// failing are the services whose last attempt failed. Guarded by mu.
	failing map[int64]failure
}

// failure is the state of a service whose destination does not accept events.
type failure struct {
	attempts int
	next     time.Time
	// dropped reports whether events were dropped since the first failure.
	dropped bool
}

// NewSender returns a Sender with a User-Agent. Run starts it.
func NewSender(a *resource.API, log *slog.Logger, agent string) *Sender {
	return &Sender{api: a, store: a.Store, log: log, agent: agent, lease: a.Store.NewLease("telemetry", leaseLength),
		Counted: func(string, int) {}, failing: map[int64]failure{}}
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	s.store.WorkOn(ctx, []string{topic}, idlePause, s.log, "telemetry", s.runOnce, s.lease)
}

// runOnce sends the waiting events of each service, all services at the same time.
func (s *Sender) runOnce(ctx context.Context) error {
	var services []int64
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		services, err = servicesWaiting(tx)
		return err
	}); err != nil || len(services) == 0 {
		return err
	}
	if held, err := s.lease.Acquire(ctx); err != nil || !held {
		return err
	}
	within, end := context.WithTimeout(ctx, maxPass)
	defer end()
	errs := make([]error, len(services))
	var all sync.WaitGroup
	for i, service := range services {
		if f := s.failureOf(service); f.attempts == 0 || !time.Now().Before(f.next) {
			all.Go(func() { errs[i] = s.sendAll(within, service) })
		}
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (s *Sender) failureOf(service int64) failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing[service]
}

func (s *Sender) setFailure(service int64, f failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing[service] = f; f.attempts == 0 {
		delete(s.failing, service)
	}
}

// sendAll sends the events of a service until none is left, or its destination does not accept them.
func (s *Sender) sendAll(ctx context.Context, service int64) error {
	for ctx.Err() == nil {
		var b batch
		wanted := false
		if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
			b, wanted, err = read(tx, s.api, service)
			return err
		}); err != nil {
			return err
		}
		if !wanted {
			return s.discard(ctx, service)
		}
		if len(b.events) == 0 {
			return nil
		}
		rejected, err := s.send(ctx, b)
		switch {
		case err == nil:
			err = s.accepted(ctx, b, rejected)
		case ctx.Err() == nil:
			return s.failed(ctx, b, err)
		default: // the pass ends; the next one sends the events again
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// send sends a batch once. After a failure, it checks the health of the destination first.
func (s *Sender) send(ctx context.Context, b batch) (rejected int, err error) {
	b.receiver.agent = s.agent
	if s.failureOf(b.service).attempts > 0 {
		if err := b.receiver.checkHealth(ctx); err != nil {
			return 0, err
		}
	}
	return b.receiver.send(ctx, b.events)
}

// accepted deletes the events that the destination has accepted.
func (s *Sender) accepted(ctx context.Context, b batch, rejected int) error {
	before := s.failureOf(b.service)
	if err := s.lease.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
		if before.attempts > 0 {
			if err := addEvent(tx, b, "SUCCESS", "accepts events again"); err != nil {
				return err
			}
		}
		return remove(tx, b.events)
	}); err != nil {
		return err
	}
	s.setFailure(b.service, failure{})
	s.Counted("sent", len(b.events)-rejected)
	s.Counted("rejected", rejected)
	if rejected > 0 {
		s.log.Warn("telemetry events rejected", "service", b.service, "server", b.name, "events", rejected)
	}
	return nil
}

// failed records a failed attempt, and drops the oldest events beyond the maximum of the service.
func (s *Sender) failed(ctx context.Context, b batch, cause error) error {
	f := s.failureOf(b.service)
	f.attempts++
	f.next = time.Now().Add(s.store.ShortenPause(min(firstPause<<min(f.attempts-1, 20), lastPause)))
	dropped := int64(0)
	if err := s.lease.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) (err error) {
		if f.attempts == 1 {
			if err := addEvent(tx, b, "WARNING", "does not accept events: "+cause.Error()); err != nil {
				return err
			}
		}
		if dropped, err = drop(tx, b.service, b.most, dropAtOnce); err != nil || dropped == 0 || f.dropped {
			return err
		}
		return addEvent(tx, b, "ERROR", fmt.Sprintf("does not accept events, and more than maximumBufferedEvents (%d) wait: the oldest are "+
			"dropped", b.most))
	}); err != nil {
		return err
	}
	if f.attempts == 1 {
		s.log.Warn("telemetry delivery failed", "service", b.service, "server", b.name, "error", cause)
	}
	f.dropped = f.dropped || dropped > 0
	s.setFailure(b.service, f)
	s.Counted("failed", len(b.events))
	s.Counted("dropped", int(dropped))
	return nil
}

// discard deletes the events of a service that is disabled or deleted.
func (s *Sender) discard(ctx context.Context, service int64) error {
	s.setFailure(service, failure{})
	for n := int64(dropAtOnce); n == dropAtOnce; {
		if err := s.lease.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) (err error) {
			n, err = drop(tx, service, 0, dropAtOnce)
			return err
		}); err != nil {
			return err
		}
		s.Counted("dropped", int(n))
	}
	return nil
}

// addEvent adds an event of the manager about the destination of a server.
func addEvent(tx *store.Tx, b batch, kind, text string) error {
	return event.Add(tx, event.Event{EventType: kind, Category: "APPLICATION", SourceName: b.name,
		Message: "The destination of the DHCPActivityService of server " + b.name + " " + text + "."}, b.server)
}
