package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Lease grants background work to one manager at a time. A manager takes it for a limited time and renews it while the work continues. If
// the holder dies, another manager takes the lease after it expires. A holder that was delayed, because its process was stopped or its
// clock is wrong, cannot do harm: its updates fail after another manager took the lease. Safe for concurrent use.
type Lease struct {
	store  *Store
	name   string
	holder string
	length time.Duration
	// fence is the number of the current holding. It is 0 while this process does not hold the lease.
	fence atomic.Int64
}

// NewLease returns the lease with the given name, which this process does not hold yet. length is its validity after each Take.
func (s *Store) NewLease(name string, length time.Duration) *Lease {
	return &Lease{store: s, name: name, holder: rand.Text(), length: length}
}

// ErrLeaseLost is returned by an update under a lease that another manager has taken.
var ErrLeaseLost = errors.New("another manager has taken over the lease")

// Acquire takes or renews the lease and reports whether this process holds it.
func (l *Lease) Acquire(ctx context.Context) (held bool, err error) {
	var taken int64
	err = l.store.UpdateIn(ctx, ExtensionScope(), Author{}, func(tx *Tx) error {
		var holder string
		var fence, until int64
		err := tx.QueryRow("SELECT holder, fence, until FROM lease WHERE name = ?", l.name).Scan(&holder, &fence, &until)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read lease: %w", err)
		}
		if held = holder == l.holder || until <= tx.Now().UnixMilli(); !held {
			return nil
		}
		if holder != l.holder {
			fence++
		}
		taken = fence
		return tx.Write("INSERT INTO lease (name, holder, fence, until) VALUES (?,?,?,?) ON CONFLICT (name) DO UPDATE SET"+
			" holder = excluded.holder, fence = excluded.fence, until = excluded.until", l.name, l.holder, fence, tx.Now().Add(l.length).UnixMilli())
	})
	switch {
	case err != nil: // the holder keeps its fence; if the lease was lost, its updates fail
		return false, err
	case !held:
		l.fence.Store(0)
	default:
		l.fence.Store(taken)
	}
	return held, nil
}

// Update is Store.Update under the lease. If this process does not hold the lease, it returns ErrLeaseLost and rolls back.
func (l *Lease) Update(ctx context.Context, author Author, fn func(*Tx) error) error {
	return l.UpdateIn(ctx, Scope{}, author, fn)
}

// UpdateIn is Update with a scope.
func (l *Lease) UpdateIn(ctx context.Context, scope Scope, author Author, fn func(*Tx) error) error {
	return l.store.UpdateIn(ctx, scope, author, func(tx *Tx) error {
		// The row is written, so that no other manager can take the lease before this commit.
		n, err := tx.Exec("UPDATE lease SET fence = fence WHERE name = ? AND fence = ?", l.name, l.fence.Load())
		if err != nil {
			return fmt.Errorf("read lease: %w", err)
		}
		if n == 0 {
			return ErrLeaseLost
		}
		return fn(tx)
	})
}

// Holding returns the number of the current holding. It is 0 or another number after another manager has held the lease.
func (l *Lease) Holding() int64 { return l.fence.Load() }

// Release releases the lease, so that the next holder does not have to wait until it expires.
func (l *Lease) Release(ctx context.Context) error {
	if l.fence.Load() == 0 {
		return nil
	}
	return l.store.UpdateIn(ctx, ExtensionScope(), Author{}, func(tx *Tx) error {
		return tx.Write("UPDATE lease SET until = 0 WHERE name = ? AND fence = ?", l.name, l.fence.Load())
	})
}
