package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"portolan/internal/engine/store"
)

// rolloutEvery is the interval between steps of rollouts. When this manager learns that an update has ended, the next step follows
// after rolloutPause. After a slow step the pause is longer, so that steps take at most a tenth of the time.
const (
	rolloutEvery = time.Second
	rolloutPause = 100 * time.Millisecond
)

// roll advances rollouts until ctx ends, while this manager holds the lease.
func (m *Manager) roll(ctx context.Context) {
	lease := m.Store.NewLease("rollouts", 3*sweepEvery)
	defer func() {
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
			m.log.Error("lease release failed", "error", err)
		}
	}()
	tick := time.NewTicker(cmp.Or(m.options.RolloutEvery, rolloutEvery))
	defer tick.Stop()
	var held time.Time
	took := time.Duration(0)
	var soon <-chan time.Time // nil if no update has ended since the last step
	for {
		ended := m.Fleet.Ended()
		if soon != nil || held.IsZero() { // a step is already scheduled, or another manager holds the lease
			ended = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
			soon = time.After(max(rolloutPause, 9*took))
			continue
		case <-tick.C:
			m.Fleet.BehindOrders(ctx) // what becomes of them is not known before they are told
		case <-soon:
			m.Fleet.BehindOrders(ctx)
		case <-m.Fleet.Begun():
		}
		soon = nil
		began := time.Now()
		err := m.rollOnce(ctx, lease, &held)
		took = time.Since(began)
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrLeaseLost) {
			m.log.Error("rollout step failed", "error", err)
		}
	}
}

// rollOnce advances each rollout by one step. It extends the lease, which was taken at held, after a third of its duration.
// Without a rollout it does not take the lease.
func (m *Manager) rollOnce(ctx context.Context, lease *store.Lease, held *time.Time) error {
	there, err := m.Fleet.Rolling(ctx)
	if err != nil || !there {
		return err
	}
	if time.Since(*held) > sweepEvery {
		mine, err := lease.Take(ctx)
		if err != nil || !mine {
			return err
		}
		*held = time.Now()
	}
	if err := m.Fleet.WritePresence(ctx, false); err != nil { // so that a service point that has just connected does not count as away
		return err
	}
	err = m.Fleet.AdvanceRollouts(ctx, lease.Update)
	if errors.Is(err, store.ErrLeaseLost) {
		*held = time.Time{}
	}
	return err
}
