package server

import (
	"context"
	"slices"
	"time"

	"portolan/internal/engine/store"
)

// userIndexes keeps the database indexes in line with the definitions of user-defined fields and reports them to filters.
type userIndexes struct {
	m     *Manager
	lease *store.Lease
	// known has an entry while all indexes are up to date with the definitions.
	known *store.Cache[struct{}, struct{}]
	// nextAttempt is the earliest time of the next attempt after a failed creation.
	nextAttempt time.Time
}

// The interval at which the definitions are checked for changes, and the time for which the result of one manager is valid for the others.
const (
	indexesCheckInterval = time.Second
	indexesValidity      = 30 * time.Second
)

// keepUserIndexes creates and deletes indexes of user-defined fields in the background.
func (m *Manager) keepUserIndexes(ctx context.Context) {
	u := &userIndexes{m: m, lease: m.Store.NewLease("indexes", indexesValidity), known: store.NewCache[struct{}](m.Store,
		store.CacheOptions[struct{}]{Topics: []string{"userDefinedFieldDefinitions"}, Max: 1})}
	m.Store.Work(ctx, indexesCheckInterval, m.log, "indexes of user-defined fields", u.update, u.lease)
}

// update creates requested indexes that are missing and deletes those no longer requested. If another manager does that, it only reads
// the state.
func (u *userIndexes) update(ctx context.Context) error {
	if _, ok := u.known.Now(struct{}{}); ok || time.Now().Before(u.nextAttempt) {
		return nil
	}
	var wanted []store.Index
	if err := u.m.Store.View(ctx, func(tx *store.Tx) (err error) {
		wanted, err = u.m.Address.UserFields.Indexes(tx, u.m.Address)
		return err
	}); err != nil {
		return err
	}
	there, err := u.m.Store.HasIndexes(ctx, wanted)
	if err != nil {
		return err
	}
	u.m.Address.UserFields.StoreIndexes(there) // filters stop using indexes that will be deleted
	mine, err := u.lease.Acquire(ctx)
	if err != nil || !mine {
		u.m.indexFault.Store(nil) // another manager holds the lease; it reports its own faults
		return err
	}
	stop := u.lease.Keep(ctx, u.m.log)
	defer func() {
		stop()
		if err := u.lease.Release(context.WithoutCancel(ctx)); err != nil { // it ends by itself
			u.m.log.Warn("lease release failed", "lease", "indexes", "error", err)
		}
	}()
	began := time.Now()
	if err := u.m.Store.KeepIndexes(ctx, wanted); err != nil {
		u.nextAttempt = time.Now().Add(indexesValidity)
		if ctx.Err() == nil {
			fault := err.Error()
			u.m.indexFault.Store(&fault)
		}
		return err
	}
	u.m.indexFault.Store(nil)
	made, err := u.m.Store.HasIndexes(ctx, wanted)
	if err != nil {
		return err
	}
	u.m.Address.UserFields.StoreIndexes(made)
	u.m.log.Info("indexes of user-defined fields updated", "indexes", len(made), "before", len(there),
		"took", time.Since(began).Round(time.Millisecond))
	return u.m.Store.View(ctx, func(tx *store.Tx) error {
		again, err := u.m.Address.UserFields.Indexes(tx, u.m.Address)
		if err != nil || len(again) != len(made) || slices.ContainsFunc(again, func(i store.Index) bool { return !made[i] }) {
			return err // the definitions have changed meanwhile: the next check retries
		}
		u.known.Put(tx, struct{}{}, struct{}{})
		return nil
	})
}

// indexStatus finds out which indexes are missing.
func (m *Manager) indexStatus(ctx context.Context) (s IndexStatus, err error) {
	var wanted []store.Index
	if err := m.Store.Read(ctx, func(tx *store.Tx) (err error) {
		wanted, err = m.Address.UserFields.Indexes(tx, m.Address)
		return err
	}); err != nil {
		return s, err
	}
	there, err := m.Store.HasIndexes(ctx, wanted)
	if err != nil {
		return s, err
	}
	s.Missing = len(wanted) - len(there)
	if fault := m.indexFault.Load(); fault != nil && s.Missing > 0 {
		s.Fault = *fault
	}
	return s, nil
}
