package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// replica is a standby of the database that lists are read from, so that the database has its hands
// free for changes.
type replica struct {
	pg *postgres
	// down is until when it is left alone after it failed, in Unix milliseconds.
	suspendedUntil atomic.Int64
}

// catchUp is how long a list waits for the standby to come to where the database is; leaveFor is how
// long one that failed is left alone.
const (
	catchUpTime = 100 * time.Millisecond
	suspendTime = 5 * time.Second
	// answerTime is how long a standby has to take a connection and to say where it is.
	answerTime = time.Second
)

// openReplica prepares to read from a standby. It need not be there yet.
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

// view runs fn in a snapshot of the standby, on the very connection that was asked whether it has caught
// up: a URL may name several hosts. done is false where the database itself has to be asked.
func (r *replica) view(ctx context.Context, primary *postgres, fn func(conn) error) (done bool, err error) {
	if time.Now().UnixMilli() < r.suspendedUntil.Load() {
		return false, nil
	}
	asking, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	pooled, err := r.pg.lists.Acquire(asking)
	if err != nil { // none to be had, or all in use
		r.suspend(asking, err)
		return false, ctx.Err()
	}
	caught, err := r.caughtUp(asking, primary, pooled)
	if err != nil || !caught {
		r.suspend(asking, err)
		pooled.Release()
		return false, ctx.Err()
	}
	err = readOn(&pgConn{ctx: ctx, p: r.pg, pg: pooled.Conn(), pooled: pooled, begin: beginSnapshot}, fn)
	return !r.isStandbyFailure(err), err
}

// caughtUp reports whether the standby at the end of a connection has all that was on the database's disk
// when it was asked, and with that all that was acknowledged to anybody. It waits a moment for it.
func (r *replica) caughtUp(ctx context.Context, primary *postgres, standby *pgxpool.Conn) (bool, error) {
	var position string
	if err := primary.readers.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&position); err != nil {
		return false, err
	}
	waiting, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	for attempt := 0; ; attempt++ {
		var caught bool
		// What was promoted is no standby any more: it stands where it was then.
		err := standby.QueryRow(ctx, "SELECT pg_is_in_recovery() AND coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, FALSE)",
			position).Scan(&caught)
		switch {
		case err != nil:
			return false, err
		case caught:
			return true, nil
		case !backOff(waiting, min(attempt, 3)):
			return false, nil
		}
	}
}

// leave leaves a standby alone for a while that cannot be reached, or does not answer in time.
func (r *replica) suspend(asking context.Context, err error) {
	if err != nil && (isConnectionLost(err) || errors.Is(asking.Err(), context.DeadlineExceeded)) {
		r.suspendedUntil.Store(time.Now().Add(suspendTime).UnixMilli())
	}
}

// failed reports whether reading failed because of the standby: the database itself may do better.
func (r *replica) isStandbyFailure(err error) bool {
	if isConnectionLost(err) {
		r.suspendedUntil.Store(time.Now().Add(suspendTime).UnixMilli())
		return true
	}
	return pgCode(err) == serializationFailure // cancelled because of a conflict with recovery
}
