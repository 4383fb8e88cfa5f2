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

// Lease is background work that one manager at a time does. It is taken for a while and taken again
// while the work goes on; when its holder dies another manager takes it once that while is over. A
// holder that was late, because it was stopped or its clock is wrong, cannot do harm: its updates are
// refused once somebody else has taken the lease. Many may use it at a time.
type Lease struct {
	store  *Store
	name   string
	holder string
	length time.Duration
	// fence is the number of the holding; 0 while the lease is not held.
	fence atomic.Int64
}

// NewLease names a lease and says for how long it is taken at a time. It is not yet taken.
func (s *Store) NewLease(name string, length time.Duration) *Lease {
	return &Lease{store: s, name: name, holder: rand.Text(), length: length}
}

// ErrLeaseLost is an update under a lease that somebody else has taken.
var ErrLeaseLost = errors.New("another manager has taken this work over")

// Take takes the lease, or takes it for longer, and reports whether it is held.
func (l *Lease) Take(ctx context.Context) (held bool, err error) {
	var taken int64
	err = l.store.UpdateIn(ctx, OwnTables(), Author{}, func(tx *Tx) error {
		var holder string
		var fence, until int64
		err := tx.QueryRow("SELECT holder, fence, until FROM lease WHERE name = ?", l.name).Scan(&holder, &fence, &until)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("reading a lease: %w", err)
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
	case err != nil: // whoever held it holds it: its updates are refused if that is not so
		return false, err
	case !held:
		l.fence.Store(0)
	default:
		l.fence.Store(taken)
	}
	return held, nil
}

// Update is Store.Update under the lease: it is refused with ErrLeaseLost, and nothing of it is kept,
// where the lease is not, or no longer, held.
func (l *Lease) Update(ctx context.Context, author Author, fn func(*Tx) error) error {
	return l.UpdateIn(ctx, Scope{}, author, fn)
}

// UpdateIn is Update of what lies in a scope.
func (l *Lease) UpdateIn(ctx context.Context, scope Scope, author Author, fn func(*Tx) error) error {
	return l.store.UpdateIn(ctx, scope, author, func(tx *Tx) error {
		// Writing, so that nobody takes it over until this is committed.
		n, err := tx.Exec("UPDATE lease SET fence = fence WHERE name = ? AND fence = ?", l.name, l.fence.Load())
		if err != nil {
			return fmt.Errorf("reading a lease: %w", err)
		}
		if n == 0 {
			return ErrLeaseLost
		}
		return fn(tx)
	})
}

// Holding is the number of the holding: another one, or 0, once somebody else has held the lease meanwhile.
func (l *Lease) Holding() int64 { return l.fence.Load() }

// Release gives the lease back, so that the next holder need not wait for its end.
func (l *Lease) Release(ctx context.Context) error {
	if l.fence.Load() == 0 {
		return nil
	}
	return l.store.UpdateIn(ctx, OwnTables(), Author{}, func(tx *Tx) error {
		return tx.Write("UPDATE lease SET until = 0 WHERE name = ? AND fence = ?", l.name, l.fence.Load())
	})
}
