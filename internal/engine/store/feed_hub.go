package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// A manager has many followers of the change feed, nearly all of them at its end. They share one reader: a hub reads the feed while there
// are followers, and keeps the latest transactions. A follower that is further behind reads the feed itself until it has caught up.

// hubSize is the number of latest transactions that a hub keeps.
const hubSize = 512

// hub keeps the end of the change feed.
type hub struct {
	store  *Store
	signal broadcaster

	mu sync.Mutex
	// followers is the number of followers; stop ends the reader when the last one leaves. mu guards these and all fields below.
	followers int
	stop      context.CancelFunc
	// latest are consecutive transactions, the first of them directly after from. reading is true while more are received.
	latest  []Entry
	from    Position
	reading bool
}

// isSamePlace reports whether two positions of one feed are the same. Times are compared because a database that was restored to an
// earlier state assigns numbers again. Positions of older versions have no time.
func (p Position) isSamePlace(q Position) bool {
	return p.Settled == q.Settled && p.Transaction == q.Transaction && (p.At == q.At || p.At == 0 || q.At == 0)
}

// join adds a follower. leave removes it.
func (h *hub) join() (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers++; h.followers == 1 {
		ctx, stop := context.WithCancel(context.Background())
		h.stop = stop
		go h.read(ctx)
	}
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.followers--; h.followers == 0 {
			h.stop()
			h.latest, h.reading = nil, false
		}
	})
}

// read follows the feed from its end.
func (h *hub) read(ctx context.Context) {
	for ctx.Err() == nil {
		at, err := h.store.End(ctx)
		if err == nil {
			h.reset(ctx, at)
			err = h.store.Follow(ctx, at, func(entries []Entry) error {
				h.add(ctx, entries)
				return nil
			})
		}
		h.reset(ctx, Position{}) // followers must not take the content of the hub for the end of the feed
		if ctx.Err() == nil && err != nil {
			slog.Warn("change feed hub read failed, followers read the feed themselves", "error", err)
			Pause(ctx, followEvery)
		}
	}
}

// Pause waits for d or until the context ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reset empties the hub, which continues after the position at. The zero position means that the hub is not reading.
func (h *hub) reset(ctx context.Context, at Position) {
	h.mu.Lock()
	if ctx.Err() == nil { // another reader may have started since
		h.latest, h.from, h.reading = nil, at, at.Origin != ""
	}
	h.mu.Unlock()
	h.signal.wake()
}

// add appends entries, and drops the oldest ones if there are more than 2*hubSize. It does nothing after ctx ended.
func (h *hub) add(ctx context.Context, entries []Entry) {
	h.mu.Lock()
	if ctx.Err() == nil {
		h.latest = append(h.latest, entries...)
		if len(h.latest) > 2*hubSize { // removes half of them at a time
			cut := len(h.latest) - hubSize
			h.from = h.latest[cut-1].Position
			h.latest = slices.Clone(h.latest[cut:])
		}
	}
	h.mu.Unlock()
	h.signal.wake()
}

// listAfter returns the transactions after a position, at most limit. known is false if the hub does not have all of them.
func (h *hub) listAfter(listAfter Position, limit int) (entries []Entry, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.reading || listAfter.Origin != h.from.Origin && listAfter.Origin != "" {
		return nil, false
	}
	at := len(h.latest)
	for at > 0 && !h.latest[at-1].Position.isSamePlace(listAfter) {
		at--
	}
	if at == 0 && !h.from.isSamePlace(listAfter) {
		return nil, false
	}
	end := min(len(h.latest), at+limit)
	return h.latest[at:end:end], true // the returned part of the array is never overwritten: add appends after it, or copies to a new array
}

// End returns the position of the latest transaction in the feed, or the beginning if there is none.
func (s *Store) End(ctx context.Context) (p Position, err error) {
	err = s.View(ctx, func(tx *Tx) (err error) {
		p, err = tx.End()
		return err
	})
	return p, err
}

// End is Store.End in the transaction.
func (tx *Tx) End() (p Position, err error) {
	if err := tx.QueryRow("SELECT id FROM origin").Scan(&p.Origin); err != nil {
		return p, err
	}
	err = tx.QueryRow(tx.conn.sqlDialect().newest).Scan(&p.Transaction, &p.At, &p.Settled)
	if errors.Is(err, sql.ErrNoRows) { // the position is then the horizon, if anything was pruned
		var horizon Horizon
		horizon, err = tx.Horizon()
		p.Transaction, p.At, p.Settled = horizon.Transaction, horizon.At, horizon.Settled
	}
	return p, err
}

// FollowTogether is Follow for one of many followers: at the end of the feed they do not query the database. It also calls fn with no
// entries if there were none for the duration every.
func (s *Store) FollowTogether(ctx context.Context, after Position, every time.Duration, fn func([]Entry) error) error {
	defer s.hub.join()()
	timer := time.NewTimer(every)
	defer timer.Stop()
	called := time.Now()
	call := func(entries []Entry) error {
		called = time.Now()
		return fn(entries)
	}
	for attempt := 0; ; {
		signal := s.hub.signal.wait() // taken before the check, so that no entry is missed
		entries, known := s.hub.listAfter(after, feedPage)
		if !known {
			var err error
			entries, err = s.Feed(ctx, after, feedPage)
			if err != nil && ctx.Err() == nil && isConnectionLost(err) {
				attempt++
				backOff(ctx, attempt)
				if time.Since(called) >= every {
					if err := call(nil); err != nil {
						return err
					}
				}
				continue
			}
			if err != nil {
				return errors.Join(ctx.Err(), err)
			}
			attempt = 0
		}
		if len(entries) > 0 {
			if err := call(entries); err != nil {
				return err
			}
			after = entries[len(entries)-1].Position
			continue
		}
		wait := every - time.Since(called)
		if !known { // the hub is at another position, so its signals may not be sufficient
			wait = min(wait, followEvery)
		}
		timer.Reset(wait)
		select {
		case <-signal:
		case <-timer.C:
			if time.Since(called) < every {
				continue
			}
			if err := call(nil); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
