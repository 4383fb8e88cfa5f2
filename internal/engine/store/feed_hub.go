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

// Many follow the change feed of one manager, and nearly all of them are at its end. They share one reading of it: a hub follows the
// feed while anybody does, and has its latest transactions. Who is further behind reads by himself, until he has caught up.

// hubKeeps is how many transactions a hub has, at least once there were so many.
const hubSize = 512

// hub has the end of the change feed.
type hub struct {
	store  *Store
	signal broadcaster

	mu sync.Mutex
	// followers are how many follow; stop ends the reading when the last one leaves. Guarded by mu, like all below.
	followers int
	stop      context.CancelFunc
	// latest are transactions without a gap, the first of them right behind from. reading says that more will come.
	latest  []Entry
	from    Position
	reading bool
}

// same reports whether two positions of one feed are the same place: a database that was taken back to an earlier moment gives numbers
// again, at other times. An older position does not say when it was.
func (p Position) isSamePlace(q Position) bool {
	return p.Settled == q.Settled && p.Transaction == q.Transaction && (p.At == q.At || p.At == 0 || q.At == 0)
}

// join begins to follow; leave ends it.
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

// read follows the feed from its end on.
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
		h.reset(ctx, Position{}) // nobody is to take what it has for the end
		if ctx.Err() == nil && err != nil {
			slog.Warn("the end of the change feed cannot be read: each follower reads for itself", "error", err)
			Pause(ctx, followEvery)
		}
	}
}

// Pause waits; it ends with the context.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// begin empties the hub, which goes on behind a position; the zero one stands for none.
func (h *hub) reset(ctx context.Context, at Position) {
	h.mu.Lock()
	if ctx.Err() == nil { // another reading may have begun since
		h.latest, h.from, h.reading = nil, at, at.Origin != ""
	}
	h.mu.Unlock()
	h.signal.wake()
}

func (h *hub) add(ctx context.Context, entries []Entry) {
	h.mu.Lock()
	if ctx.Err() == nil {
		h.latest = append(h.latest, entries...)
		if len(h.latest) > 2*hubSize { // half of it at a time
			cut := len(h.latest) - hubSize
			h.from = h.latest[cut-1].Position
			h.latest = slices.Clone(h.latest[cut:])
		}
	}
	h.mu.Unlock()
	h.signal.wake()
}

// behind gives the transactions behind a position, at most limit; known is false where the hub does not have them all.
func (h *hub) after(after Position, limit int) (entries []Entry, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.reading || after.Origin != h.from.Origin && after.Origin != "" {
		return nil, false
	}
	at := len(h.latest)
	for at > 0 && !h.latest[at-1].Position.isSamePlace(after) {
		at--
	}
	if at == 0 && !h.from.isSamePlace(after) {
		return nil, false
	}
	end := min(len(h.latest), at+limit)
	return h.latest[at:end:end], true // what stands there stays: it is added to behind it, and cut into another one
}

// End gives the position of the latest transaction in the feed; the beginning where there is none.
func (s *Store) End(ctx context.Context) (p Position, err error) {
	err = s.View(ctx, func(tx *Tx) (err error) {
		p, err = tx.End()
		return err
	})
	return p, err
}

// End is Store.End as the transaction sees it.
func (tx *Tx) End() (p Position, err error) {
	if err := tx.QueryRow("SELECT id FROM origin").Scan(&p.Origin); err != nil {
		return p, err
	}
	err = tx.QueryRow(tx.conn.sqlDialect().newest).Scan(&p.Transaction, &p.At, &p.Settled)
	if errors.Is(err, sql.ErrNoRows) { // behind what is not kept any more, if anything
		var horizon Horizon
		horizon, err = tx.Horizon()
		p.Transaction, p.At, p.Settled = horizon.Transaction, horizon.At, horizon.Settled
	}
	return p, err
}

// FollowTogether is Follow for one of many: who is at the end of the feed costs the database nothing. fn is called with nothing, too, now
// and then while nothing comes.
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
		signal := s.hub.signal.wait() // before looking, so that what comes meanwhile is not missed
		entries, known := s.hub.after(after, feedPage)
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
		if !known { // the hub is not where this one is: its news may not be heard of
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
