package store

import (
	"context"
	"errors"

	"portolan/internal/base/problem"
)

// View runs fn on one consistent snapshot, for short reads. It takes no lock that blocks writers.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) error {
	return s.runAccess(ctx, false, func(ctx context.Context) error { return s.engine.snapshot(ctx, readShort, s.withTx(ctx, fn)) })
}

// newTx returns a Tx on a connection. Its snapshot starts after the commit number at.
func (s *Store) newTx(ctx context.Context, c conn, at uint64) *Tx {
	if see := s.observer.Load(); see != nil {
		c = observed{c, *see}
	}
	return &Tx{ctx: ctx, store: s, conn: c, now: s.now(), seenCommit: at, inline: s.inline.Load()}
}

// withTx returns a function that calls fn with a Tx on a connection. The snapshot of the connection must start after the call of withTx.
func (s *Store) withTx(ctx context.Context, fn func(*Tx) error) func(conn) error {
	at := s.commits.last.Load()
	return func(c conn) error { return fn(s.newTx(ctx, c, at)) }
}

// ErrTooLong is returned by a long read that exceeded its deadline.
var ErrTooLong = errors.New("the query took too long")

// Lists is View for long reads, on connections of their own. It stops, even within a statement, when the context is cancelled or when its
// deadline passes; in the latter case it returns ErrTooLong. It reads from the standby, if there is one that has caught up with
// everything that any manager had committed before the call.
func (s *Store) Lists(ctx context.Context, fn func(*Tx) error) error {
	return s.runBounded(ctx, readLong, fn)
}

// Pages is Lists for short reads such as a single page of a list. It has connections of its own, so that long reads do not delay it.
func (s *Store) Pages(ctx context.Context, fn func(*Tx) error) error {
	return s.runBounded(ctx, readPage, fn)
}

// runBounded runs fn in a snapshot that ends with the context. It returns DatabaseBusy if the deadline passed before the snapshot
// started, and ErrTooLong if it passed afterwards.
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

// Read runs fn on a read connection without a snapshot: each statement sees the latest commit. For a single statement this is equivalent
// to View at half the cost.
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

// HasOneWriter reports whether changes run one after another, as on SQLite, where waiting changes share a commit.
func (s *Store) HasOneWriter() bool { return s.engine.oneWriter() }

// Ready returns an error if the database does not answer, or is known to be damaged.
func (s *Store) Ready(ctx context.Context) error {
	if is, _, why := s.Condition(); is == Damaged {
		return damagedError(why)
	}
	ask := func(tx *Tx) error {
		var n int
		return tx.QueryRow("SELECT count(*) FROM origin").Scan(&n)
	}
	err := s.engine.snapshot(ctx, readHealth, s.withTx(ctx, ask))
	// The database hangs, or the network drops the packets.
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = unavailableError(err)
	}
	return Unavailable(s.recordCondition(err, false))
}
