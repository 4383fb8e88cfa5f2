package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// replica is a standby of the database that serves lists, to relieve the database.
type replica struct {
	pg *postgres
	// suspendedUntil is the time in Unix milliseconds until which the standby is not used after a failure.
	suspendedUntil atomic.Int64
}

// catchUpTime is the maximum time that a list waits for the standby to catch up. After a failure, the standby is not used for
// suspendTime.
const (
	catchUpTime = 100 * time.Millisecond
	suspendTime = 5 * time.Second
	// answerTime is the deadline for the standby to connect and report its position.
	answerTime = time.Second
)

// openReplica prepares reads from a standby, which does not have to be reachable yet.
func openReplica(ctx context.Context, url string, o Options) (*replica, error) {
	pg, err := connect(ctx, url, Options{Layout: o.Layout, Readers: 1, ListReaders: o.ListReaders})
	if err != nil {
		return nil, err
	}
	return &replica{pg: pg}, nil
}

func (r *replica) close() {
	if r != nil {
		r.pg.close()
	}
}

// view runs fn in a snapshot of the standby. It uses the same connection on which the position was checked, because a URL may name
// several hosts. done is false if the caller has to use the database itself.
func (r *replica) view(ctx context.Context, primary *postgres, fn func(conn) error) (done bool, err error) {
	if time.Now().UnixMilli() < r.suspendedUntil.Load() {
		return false, nil
	}
	askCtx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	pooled, err := r.pg.lists.Acquire(askCtx)
	if err != nil { // unreachable, or all connections are in use
		r.suspend(askCtx, err)
		return false, ctx.Err()
	}
	caught, err := r.caughtUp(askCtx, primary, pooled)
	if err != nil || !caught {
		r.suspend(askCtx, err)
		pooled.Release()
		return false, ctx.Err()
	}
	err = readOn(&pgConn{ctx: ctx, p: r.pg, pg: pooled.Conn(), pooled: pooled, beginStatement: beginSnapshot}, fn)
	return !r.isStandbyFailure(err), err
}

// caughtUp reports whether the standby has everything that was on the database's disk at the time of the call, and so everything that was
// acknowledged. It waits up to catchUpTime.
func (r *replica) caughtUp(ctx context.Context, primary *postgres, standby *pgxpool.Conn) (bool, error) {
	var position string
	if err := primary.readers.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&position); err != nil {
		return false, err
	}
	waitCtx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	for attempt := 0; ; attempt++ {
		var caught bool
		// A promoted standby is no longer in recovery. Its replay position stays at that of the promotion.
		err := standby.QueryRow(ctx, "SELECT pg_is_in_recovery() AND coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, FALSE)",
			position).Scan(&caught)
		switch {
		case err != nil:
			return false, err
		case caught:
			return true, nil
		case !backOff(waitCtx, min(attempt, 3)):
			return false, nil
		}
	}
}

// suspend stops the use of the standby for a while if the connection was lost or the deadline passed.
func (r *replica) suspend(asking context.Context, err error) {
	if err != nil && (isConnectionLost(err) || errors.Is(asking.Err(), context.DeadlineExceeded)) {
		r.suspendedUntil.Store(time.Now().Add(suspendTime).UnixMilli())
	}
}

// isStandbyFailure reports whether a read failed because of the standby, so that it should be retried on the database itself.
func (r *replica) isStandbyFailure(err error) bool {
	if isConnectionLost(err) {
		r.suspendedUntil.Store(time.Now().Add(suspendTime).UnixMilli())
		return true
	}
	return pgCode(err) == serializationFailure // cancelled because of a conflict with recovery
}
