package server

import (
	"context"
	"errors"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/discovery"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/history"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/settings"
)

// sweepEvery is the interval at which the manager stores presence and handles expiry.
const sweepEvery = 10 * time.Second

func (m *Manager) sweep(ctx context.Context) {
	lease := m.Store.NewLease("expiry", 3*sweepEvery)
	defer func() {
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
			m.log.Error("lease release failed", "error", err)
		}
	}()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.Fleet.WritePresence(ctx, false); err != nil {
			m.log.Error("presence not stored", "error", err)
		}
		if err := m.expire(ctx, lease); err != nil {
			m.log.Error("expiry run failed", "error", err)
		}
		if leaf := m.certificate.Load().Leaf; time.Until(leaf.NotAfter) < leaf.NotAfter.Sub(leaf.NotBefore)/3 {
			if err := m.renewCertificate(); err != nil {
				m.log.Error("manager certificate renewal failed", "error", err)
			}
		}
	}
}

// pruneEvery is the interval between removals of old data.
const pruneEvery = time.Hour

// pruneNowAndThen removes old data at the start and then every pruneEvery, until ctx ends.
func (m *Manager) pruneNowAndThen(ctx context.Context) {
	lease := m.Store.NewLease("retention", 3*sweepEvery)
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		if err := m.prune(ctx, lease); err != nil && ctx.Err() == nil {
			m.log.Error("pruning failed", "error", err)
		}
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
			m.log.Error("lease release failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sampleLeases records the numbers of leases of DHCP ranges at the start and then regularly, until ctx ends. One manager of a database
// does it.
func (m *Manager) sampleLeases(ctx context.Context) {
	lease := m.Store.NewLease("lease samples", 3*sweepEvery)
	tick := time.NewTicker(dhcp.SampleInterval)
	defer tick.Stop()
	for {
		held, err := lease.Acquire(ctx)
		if err == nil && held {
			_, err = dhcp.SampleRanges(ctx, lease.Update, m.Store.Now())
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrLeaseLost) {
			m.log.Error("lease samples not stored", "error", err)
		}
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
			m.log.Error("lease release failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// prune removes data older than its retention time, if this manager gets the lease. Each step extends the lease.
func (m *Manager) prune(ctx context.Context, lease *store.Lease) error {
	update := func(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
		held, err := lease.Acquire(ctx)
		if err != nil {
			return err
		}
		if !held {
			return store.ErrLeaseLost
		}
		return lease.Update(ctx, author, fn)
	}
	now := m.Store.Now()
	keep, events, sessions := m.options.KeepHistory, m.options.KeepEvents, m.options.KeepSessions
	var spans time.Duration
	if err := m.Store.View(ctx, func(tx *store.Tx) error { // the settings take precedence over the options
		old, recent, err := settings.Retention(tx, m.Address)
		if old > 0 {
			keep = old
		}
		if recent > 0 {
			events, sessions = recent, recent
		}
		if err != nil {
			return err
		}
		kept, isSet, err := settings.LeaseRetention(tx, m.Address)
		if spans = 0; isSet {
			spans = max(kept, time.Second) // with a period of zero, every ended lease is deleted
		}
		return err
	}); err != nil {
		return err
	}
	var errs []error
	for _, one := range []struct {
		what string
		keep time.Duration
		run  func(before time.Time) (int, error)
	}{
		{"transactions", keep, func(before time.Time) (int, error) {
			return m.Store.PruneHistory(ctx, update, before, history.SignStart(m.Address.Sealer))
		}},
		{"events", events, func(before time.Time) (int, error) { return event.PruneEvents(ctx, update, before) }},
		{"deployments", events, func(before time.Time) (int, error) { return dnspublish.Prune(ctx, m.Address, update, before) }},
		{"lease spans", spans, func(before time.Time) (int, error) { return dhcp.PruneSpans(ctx, update, before) }},
		{"refused clients", dhcp.KeepRefused, func(before time.Time) (int, error) { return dhcp.PruneRefused(ctx, update, before) }},
		{"observations", discovery.KeepObservations, func(before time.Time) (int, error) {
			return discovery.PruneObservations(ctx, update, before)
		}},
		{"sessions", sessions, func(before time.Time) (int, error) {
			return identity.RemoveSessions(ctx, m.Address, update, before)
		}},
	} {
		if one.keep <= 0 {
			continue
		}
		n, err := one.run(now.Add(-one.keep))
		if n > 0 {
			m.log.Info("old data pruned", "what", one.what, "count", n, "keep", one.keep)
		}
		if !errors.Is(err, store.ErrLeaseLost) { // another manager does it
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// expire runs the fleet sweep and ends expired sessions, if this manager gets the lease.
func (m *Manager) expire(ctx context.Context, lease *store.Lease) error {
	held, err := lease.Acquire(ctx)
	if err != nil || !held {
		return err
	}
	err = errors.Join(m.Fleet.Sweep(ctx, lease.Update), identity.ExpireSessions(ctx, m.Address, m.Identity, lease.Update),
		m.expireLeases(ctx, lease.Update))
	if errors.Is(err, store.ErrLeaseLost) { // another manager does it
		return nil
	}
	return err
}

// expireLeases ends expired leases that no server can end, and releases those of deleted servers.
func (m *Manager) expireLeases(ctx context.Context, update store.Updater) error {
	n, err := dhcp.EndExpired(ctx, m.Address, update)
	if n > 0 {
		m.log.Info("leases without a server expired", "count", n)
	}
	if err != nil {
		return err
	}
	released, ended, err := dhcp.ReleaseLost(ctx, m.Address, update, dhcppublish.NetworkChanged)
	if released+ended > 0 {
		m.log.Info("leases of lost servers processed", "released", released, "ended", ended)
	}
	return err
}
