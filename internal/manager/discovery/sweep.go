package discovery

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"portolan/internal/base/space"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
	"portolan/internal/manager/ipam"
)

//go:embed migrations/*/*.sql
var sweepMigrations embed.FS

// pingSweep is the discovery method that pings every address of a network.
const pingSweep = "PINGSWEEP"

// Limits of a sweep: the number of addresses, of concurrent pings, and of addresses named in an event.
const (
	maxSweepAddresses  = 1 << 16
	maxConcurrentPings = 64
	maxNamedAddresses  = 20
)

// Intervals of the sweeper, and the kinds of findings in the table sweep_finding.
const (
	sweepInterval    = time.Second
	sweepLease       = 10 * time.Second
	findingUnknown   = "unknown"
	findingReclaimed = "reclaimable"
)

// Options are the start options of the manager that this package uses.
type Options struct {
	// Sweeps allows the manager to probe networks (--sweep).
	Sweeps bool
}

// Sweeper runs reconciliation policies. A lease ensures that only one manager of a database runs them at a time.
type Sweeper struct {
	api   *resource.API
	log   *slog.Logger
	lease *store.Lease
	clock *timetable.Clock
	// ping reports whether an address ping.
	ping func(ctx context.Context, a netip.Addr) (bool, error)
}

// NewSweeper returns a sweeper that probes addresses with ping. Start it with Run.
func NewSweeper(a *resource.API, ping func(ctx context.Context, a netip.Addr) (bool, error), log *slog.Logger) *Sweeper {
	return &Sweeper{api: a, log: log, ping: ping, lease: a.Store.NewLease("reconciliation", sweepLease),
		clock: timetable.NewClock(a, policies)}
}

// Run runs policies until ctx is cancelled. It returns at once if the manager was started without --sweep.
func (s *Sweeper) Run(ctx context.Context) {
	if !resource.Provided[Options](s.api.Provisions).Sweeps {
		return
	}
	s.api.Store.Work(ctx, sweepInterval, s.log, "reconciliation", s.runPending, s.lease)
}

// runPending adds the policies that are due to the queue, and runs all policies in it.
func (s *Sweeper) runPending(ctx context.Context) error {
	due, err := s.clock.IsDue(ctx)
	if err != nil {
		return err
	}
	pending, err := s.pendingPolicies(ctx)
	if err != nil || !due && len(pending) == 0 {
		return err
	}
	if held, err := s.lease.Acquire(ctx); err != nil || !held {
		return err
	}
	defer s.lease.Keep(ctx, s.log)()
	if due {
		if err := s.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			return s.clock.Turn(&resource.Change{Tx: tx, API: s.api}, func(row *store.Resource, _ timetable.Schedule) error {
				return tx.Write("INSERT INTO sweep_due (policy) VALUES (?) ON CONFLICT DO NOTHING", row.ID)
			})
		}); err != nil {
			return err
		}
		if pending, err = s.pendingPolicies(ctx); err != nil {
			return err
		}
	}
	for _, id := range pending {
		if err := s.reconcile(ctx, id); err != nil {
			return fmt.Errorf("reconciliation policy %d: %w", id, err)
		}
	}
	return nil
}

// pendingPolicies returns the ids of the policies in the queue, the table sweep_due.
func (s *Sweeper) pendingPolicies(ctx context.Context) (ids []int64, err error) {
	err = s.api.Store.View(ctx, func(tx *store.Tx) error {
		ids = nil
		return tx.Each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			ids = append(ids, id)
			return err
		}, "SELECT policy FROM sweep_due ORDER BY policy")
	})
	return ids, err
}

// sweep is one run of a policy.
type sweep struct {
	policy *IPv4ReconciliationPolicy
	// networks are the networks to probe, and targets their addresses to ping, by network id. isTruncated reports that addresses were left
	// out because of maxSweepAddresses.
	networks    []*store.Resource
	targets     map[int64][]netip.Addr
	isTruncated bool
	// answering are the addresses that answered.
	answering map[netip.Addr]bool
}

// reconcile runs a policy: it pings the addresses, applies the result in one transaction and removes the policy from the queue.
func (s *Sweeper) reconcile(ctx context.Context, id int64) error {
	w, err := s.plan(ctx, id)
	if err != nil {
		return err
	}
	var failure error
	if w != nil {
		if failure = s.probe(ctx, w); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if failure != nil {
		s.log.Warn("ping sweep failed", "policy", id, "reason", failure)
	}
	return s.lease.Update(ctx, s.author(w), func(tx *store.Tx) error {
		if err := tx.Write("DELETE FROM sweep_due WHERE policy = ?", id); err != nil || w == nil {
			return err
		}
		if failure != nil {
			return event.Add(tx, w.failureEvent(failure), id)
		}
		return w.settle(&resource.Change{Tx: tx, API: s.api})
	})
}

// author returns the author of the changes, whose comment names the policy.
func (s *Sweeper) author(w *sweep) store.Author {
	if w == nil {
		return store.Author{}
	}
	return store.Author{Comment: fmt.Sprintf("reconciliation policy %d", w.policy.ID)}
}

// plan returns a sweep with the addresses to ping; nil if the policy was deleted or disabled meanwhile.
func (s *Sweeper) plan(ctx context.Context, id int64) (w *sweep, err error) {
	err = s.api.Store.View(ctx, func(tx *store.Tx) error {
		w = nil
		row, err := tx.Get(id)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		o, err := s.api.Object(row)
		if err != nil {
			return err
		}
		x, ok := o.(*IPv4ReconciliationPolicy)
		if !ok || !x.Enabled {
			return nil
		}
		w = &sweep{policy: x, targets: map[int64][]netip.Addr{}, answering: map[netip.Addr]bool{}}
		return w.findTargets(tx, row)
	})
	return w, err
}

// findTargets sets the networks of the policy and the addresses to ping in them, at most maxSweepAddresses.
func (w *sweep) findTargets(tx *store.Tx, row *store.Resource) error {
	bounds, err := w.bounds(tx, row)
	if err != nil {
		return err
	}
	excluded, err := parseRanges(append(slices.Clone(w.policy.PingSweepNetworkGaps), w.policy.Overrides...))
	if err != nil {
		return err
	}
	within := func(list []space.Range, a netip.Addr) bool {
		return slices.ContainsFunc(list, func(r space.Range) bool { return r.Has(a) })
	}
	total := 0
	return tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("networks"),
		store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: row.Configuration}}},
		func(n *store.Resource) error {
			if n.Type != "IPv4Network" {
				return nil
			}
			added := map[netip.Addr]bool{}
			for _, bound := range bounds {
				both, ok := ipam.Usable(n).Intersect(bound)
				for a := both.Low; ok && total < maxSweepAddresses; a = a.Next() {
					if !added[a] && !within(excluded, a) {
						total++
						added[a] = true
						w.targets[n.ID] = append(w.targets[n.ID], a)
					}
					ok = a != both.High
				}
			}
			w.isTruncated = w.isTruncated || total >= maxSweepAddresses
			if len(added) > 0 {
				w.networks = append(w.networks, n.Clone())
			}
			return nil
		})
}

// bounds returns the ranges that a policy covers: its boundaries, or the range of its parent if it has none.
func (w *sweep) bounds(tx *store.Tx, row *store.Resource) ([]space.Range, error) {
	if len(w.policy.NetworkBoundaries) > 0 {
		return parseRanges(w.policy.NetworkBoundaries)
	}
	above, err := tx.Get(row.Parent)
	if err != nil {
		return nil, err
	}
	return []space.Range{ipam.RangeOf(above)}, nil
}

// parseRanges parses addresses, prefixes and ranges, which were validated when the policy was written.
func parseRanges(texts []string) (all []space.Range, err error) {
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, space.Range{Low: a, High: a})
			continue
		}
		r, err := space.Parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// probe pings the addresses, up to maxConcurrentPings at a time. It returns the first error, and stops there.
func (s *Sweeper) probe(ctx context.Context, w *sweep) error {
	var mu sync.Mutex
	var failure error
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxConcurrentPings)
	for _, n := range w.networks {
		for _, a := range w.targets[n.ID] {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				yes, err := s.ping(ctx, a)
				mu.Lock()
				defer mu.Unlock()
				if err != nil && failure == nil {
					failure = err
				}
				if yes {
					w.answering[a] = true
				}
			})
			mu.Lock()
			failed := failure != nil
			mu.Unlock()
			if failed || ctx.Err() != nil {
				wg.Wait()
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return failure
			}
		}
	}
	wg.Wait()
	return failure
}
