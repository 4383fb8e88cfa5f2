package store

import (
	"context"
	"errors"
	"fmt"

	"portolan/internal/problem"
)

// View runs fn on one consistent snapshot, for a short answer. It takes no lock that a writer would wait for.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) error {
	if s.pg != nil {
		return unreachable(s.pg.view(ctx, s.pg.readers, s.onto(ctx, fn)))
	}
	return s.snapshot(ctx, s.readers, fn)
}

// snapshot runs fn on a connection of a pool, in a transaction that reads.
func (s *Store) snapshot(ctx context.Context, from *pool, fn func(*Tx) error) (err error) {
	at := s.commits.last.Load()
	r, err := from.take(ctx)
	if err != nil {
		return err
	}
	defer from.put(r)
	if _, err := r.exec("BEGIN"); err != nil {
		return fmt.Errorf("beginning a snapshot: %w", err)
	}
	defer func() {
		if _, e := r.exec("ROLLBACK"); e != nil && err == nil {
			err = fmt.Errorf("ending a snapshot: %w", e)
		}
	}()
	return fn(s.begin(ctx, r, at))
}

// begin gives a Tx on a connection, whose snapshot begins after the commit of that number.
func (s *Store) begin(ctx context.Context, c conn, at uint64) *Tx {
	return &Tx{ctx: ctx, store: s, conn: c, now: s.now(), at: at, inline: s.inline}
}

// onto gives fn a Tx on a connection that begins its snapshot after onto was called.
func (s *Store) onto(ctx context.Context, fn func(*Tx) error) func(conn) error {
	at := s.commits.last.Load()
	return func(c conn) error { return fn(s.begin(ctx, c, at)) }
}

// ErrTooLong is a long read that was ended because its time was over.
var ErrTooLong = errors.New("the answer took too long to find")

// Lists is View for answers that may take long, on connections of their own. It ends, with ErrTooLong,
// when the context's deadline passes, also in the middle of a statement, and likewise when the context is
// cancelled. It is read from the standby where there is one and it has caught up with everything that was
// committed when the request came, by whichever manager.
func (s *Store) Lists(ctx context.Context, fn func(*Tx) error) error {
	return s.bounded(ctx, false, fn)
}

// Pages is Lists for what takes a moment: it has connections of its own, which nothing long holds up.
func (s *Store) Pages(ctx context.Context, fn func(*Tx) error) error { return s.bounded(ctx, true, fn) }

func (s *Store) bounded(ctx context.Context, light bool, fn func(*Tx) error) error {
	began := false
	err := s.long(ctx, light, func(tx *Tx) error {
		began = true
		return fn(tx)
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if !began {
			p := problem.New(503, "DatabaseBusy", "every connection for long reads is in use; try again")
			p.Err = err
			return p
		}
		return ErrTooLong
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (s *Store) long(ctx context.Context, light bool, fn func(*Tx) error) error {
	if s.pg == nil {
		from := s.lists
		if light {
			from = s.pages
		}
		return s.snapshot(ctx, from, func(tx *Tx) error {
			r, ok := tx.conn.(*session)
			if ok {
				r.conn.SetInterrupt(ctx.Done())
				defer r.conn.SetInterrupt(nil)
			}
			return fn(tx)
		})
	}
	if s.replica != nil {
		done, err := s.replica.view(ctx, s.pg, s.onto(ctx, fn))
		if done || ctx.Err() != nil {
			return unreachable(err)
		}
	}
	from := s.pg.lists
	if light {
		from = s.pg.pages
	}
	return unreachable(s.pg.view(ctx, from, s.onto(ctx, fn)))
}

// Read runs fn on a read connection without a snapshot around it: each of its statements sees the
// latest commit. For one statement that is the same and costs half.
func (s *Store) Read(ctx context.Context, fn func(*Tx) error) error {
	at := s.commits.last.Load()
	latest := func(c conn) error {
		tx := s.begin(ctx, c, at)
		tx.latest = true
		return fn(tx)
	}
	if s.pg != nil {
		return unreachable(s.pg.read(ctx, latest))
	}
	r, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer s.readers.put(r)
	return latest(r)
}

// Ready reports whether the database answers.
func (s *Store) Ready(ctx context.Context) error {
	ask := func(tx *Tx) error {
		var n int
		return tx.QueryRow("SELECT count(*) FROM origin").Scan(&n)
	}
	if s.pg != nil {
		return unreachable(s.pg.view(ctx, s.pg.health, s.onto(ctx, ask)))
	}
	return s.snapshot(ctx, s.health, ask)
}
