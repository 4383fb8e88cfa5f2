package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Intervals of the Sender.
const (
	// pollInterval is the time between two checks for changed webhooks. The webhooks are cached until one changes.
	pollInterval = 250 * time.Millisecond
	// leaseLength is the lifetime of the lease. A manager that cannot renew the lease continues to send for maxLeaseUse. Its last messages
	// are then accepted or given up before another manager sends.
	leaseLength  = 20 * time.Second
	leaseRenewal = 4 * time.Second
	maxLeaseUse  = leaseLength - sendTime - graceTime
	// saveInterval is the time between writes of the progress of webhooks. After a kill, the messages since the last write are sent again.
	// idleSaveInterval is the time between writes if only unwanted changes were skipped.
	saveInterval     = time.Second
	idleSaveInterval = 30 * time.Second
)

// EncodeFunc encodes a transaction with its changes in the collections and directly below the parent, up to limit changes. Empty
// collections and parent 0 mean all. It returns nil if there are no such changes.
type EncodeFunc func(ctx context.Context, e store.Entry, collections []string, parent int64, limit int) ([]byte, error)

// Sender sends changes to webhooks. One manager of a database at a time does so.
type Sender struct {
	store  *store.Store
	render EncodeFunc
	log    *slog.Logger
	// sealer decrypts the secrets of webhooks.
	sealer resource.Sealer
	lease  *store.Lease
	known  *store.Cache[struct{}, []hook]
	client *http.Client
	// agent is the User-Agent header.
	agent string
	// Sent is called after each attempt; nil disables it.
	Sent func(taken bool)

	// sendUntil is the time until which messages may be sent, in Unix milliseconds. A manager that was suspended must not send old messages
	// after another manager has sent later ones.
	sendUntil atomic.Int64

	// leaseTaken is the time of the last renewal of the lease, hasLease whether the lease is held, and progressSaved the time of the last
	// write of progress. Only Run uses the fields from here on.
	leaseTaken    time.Time
	hasLease      bool
	progressSaved time.Time
	// workers are the running workers, by webhook id, including those that are stopping.
	workers map[int64]*worker
}

// NewSender returns a Sender with a User-Agent. Run starts it.
func NewSender(a *resource.API, tell EncodeFunc, log *slog.Logger, agent string) *Sender {
	s := a.Store
	return &Sender{store: s, sealer: a.Sealer, render: tell, log: log, agent: agent, lease: s.NewLease("webhooks", leaseLength),
		workers: map[int64]*worker{}, client: newClient(),
		known: store.NewCache[struct{}](s, store.CacheOptions[[]hook]{Topics: []string{collectionName}})}
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	s.store.Work(ctx, pollInterval, s.log, "webhooks", s.runOnce)
	for _, w := range s.workers {
		w.end()
	}
	var running sync.WaitGroup
	for _, w := range s.workers {
		running.Go(func() { <-w.done })
	}
	running.Wait()
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), leaseRenewal)
	defer end()
	if err := errors.Join(s.saveProgress(ending, true), s.lease.Release(ending)); err != nil {
		s.log.Error("webhook sender not stopped cleanly", "error", err)
	}
}

// runOnce starts and stops workers to match the current webhooks, and writes their progress.
func (s *Sender) runOnce(ctx context.Context) error {
	within, end := context.WithTimeout(ctx, leaseRenewal)
	defer end()
	all, err := s.hooks(within)
	if err == nil && time.Since(s.leaseTaken) >= leaseRenewal && (len(all) > 0 || s.hasLease) {
		err = s.holdLease(within, len(all) > 0)
	}
	if err != nil {
		if time.Since(s.leaseTaken) > maxLeaseUse { // another manager may take the lease soon
			s.hasLease = false
			s.setWorkers(ctx, nil)
		}
		return err
	}
	if !s.hasLease {
		all = nil
	}
	ended := s.setWorkers(ctx, all)
	if ended || time.Since(s.progressSaved) >= saveInterval {
		return s.saveProgress(within, ended)
	}
	return nil
}

// hooks returns the active webhooks.
func (s *Sender) hooks(ctx context.Context) ([]hook, error) {
	if all, ok := s.known.Now(struct{}{}); ok {
		return all, nil
	}
	var all []hook
	err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		if all, err = hooks(tx, s.sealer); err == nil {
			s.known.Put(tx, struct{}{}, all)
		}
		return err
	})
	return all, err
}

// holdLease takes or renews the lease, or releases it if it is no longer wanted.
func (s *Sender) holdLease(ctx context.Context, wanted bool) error {
	if !wanted {
		if len(s.workers) > 0 { // the workers must stop first
			return nil
		}
		s.hasLease = false
		return s.lease.Release(ctx)
	}
	began := time.Now() // the lease counts from the request, not from the answer
	held, err := s.lease.Acquire(ctx)
	if err == nil {
		if s.leaseTaken, s.hasLease = began, held; held {
			s.sendUntil.Store(began.Add(maxLeaseUse).UnixMilli())
		}
	}
	return err
}

// setWorkers starts and stops workers, so that exactly these webhooks have one. It does not wait: ended means that a worker has stopped.
// Its webhook may start again after its progress is written.
func (s *Sender) setWorkers(ctx context.Context, all []hook) (ended bool) {
	wanted := map[int64]hook{}
	for _, h := range all {
		wanted[h.id] = h
	}
	for id, w := range s.workers {
		if h, ok := wanted[id]; !ok || h.version != w.version {
			w.end()
		}
		select {
		case <-w.done:
			ended = true
		default:
		}
	}
	for id, h := range wanted {
		if s.workers[id] == nil {
			s.startWorker(ctx, h)
		}
	}
	return ended
}

func (s *Sender) startWorker(ctx context.Context, h hook) {
	ctx, end := context.WithCancel(ctx)
	w := &worker{Sender: s, hook: h, end: end, done: make(chan struct{})}
	s.workers[h.id] = w
	go func() {
		defer close(w.done)
		defer end()
		defer func() {
			if p := recover(); p != nil { // it starts again
				s.log.Error("panic", "webhook", w.name, "error", p, "stack", string(debug.Stack()))
				store.Pause(ctx, firstPause)
			}
		}()
		w.run(ctx)
	}()
}

// saveProgress writes the progress of the webhooks and removes workers that have stopped. urgent means that a worker waits for it.
func (s *Sender) saveProgress(ctx context.Context, urgent bool) error {
	var over []int64
	var marks []progressUpdate
	for id, w := range s.workers {
		select {
		case <-w.done: // checked before its progress is read
			over = append(over, id)
		default:
		}
		if m, events, due := w.takeUnsaved(urgent); due {
			marks = append(marks, progressUpdate{w, m, events, true})
		}
	}
	s.progressSaved = time.Now()
	if len(marks) > 0 {
		if err := s.store.UpdateIn(ctx, store.ExtensionScope(), store.Author{},
			func(tx *store.Tx) error { return write(tx, marks) }); err != nil {
			return err
		}
	}
	for _, m := range marks {
		m.worker.setSaved(m.progress, len(m.events))
		if !m.isSaved {
			m.worker.end() // it starts again from the stored position
		}
	}
	for _, id := range over {
		delete(s.workers, id)
	}
	return nil
}

// progressUpdate is a write of the progress of a webhook. isSaved means that it succeeded.
type progressUpdate struct {
	worker   *worker
	progress progress
	events   []event.Event
	isSaved  bool
}

// write writes the progress of webhooks. It updates a webhook even if its settings have changed, since the messages were delivered. It
// skips a webhook whose stored position has changed, by a restart elsewhere or by another manager.
func write(tx *store.Tx, marks []progressUpdate) error {
	for i := range marks {
		m := &marks[i]
		halted := 0
		if m.progress.stopped {
			halted = 1
		}
		n, err := tx.Exec("UPDATE webhook SET position = ?, delivered = ?, failures = ?, message = ?, stopped = ?, version = version + ?"+
			" WHERE id = ? AND position = ?", m.progress.position.String(), m.progress.delivered, m.progress.failures,
			m.progress.message, halted, halted, m.worker.id, m.worker.saved.position.String())
		if err != nil {
			return fmt.Errorf("store the state of a webhook: %w", err)
		}
		if m.isSaved = n > 0; !m.isSaved {
			continue
		}
		if m.progress.stopped {
			tx.Touch(collectionName)
		}
		for _, e := range m.events {
			if err := event.Add(tx, e, m.worker.id); err != nil {
				return err
			}
		}
	}
	return nil
}
