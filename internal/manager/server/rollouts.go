package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"portolan/internal/engine/store"
)

// rolloutEvery is how often rollouts go on. Where updates end in between, as this manager hears, they go on sooner: rolloutPause behind
// that, or later where looking at them takes long, so that it would not take more than a tenth of the time.
const (
	rolloutEvery = time.Second
	rolloutPause = 100 * time.Millisecond
)

// roll lets rollouts go on until ctx ends, if that is this manager's to do.
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
	var soon <-chan time.Time // nil while no update has ended since it was looked
	for {
		ended := m.Fleet.Ended()
		if soon != nil || held.IsZero() { // they are about to go on, or somebody else sees to them
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

// rollOnce takes each rollout one step further. The lease, which was taken at held, is taken for longer when a third of it has gone; while
// there is no rollout nobody needs it.
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
	if err := m.Fleet.WritePresence(ctx, false); err != nil { // so that who has just come is no more away
		return err
	}
	err = m.Fleet.AdvanceRollouts(ctx, lease.Update)
	if errors.Is(err, store.ErrLeaseLost) {
		*held = time.Time{}
	}
	return err
}
