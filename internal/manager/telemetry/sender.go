package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
)

// Intervals of the Sender.
const (
	// idlePause is the time between two passes without a new event.
	idlePause = 2 * time.Second
	// leaseLength is the lifetime of the lease. It exceeds a pass, in which requests take at most maxPass.
	leaseLength = 60 * time.Second
	maxPass     = 30 * time.Second
	// firstPause and lastPause are the minimum and maximum time between two attempts. It doubles each time.
	firstPause = 2 * time.Second
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
	// limit is the maximum number of events of the next message; 0 for maxBatch.
	limit int
	// dropped reports whether events were dropped since none waited, and rejected whether any were rejected.
	dropped, rejected bool
}

// NewSender returns a Sender with a User-Agent. Run starts it.
func NewSender(a *resource.API, log *slog.Logger, agent string) *Sender {
	a.Store.Watch(topic, nil) // so that events of other managers wake this one
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
		all.Go(func() { errs[i] = s.work(within, service) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(errs...)
}

// work limits the number of waiting events of a service, and sends them if its last attempt was long enough ago.
func (s *Sender) work(ctx context.Context, service int64) error {
	var x *serverconfig.DHCPActivityService
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		x, err = serviceOf(tx, s.api, service)
		return err
	}); err != nil {
		return err
	}
	if x == nil {
		s.setFailure(service, failure{})
		return s.trim(ctx, service, 0)
	}
	if err := s.trim(ctx, service, x.MaximumBufferedEvents); err != nil {
		return err
	}
	if f := s.failureOf(service); f.attempts > 0 && time.Now().Before(f.next) {
		return nil
	}
	return s.sendAll(ctx, service)
}

func (s *Sender) failureOf(service int64) failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing[service]
}

func (s *Sender) setFailure(service int64, f failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing[service] = f; f == (failure{}) {
		delete(s.failing, service)
	}
}

// trim drops the oldest events of a service that are more than a maximum. With the maximum 0, the service is disabled, and a service that
// was enabled again keeps its events.
func (s *Sender) trim(ctx context.Context, service, maximum int64) error {
	var last position
	more := false
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		last, more, err = excess(tx, service, maximum)
		return err
	}); err != nil {
		return err
	}
	for more {
		dropped := int64(0)
		if err := s.lease.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
			dropped, more = 0, false
			x, err := serviceOf(tx, s.api, service)
			if err != nil || (x != nil) != (maximum > 0) {
				return err
			}
			if dropped, err = drop(tx, service, last, dropAtOnce); err != nil {
				return err
			}
			if more = dropped == dropAtOnce; x == nil || s.failureOf(service).dropped {
				return nil
			}
			b, err := read(tx, s.api, x, 0)
			if err != nil {
				return err
			}
			return addEvent(tx, b, "ERROR", fmt.Sprintf("is too slow or does not accept events: more than maximumBufferedEvents (%d) wait, and the "+
				"oldest are dropped", maximum))
		}); err != nil {
			return err
		}
		s.Counted("dropped", int(dropped))
		if f := s.failureOf(service); maximum > 0 && dropped > 0 {
			f.dropped = true
			s.setFailure(service, f)
		}
	}
	return nil
}

// sendAll sends the events of a service until none is left, or its destination does not accept them.
func (s *Sender) sendAll(ctx context.Context, service int64) error {
	for ctx.Err() == nil {
		limit := maxBatch
		if f := s.failureOf(service); f.limit > 0 {
			limit = f.limit
		}
		var b batch
		if err := s.store.View(ctx, func(tx *store.Tx) error {
			x, err := serviceOf(tx, s.api, service)
			if err == nil && x != nil {
				b, err = read(tx, s.api, x, limit)
			}
			return err
		}); err != nil {
			return err
		}
		if len(b.events) == 0 {
			f := s.failureOf(service)
			f.dropped = false // the next loss is another one
			s.setFailure(service, f)
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
func (s *Sender) send(ctx context.Context, b batch) (rejected []waiting, err error) {
	if b.wrong != nil {
		return nil, b.wrong
	}
	b.receiver.agent = s.agent
	if s.failureOf(b.service).attempts > 0 {
		if err := b.receiver.checkHealth(ctx); err != nil {
			return nil, err
		}
	}
	return b.receiver.send(ctx, b.events)
}

// accepted deletes the events that the destination has accepted, and those that it rejects for their content.
func (s *Sender) accepted(ctx context.Context, b batch, rejected []waiting) error {
	before := s.failureOf(b.service)
	if err := s.lease.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
		if before.attempts > 0 && len(rejected) < len(b.events) {
			if err := addEvent(tx, b, "SUCCESS", "accepts events again"); err != nil {
				return err
			}
		}
		if len(rejected) > 0 && !before.rejected {
			if err := addEvent(tx, b, "ERROR", "rejects events for their content, which are not sent again"); err != nil {
				return err
			}
		}
		return remove(tx, b.events)
	}); err != nil {
		return err
	}
	after := failure{dropped: before.dropped, rejected: before.rejected || len(rejected) > 0}
	if len(rejected) == len(b.events) {
		after.attempts, after.limit = before.attempts, before.limit
	}
	s.setFailure(b.service, after)
	s.Counted("sent", len(b.events)-len(rejected))
	s.Counted("rejected", len(rejected))
	if len(rejected) > 0 {
		s.log.Warn("telemetry events rejected", "service", b.service, "server", b.name, "events", len(rejected))
	}
	return nil
}

// failed records a failed attempt. A destination that refuses a message for its size gets smaller ones, down to one event, which is then
// rejected.
func (s *Sender) failed(ctx context.Context, b batch, cause error) error {
	f := s.failureOf(b.service)
	var status *statusError
	if errors.As(cause, &status) && status.code == http.StatusRequestEntityTooLarge {
		if len(b.events) == 1 {
			return s.accepted(ctx, b, b.events)
		}
		f.limit = max(1, len(b.events)/2)
	}
	f.attempts++
	f.next = time.Now().Add(s.store.ShortenPause(min(firstPause<<min(f.attempts-1, 20), lastPause)))
	s.setFailure(b.service, f) // also if the event cannot be written
	s.Counted("failed", len(b.events))
	if f.attempts > 1 {
		return nil
	}
	s.log.Warn("telemetry delivery failed", "service", b.service, "server", b.name, "error", cause)
	return s.lease.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
		return addEvent(tx, b, "WARNING", "does not accept events: "+cause.Error())
	})
}

// addEvent adds an event of the manager about the destination of a server.
func addEvent(tx *store.Tx, b batch, kind, text string) error {
	return event.Add(tx, event.Event{EventType: kind, Category: "APPLICATION", SourceName: b.name,
		Message: "The destination of the DHCPActivityService of server " + b.name + " " + text + "."}, b.server)
}
