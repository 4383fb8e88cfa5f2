package fleet

import (
	"cmp"
	"context"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/stream"
)

// StreamSource is the source of the records of a batch. Application is the id of an application; empty for the agent itself.
type StreamSource struct {
	ServicePoint string
	Node         int64
	Application  string
}

// StreamTaker applies the records of one kind.
type StreamTaker struct {
	// Decode parses a record. It returns a problem that names the field if the record cannot be applied. It runs before any transaction.
	Decode func(record json.RawMessage) (any, error)
	// Apply applies records, as returned by Decode, in a transaction that may be repeated. Each record arrives once, and those of a source
	// in order.
	Apply func(tx *store.Tx, from StreamSource, records []any) error
}

// RegisterTaker registers the taker of a kind of records. It must be called before the first batch arrives.
func (s *Service) RegisterTaker(kind string, t StreamTaker) { s.streams.takers[kind] = t }

// ObserveStream sets the function that counts applied records and records dropped by their sources. It must be called before the first
// batch arrives.
func (s *Service) ObserveStream(observe func(kind string, applied int, lost int64)) {
	s.streams.observe = observe
}

// streams is the queue of batches. All waiting batches, up to maxBatch, are applied in one transaction.
type streams struct {
	takers  map[string]StreamTaker
	observe func(kind string, applied int, lost int64)
	// waiting are the batches in the order of arrival. writing means that a goroutine applies some. Guarded by Service.mu.
	waiting []*pendingBatch
	writing bool
}

// pendingBatch is a batch that waits to be applied.
type pendingBatch struct {
	stream.Batch
	from    StreamSource
	records []any
	// next is the next expected record, applied and lost are the counts, err is the error. done is closed after they are set.
	next    int64
	applied int
	lost    int64
	err     error
	done    chan struct{}
}

// maxBatches is the number of waiting batches, overloadWait the delay asked of a source if there are more.
const (
	maxBatches   = 1024
	overloadWait = time.Second
)

// errStreamMoved rejects a batch whose source has sent another batch to another manager at the same time.
var errStreamMoved = problem.Conflict("StreamMoved", "another batch of the same source was applied meanwhile: retry")

// ApplyBatch applies a batch of records from the service point of the certificate, and acknowledges it after the commit. Records applied
// before are skipped. An unknown kind is rejected, so that its source keeps the records.
func (s *Service) ApplyBatch(ctx context.Context, shown *x509.Certificate, b stream.Batch) (a stream.Answer, err error) {
	if err := b.Check(); err != nil {
		return a, err
	}
	taker, there := s.streams.takers[b.Kind]
	if !there {
		return a, problem.BadRequest(stream.UnknownKind, "kind: %q is not known to this manager", b.Kind)
	}
	if err := s.VerifyCertificate(ctx, shown); err != nil {
		return a, err
	}
	at := nodeIDOf(shown)
	w := &pendingBatch{Batch: b, from: StreamSource{at.id, at.node, b.Application}, done: make(chan struct{})}
	for i, text := range b.Records {
		record, err := taker.Decode(text)
		if err != nil {
			return a, problem.BadRequest(stream.InvalidRecord, "records[%d]: %v", i, err)
		}
		w.records = append(w.records, record)
	}
	if !s.queueBatch(w) {
		return stream.Answer{Next: b.First, WaitMillis: overloadWait.Milliseconds()}, nil
	}
	<-w.done // within batchTimeout
	if w.err == nil && s.streams.observe != nil {
		s.streams.observe(b.Kind, w.applied, w.lost)
	}
	return stream.Answer{Next: w.next}, w.err
}

// queueBatch enqueues a batch. It reports false if too many are waiting.
func (s *Service) queueBatch(w *pendingBatch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams.waiting) >= maxBatches {
		return false
	}
	s.streams.waiting = append(s.streams.waiting, w)
	if !s.streams.writing {
		s.streams.writing = true
		go s.applyWaiting()
	}
	return true
}

// applyWaiting applies waiting batches until the queue is empty.
func (s *Service) applyWaiting() {
	for {
		s.mu.Lock()
		some := s.streams.waiting[:min(maxBatch, len(s.streams.waiting))]
		s.streams.waiting = slices.Clone(s.streams.waiting[len(some):])
		s.streams.writing = len(some) > 0
		s.mu.Unlock()
		if len(some) == 0 {
			return
		}
		s.applyTogether(some)
		for _, w := range some {
			close(w.done)
		}
	}
}

// applyTogether applies batches in one transaction. If this fails because of one of them, it applies each in a transaction of its own.
func (s *Service) applyTogether(some []*pendingBatch) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	slices.SortStableFunc(some, func(a, b *pendingBatch) int { // in the same order everywhere, so that transactions do not deadlock
		return cmp.Or(cmp.Compare(a.from.ServicePoint, b.from.ServicePoint), cmp.Compare(a.from.Node, b.from.Node),
			cmp.Compare(a.from.Application, b.from.Application), cmp.Compare(a.Kind, b.Kind))
	})
	err := catchPanic(func() error {
		return s.withEvents(s.ownRows)(ctx, store.Author{}, func(tx *store.Tx) error {
			for _, w := range some {
				if err := s.applyBatch(tx, w); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if len(some) > 1 && mayConcernOne(ctx, err) {
		for _, w := range some {
			s.applyTogether([]*pendingBatch{w})
		}
		return
	}
	for _, w := range some {
		w.err = err
	}
}

// applyBatch applies the new records of a batch and writes the position of its source.
func (s *Service) applyBatch(tx *store.Tx, w *pendingBatch) error {
	key := []any{w.from.ServicePoint, w.from.Node, w.from.Application, w.Kind}
	var spool string
	next := int64(1)
	err := tx.QueryRow("SELECT spool, next FROM stream WHERE service_point = ? AND node = ? AND application = ? AND kind = ?", key...).
		Scan(&spool, &next)
	begins := errors.Is(err, sql.ErrNoRows)
	if err != nil && !begins {
		return err
	}
	before := next
	if !begins && spool != w.Spool { // the source has started a new numbering
		next = w.First
	}
	skip := min(max(0, next-w.First), int64(len(w.records)))
	w.next = max(next, w.First+int64(len(w.records)))
	w.applied, w.lost = len(w.records)-int(skip), max(0, w.First-next)
	if w.applied == 0 {
		return nil
	}
	if err := checkSource(tx, w.from); err != nil {
		return err
	}
	if err := s.streams.takers[w.Kind].Apply(tx, w.from, w.records[skip:]); err != nil {
		return err
	}
	var n int64
	if begins {
		n, err = tx.Exec("INSERT INTO stream (service_point, node, application, kind, spool, next, lost) VALUES (?,?,?,?,?,?,?) "+
			"ON CONFLICT DO NOTHING", append(key, w.Spool, w.next, w.lost)...)
	} else {
		n, err = tx.Exec("UPDATE stream SET spool = ?, next = ?, lost = lost + ? WHERE service_point = ? AND node = ? AND application = ? AND "+
			"kind = ? AND spool = ? AND next = ?", append(append([]any{w.Spool, w.next, w.lost}, key...), spool, before)...)
	}
	if err == nil && n == 0 {
		err = errStreamMoved
	}
	return err
}

// checkSource returns an error if a service point or its application does not exist. The service point cannot be deleted until the
// transaction ends.
func checkSource(tx *store.Tx, from StreamSource) error {
	var there int
	err := tx.QueryRow("SELECT 1 FROM service_point WHERE id = ?"+tx.Staying(), from.ServicePoint).Scan(&there)
	if errors.Is(err, sql.ErrNoRows) {
		return unknownError(tx, from.ServicePoint)
	}
	if err != nil || from.Application == "" {
		return err
	}
	name, err := ApplicationName(tx, from.ServicePoint, from.Application)
	if err == nil && name == "" {
		err = problem.BadRequest(stream.InvalidRecord, "application: service point %q has no application %q", from.ServicePoint,
			from.Application)
	}
	return err
}

// eventTaker returns the taker of records of the kind stream.Events. The events are listed with the status changes of their service
// point.
func (s *Service) eventTaker() StreamTaker {
	return StreamTaker{
		Decode: func(text json.RawMessage) (any, error) {
			var e stream.Event
			if err := json.Unmarshal(text, &e); err != nil {
				return nil, err
			}
			return e, e.Check()
		},
		Apply: func(tx *store.Tx, from StreamSource, records []any) error {
			all, now := s.changesIn(tx), s.now().UnixMilli()
			name := ""
			if from.Application != "" {
				var err error
				if name, err = ApplicationName(tx, from.ServicePoint, from.Application); err != nil {
					return err
				}
			}
			for _, one := range records {
				e, ok := one.(stream.Event)
				if !ok {
					return fmt.Errorf("%T is not an event", one)
				}
				if from.Application != "" { // an application reports only about itself
					e.Application = cmp.Or(name, "unknown") + "/" + from.Application
				}
				if e.Application != "" {
					e.Field = "applications/" + e.Application + "/" + e.Field
				}
				if from.Node > 1 {
					e.Reason = fmt.Sprintf("node-%d: %s", from.Node, e.Reason)
				}
				if e.At == 0 || e.At > now { // the clock of the service point is ahead
					e.At = now
				}
				all.events = append(all.events, event{from.ServicePoint, Event{e.At, e.Field, e.Before, e.After, e.Reason}})
			}
			return nil
		}}
}
