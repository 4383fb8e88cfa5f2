package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Times of the work of a manager.
const (
	// lookEvery is how often it looks whether webhooks have changed: what it knows of them is remembered until then.
	pollInterval = 250 * time.Millisecond
	// leaseLength is for how long one manager sends at a time. holdsFor is how long it goes on where the lease cannot be taken for longer:
	// what it sends then is taken or given up before another manager sends.
	leaseLength  = 20 * time.Second
	leaseRenewal = 4 * time.Second
	maxLeaseUse  = leaseLength - sendTime - graceTime
	// noteEvery is how often it is written down how far the webhooks have come: what they were sent since is sent again after a kill. Of those
	// that were sent nothing, because nothing was wanted, it is written down more rarely.
	saveInterval     = time.Second
	idleSaveInterval = 30 * time.Second
)

// Tell words a transaction with those of its changes that lie in the collections and right below the parent, at most some; empty and 0
// stand for all. nil where there are none.
type Tell func(ctx context.Context, e store.Entry, collections []string, parent int64, most int) ([]byte, error)

// Sender sends what changes to webhooks: of all managers of a database one at a time.
type Sender struct {
	store  *store.Store
	render Tell
	log    *slog.Logger
	// sealer opens the secrets of webhooks.
	sealer resource.Sealer
	lease  *store.Lease
	known  *store.Cache[struct{}, []hook]
	// agent is what it calls itself.
	agent string
	// Sent is told of each attempt; nil where nobody counts.
	Sent func(taken bool)

	// until is up to when messages may be sent, in Unix milliseconds: a manager that was stopped in between sends nothing old behind what
	// another one has sent meanwhile.
	sendUntil atomic.Int64

	// What follows is Run's own. taken is when the lease was last taken, held whether it is held, noted when it was last written down how
	// far the webhooks have come.
	leaseTaken    time.Time
	hasLease      bool
	progressSaved time.Time
	// working are the webhooks that are worked for, by id. One that is to end is among them until it has ended.
	workers map[int64]*worker
}

// NewSender makes what sends, and calls itself agent. Run runs it.
func NewSender(a *resource.API, tell Tell, log *slog.Logger, agent string) *Sender {
	s := a.Store
	return &Sender{store: s, sealer: a.Sealer, render: tell, log: log, agent: agent, lease: s.NewLease("webhooks", leaseLength),
		workers: map[int64]*worker{},
		known:   store.NewCache[struct{}](s, store.CacheOptions[[]hook]{Topics: []string{collectionName}})}
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
		s.log.Error("ending the work for webhooks", "error", err)
	}
}

// look begins and ends the work for webhooks as they are now, and writes down how far they have come.
func (s *Sender) runOnce(ctx context.Context) error {
	within, end := context.WithTimeout(ctx, leaseRenewal)
	defer end()
	all, err := s.hooks(within)
	if err == nil && time.Since(s.leaseTaken) >= leaseRenewal && (len(all) > 0 || s.hasLease) {
		err = s.holdLease(within, len(all) > 0)
	}
	if err != nil {
		if time.Since(s.leaseTaken) > maxLeaseUse { // which somebody else may take soon
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

// hooks gives the webhooks that something is to be sent to.
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

// hold takes the lease, takes it for longer or, where it is not wanted any more, gives it back.
func (s *Sender) holdLease(ctx context.Context, wanted bool) error {
	if !wanted {
		if len(s.workers) > 0 { // they end first
			return nil
		}
		s.hasLease = false
		return s.lease.Release(ctx)
	}
	began := time.Now() // the lease counts from then on, not from when it is had
	held, err := s.lease.Take(ctx)
	if err == nil {
		if s.leaseTaken, s.hasLease = began, held; held {
			s.sendUntil.Store(began.Add(maxLeaseUse).UnixMilli())
		}
	}
	return err
}

// keepTo works for these webhooks and no others. It waits for none: ended says that one has ended, whose work may begin again once it
// is written down how far it came.
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
			if p := recover(); p != nil { // it begins again
				s.log.Error("panic", "webhook", w.name, "error", p, "stack", string(debug.Stack()))
				store.Pause(ctx, firstPause)
			}
		}()
		w.run(ctx)
	}()
}

// note writes down how the webhooks are, and lets go of those whose work has ended. urgent says that somebody waits for it.
func (s *Sender) saveProgress(ctx context.Context, urgent bool) error {
	var over []int64
	var marks []progressUpdate
	for id, w := range s.workers {
		select {
		case <-w.done: // before it is asked how it is
			over = append(over, id)
		default:
		}
		if m, events, due := w.unsaved(urgent); due {
			marks = append(marks, progressUpdate{w, m, events, true})
		}
	}
	s.progressSaved = time.Now()
	if len(marks) > 0 {
		if err := s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error { return write(tx, marks) }); err != nil {
			return err
		}
	}
	for _, m := range marks {
		m.worker.setSaved(m.progress, len(m.events))
		if !m.isSaved {
			m.worker.end() // it begins again from where it is written down
		}
	}
	for _, id := range over {
		delete(s.workers, id)
	}
	return nil
}

// marked is what is written down of a webhook; there says that it was.
type progressUpdate struct {
	worker   *worker
	progress progress
	events   []event.Event
	isSaved  bool
}

// write writes down how webhooks are. Whatever else of one has changed: what it was sent it has, unless it is to go on elsewhere, or
// another manager has written down more.
func write(tx *store.Tx, marks []progressUpdate) error {
	for i := range marks {
		m := &marks[i]
		halted := 0
		if m.progress.stopped {
			halted = 1
		}
		n, err := tx.Exec("UPDATE webhook SET position = ?, delivered = ?, failures = ?, message = ?, stopped = ?, version = version + ?"+
			" WHERE id = ? AND position = ?", m.progress.at.String(), m.progress.delivered, m.progress.failures, m.progress.message, halted, halted,
			m.worker.id, m.worker.saved.at.String())
		if err != nil {
			return fmt.Errorf("writing down how a webhook is: %w", err)
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
