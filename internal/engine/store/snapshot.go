package store

import (
	"context"
	"errors"

	"portolan/internal/base/problem"
)

// View runs fn on one consistent snapshot, for a short answer. It takes no lock that a writer would wait for.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) error {
	return s.runAccess(ctx, false, func(ctx context.Context) error { return s.engine.snapshot(ctx, readShort, s.withTx(ctx, fn)) })
}

// begin gives a Tx on a connection, whose snapshot begins after the commit of that number.
func (s *Store) newTx(ctx context.Context, c conn, at uint64) *Tx {
	if see := s.observer.Load(); see != nil {
		c = observed{c, *see}
	}
	return &Tx{ctx: ctx, store: s, conn: c, now: s.now(), seenCommit: at, inline: s.inline.Load()}
}

// onto gives fn a Tx on a connection that begins its snapshot after onto was called.
func (s *Store) withTx(ctx context.Context, fn func(*Tx) error) func(conn) error {
	at := s.commits.last.Load()
	return func(c conn) error { return fn(s.newTx(ctx, c, at)) }
}

// ErrTooLong is a long read that was ended because its time was over.
var ErrTooLong = errors.New("the answer took too long to find")

// Lists is View for answers that may take long, on connections of their own. It ends, with ErrTooLong,
// when the context's deadline passes, also in the middle of a statement, and likewise when the context is
// cancelled. It is read from the standby where there is one and it has caught up with everything that was
// committed when the request came, by whichever manager.
func (s *Store) Lists(ctx context.Context, fn func(*Tx) error) error {
	return s.runBounded(ctx, readLong, fn)
}

// Pages is Lists for what takes a moment: it has connections of its own, which nothing long holds up.
func (s *Store) Pages(ctx context.Context, fn func(*Tx) error) error {
	return s.runBounded(ctx, readPage, fn)
}

func (s *Store) runBounded(ctx context.Context, kind readKind, fn func(*Tx) error) error {
	began := false
	err := s.runAccess(ctx, false, func(ctx context.Context) error {
		return s.engine.snapshot(ctx, kind, s.withTx(ctx, func(tx *Tx) error {
			began = true
			return fn(tx)
		}))
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

// Read runs fn on a read connection without a snapshot around it: each of its statements sees the
// latest commit. For one statement that is the same and costs half.
func (s *Store) Read(ctx context.Context, fn func(*Tx) error) error {
	at := s.commits.last.Load()
	return s.runAccess(ctx, false, func(ctx context.Context) error {
		return s.engine.latest(ctx, func(c conn) error {
			tx := s.newTx(ctx, c, at)
			tx.latest = true
			return fn(tx)
		})
	})
}

// OneWriter reports whether one change is made after another, as on SQLite, where those that wait share a commit.
func (s *Store) OneWriter() bool { return s.engine.oneWriter() }

// Ready reports whether the database answers, and is not known to be damaged.
func (s *Store) Ready(ctx context.Context) error {
	if is, _, why := s.Condition(); is == Damaged {
		return damagedError(why)
	}
	ask := func(tx *Tx) error {
		var n int
		return tx.QueryRow("SELECT count(*) FROM origin").Scan(&n)
	}
	err := s.engine.snapshot(ctx, readHealth, s.withTx(ctx, ask))
	// It hangs, or the network loses what is sent.
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = unavailableError(err)
	}
	return Unavailable(s.recordCondition(err, false))
}
