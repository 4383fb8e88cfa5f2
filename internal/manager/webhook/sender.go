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
	lookEvery = 250 * time.Millisecond
	// leaseLength is for how long one manager sends at a time. holdsFor is how long it goes on where the lease cannot be taken for longer:
	// what it sends then is taken or given up before another manager sends.
	leaseLength = 20 * time.Second
	takeEvery   = 4 * time.Second
	holdsFor    = leaseLength - sendTime - graceTime
	// noteEvery is how often it is written down how far the webhooks have come: what they were sent since is sent again after a kill. Of those
	// that were sent nothing, because nothing was wanted, it is written down more rarely.
	noteEvery     = time.Second
	noteSkipEvery = 30 * time.Second
)

// Tell words a transaction with those of its changes that lie in the collections and right below the parent, at most some; empty and 0
// stand for all. nil where there are none.
type Tell func(ctx context.Context, e store.Entry, collections []string, parent int64, most int) ([]byte, error)

// Sender sends what changes to webhooks: of all managers of a database one at a time.
type Sender struct {
	store *store.Store
	tell  Tell
	log   *slog.Logger
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
	until atomic.Int64

	// What follows is Run's own. taken is when the lease was last taken, held whether it is held, noted when it was last written down how
	// far the webhooks have come.
	taken time.Time
	held  bool
	noted time.Time
	// working are the webhooks that are worked for, by id. One that is to end is among them until it has ended.
	working map[int64]*worker
}

// NewSender makes what sends, and calls itself agent. Run runs it.
func NewSender(a *resource.API, tell Tell, log *slog.Logger, agent string) *Sender {
	s := a.Store
	return &Sender{store: s, sealer: a.Sealer, tell: tell, log: log, agent: agent, lease: s.NewLease("webhooks", leaseLength),
		working: map[int64]*worker{},
		known:   store.NewCache[struct{}](s, store.CacheOptions[[]hook]{Topics: []string{collectionName}})}
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	s.store.Work(ctx, lookEvery, s.log, "webhooks", s.look)
	for _, w := range s.working {
		w.end()
	}
	var running sync.WaitGroup
	for _, w := range s.working {
		running.Go(func() { <-w.done })
	}
	running.Wait()
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), takeEvery)
	defer end()
	if err := errors.Join(s.note(ending, true), s.lease.Release(ending)); err != nil {
		s.log.Error("ending the work for webhooks", "error", err)
	}
}

// look begins and ends the work for webhooks as they are now, and writes down how far they have come.
func (s *Sender) look(ctx context.Context) error {
	within, end := context.WithTimeout(ctx, takeEvery)
	defer end()
	all, err := s.hooks(within)
	if err == nil && time.Since(s.taken) >= takeEvery && (len(all) > 0 || s.held) {
		err = s.hold(within, len(all) > 0)
	}
	if err != nil {
		if time.Since(s.taken) > holdsFor { // which somebody else may take soon
			s.held = false
			s.keepTo(ctx, nil)
		}
		return err
	}
	if !s.held {
		all = nil
	}
	ended := s.keepTo(ctx, all)
	if ended || time.Since(s.noted) >= noteEvery {
		return s.note(within, ended)
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
func (s *Sender) hold(ctx context.Context, wanted bool) error {
	if !wanted {
		if len(s.working) > 0 { // they end first
			return nil
		}
		s.held = false
		return s.lease.Release(ctx)
	}
	began := time.Now() // the lease counts from then on, not from when it is had
	held, err := s.lease.Take(ctx)
	if err == nil {
		if s.taken, s.held = began, held; held {
			s.until.Store(began.Add(holdsFor).UnixMilli())
		}
	}
	return err
}

// keepTo works for these webhooks and no others. It waits for none: ended says that one has ended, whose work may begin again once it
// is written down how far it came.
func (s *Sender) keepTo(ctx context.Context, all []hook) (ended bool) {
	wanted := map[int64]hook{}
	for _, h := range all {
		wanted[h.id] = h
	}
	for id, w := range s.working {
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
		if s.working[id] == nil {
			s.begin(ctx, h)
		}
	}
	return ended
}

func (s *Sender) begin(ctx context.Context, h hook) {
	ctx, end := context.WithCancel(ctx)
	w := &worker{Sender: s, hook: h, end: end, done: make(chan struct{})}
	s.working[h.id] = w
	go func() {
		defer close(w.done)
		defer end()
		defer func() {
			if p := recover(); p != nil { // it begins again
				s.log.Error("panic", "webhook", w.name, "error", p, "stack", string(debug.Stack()))
				store.Pause(ctx, firstPause)
			}
		}()
		w.work(ctx)
	}()
}

// note writes down how the webhooks are, and lets go of those whose work has ended. urgent says that somebody waits for it.
func (s *Sender) note(ctx context.Context, urgent bool) error {
	var over []int64
	var marks []marked
	for id, w := range s.working {
		select {
		case <-w.done: // before it is asked how it is
			over = append(over, id)
		default:
		}
		if m, events, due := w.due(urgent); due {
			marks = append(marks, marked{w, m, events, true})
		}
	}
	s.noted = time.Now()
	if len(marks) > 0 {
		if err := s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error { return write(tx, marks) }); err != nil {
			return err
		}
	}
	for _, m := range marks {
		m.worker.written(m.mark, len(m.events))
		if !m.there {
			m.worker.end() // it begins again from where it is written down
		}
	}
	for _, id := range over {
		delete(s.working, id)
	}
	return nil
}

// marked is what is written down of a webhook; there says that it was.
type marked struct {
	worker *worker
	mark   mark
	events []event.Event
	there  bool
}

// write writes down how webhooks are. Whatever else of one has changed: what it was sent it has, unless it is to go on elsewhere, or
// another manager has written down more.
func write(tx *store.Tx, marks []marked) error {
	for i := range marks {
		m := &marks[i]
		halted := 0
		if m.mark.stopped {
			halted = 1
		}
		n, err := tx.Exec("UPDATE webhook SET position = ?, delivered = ?, failures = ?, message = ?, stopped = ?, version = version + ?"+
			" WHERE id = ? AND position = ?", m.mark.at.String(), m.mark.delivered, m.mark.failures, m.mark.message, halted, halted, m.worker.id,
			m.worker.noted.at.String())
		if err != nil {
			return fmt.Errorf("writing down how a webhook is: %w", err)
		}
		if m.there = n > 0; !m.there {
			continue
		}
		if m.mark.stopped {
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
