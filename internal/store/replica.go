package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// replica is a standby of the database that lists are read from, so that the database has its hands
// free for changes.
type replica struct {
	pg *postgres
	// down is until when it is left alone after it failed, in Unix milliseconds.
	down atomic.Int64
}

// catchUp is how long a list waits for the standby to come to where the database is; leaveFor is how
// long one that failed is left alone.
const (
	catchUp  = 100 * time.Millisecond
	leaveFor = 5 * time.Second
)

// openReplica prepares to read from a standby. It need not be there yet.
func openReplica(ctx context.Context, url string, readers int) (*replica, error) {
	pg, err := connect(ctx, url, readers)
	if err != nil {
		return nil, err
	}
	return &replica{pg: pg}, nil
}

func (r *replica) close() {
	if r != nil {
		r.pg.pool.Close()
	}
}

// caughtUp reports whether the standby has all that was on the database's disk when it was asked, and
// with that all that was acknowledged to anybody. It waits a moment for it.
func (r *replica) caughtUp(ctx context.Context, primary *postgres) bool {
	if time.Now().UnixMilli() < r.down.Load() {
		return false
	}
	var position string
	if err := primary.pool.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&position); err != nil {
		return false
	}
	waiting, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	for attempt := 0; ; attempt++ {
		var caught bool
		// NULL, and so no, where it is not a standby.
		err := r.pg.pool.QueryRow(waiting, "SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, FALSE)", position).Scan(&caught)
		switch {
		case err == nil && caught:
			return true
		case err != nil && waiting.Err() == nil:
			r.down.Store(time.Now().Add(leaveFor).UnixMilli())
			return false
		case !pause(waiting, min(attempt, 3)):
			return false
		}
	}
}

// failed reports whether reading failed because of the standby: the database itself may do better.
func (r *replica) failed(err error) bool {
	if lost(err) {
		r.down.Store(time.Now().Add(leaveFor).UnixMilli())
		return true
	}
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "40001" // cancelled because of a conflict with recovery
}
