package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"portolan/internal/engine/store"
)

// rolloutEvery is the interval at which rollouts advance. After an update has ended, they advance after rolloutPause, or later if a step
// takes long, so that steps take at most a tenth of the time.
const (
	rolloutEvery = time.Second
	rolloutPause = 100 * time.Millisecond
)

// roll advances rollouts until ctx ends, if this manager holds the lease.
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
		if soon != nil || held.IsZero() { // a step is due, or another manager does it
			ended = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
			soon = time.After(max(rolloutPause, 9*took))
			continue
		case <-tick.C:
			m.Fleet.AwaitOrders(ctx) // results follow only after the service points were notified
		case <-soon:
			m.Fleet.AwaitOrders(ctx)
		case <-m.Fleet.RolloutChanges():
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

// rollOnce advances each rollout by one step. It renews the lease, which was taken at held, after a third of its time. Without rollouts it
// takes no lease.
func (m *Manager) rollOnce(ctx context.Context, lease *store.Lease, held *time.Time) error {
	there, err := m.Fleet.IsRolling(ctx)
	if err != nil || !there {
		return err
	}
	if time.Since(*held) > sweepEvery {
		mine, err := lease.Acquire(ctx)
		if err != nil || !mine {
			return err
		}
		*held = time.Now()
	}
	if err := m.Fleet.WritePresence(ctx, false); err != nil { // service points that have just connected must not count as away
		return err
	}
	err = m.Fleet.AdvanceRollouts(ctx, lease.Update)
	if errors.Is(err, store.ErrLeaseLost) {
		*held = time.Time{}
	}
	return err
}
