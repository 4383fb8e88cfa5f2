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

// pingSweep is the discovery method that asks every address of a network whether it answers.
const pingSweep = "PINGSWEEP"

// Bounds of sweeps: how many addresses one looks at, how many are asked at a time, and how many are named in an event.
const (
	mostSwept  = 1 << 16
	askedAside = 64
	mostNamed  = 20
)

// Times of the work on reconciliation.
const (
	sweepEvery       = time.Second
	sweepLease       = 10 * time.Second
	findingUnknown   = "unknown"
	findingReclaimed = "reclaimable"
)

// Options are how the manager was started.
type Options struct {
	// Sweeps allows the manager to probe networks by itself (--sweep).
	Sweeps bool
}

// Sweeper works reconciliation policies off: of all managers of a database one at a time.
type Sweeper struct {
	api   *resource.API
	log   *slog.Logger
	lease *store.Lease
	clock *timetable.Clock
	// answers asks whether an address answers.
	answers func(ctx context.Context, a netip.Addr) (bool, error)
}

// NewSweeper makes what looks at networks; answers asks an address. Run runs it.
func NewSweeper(a *resource.API, answers func(ctx context.Context, a netip.Addr) (bool, error), log *slog.Logger) *Sweeper {
	return &Sweeper{api: a, log: log, answers: answers, lease: a.Store.NewLease("reconciliation", sweepLease),
		clock: timetable.NewClock(a, policies)}
}

// Run works until ctx ends. A manager that may not look at networks leaves that to others.
func (s *Sweeper) Run(ctx context.Context) {
	if !resource.Provided[Options](s.api.Provisions).Sweeps {
		return
	}
	s.api.Store.Work(ctx, sweepEvery, s.log, "reconciliation", s.look, s.lease)
}

// look notes the policies that are due, and works them off.
func (s *Sweeper) look(ctx context.Context) error {
	due, err := s.clock.Due(ctx)
	if err != nil {
		return err
	}
	asked, err := s.asked(ctx)
	if err != nil || !due && len(asked) == 0 {
		return err
	}
	if held, err := s.lease.Take(ctx); err != nil || !held {
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
		if asked, err = s.asked(ctx); err != nil {
			return err
		}
	}
	for _, id := range asked {
		if err := s.reconcile(ctx, id); err != nil {
			return fmt.Errorf("reconciliation policy %d: %w", id, err)
		}
	}
	return nil
}

// asked gives the policies that are to be worked off.
func (s *Sweeper) asked(ctx context.Context) (ids []int64, err error) {
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

// sweep is one look at the networks of a policy.
type sweep struct {
	policy *IPv4ReconciliationPolicy
	// networks are those that are looked at, asked their addresses; bounded says that there are more than are looked at.
	networks []*store.Resource
	asked    map[int64][]netip.Addr
	bounded  bool
	// answer are the addresses that answer.
	answer map[netip.Addr]bool
}

// reconcile works a policy off.
func (s *Sweeper) reconcile(ctx context.Context, id int64) error {
	w, err := s.plan(ctx, id)
	if err != nil {
		return err
	}
	var failure error
	if w != nil {
		if failure = s.ask(ctx, w); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if failure != nil {
		s.log.Warn("the addresses of a reconciliation policy cannot be asked", "policy", id, "reason", failure)
	}
	return s.lease.Update(ctx, s.author(w), func(tx *store.Tx) error {
		if err := tx.Write("DELETE FROM sweep_due WHERE policy = ?", id); err != nil || w == nil {
			return err
		}
		if failure != nil {
			return event.Add(tx, w.failed(failure), id)
		}
		return w.settle(&resource.Change{Tx: tx, API: s.api})
	})
}

// author says in the history why something was changed.
func (s *Sweeper) author(w *sweep) store.Author {
	if w == nil {
		return store.Author{}
	}
	return store.Author{Comment: fmt.Sprintf("reconciliation policy %d", w.policy.ID)}
}

// plan finds the addresses that a policy asks; nil where it is gone, or not enabled any more.
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
		w = &sweep{policy: x, asked: map[int64][]netip.Addr{}, answer: map[netip.Addr]bool{}}
		return w.find(tx, row)
	})
	return w, err
}

// find finds the networks of a policy, and the addresses of hosts in them that it asks.
func (w *sweep) find(tx *store.Tx, row *store.Resource) error {
	bounds, err := w.bounds(tx, row)
	if err != nil {
		return err
	}
	never, err := ranges(append(slices.Clone(w.policy.PingSweepNetworkGaps), w.policy.Overrides...))
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
			asked := map[netip.Addr]bool{}
			for _, bound := range bounds {
				both, ok := ipam.Usable(n).Intersect(bound)
				for a := both.Low; ok && total < mostSwept; a = a.Next() {
					if !asked[a] && !within(never, a) {
						total++
						asked[a] = true
						w.asked[n.ID] = append(w.asked[n.ID], a)
					}
					ok = a != both.High
				}
			}
			w.bounded = w.bounded || total >= mostSwept
			if len(asked) > 0 {
				w.networks = append(w.networks, n.Clone())
			}
			return nil
		})
}

// bounds gives what a policy looks at: its boundaries, or the range of what it lies below.
func (w *sweep) bounds(tx *store.Tx, row *store.Resource) ([]space.Range, error) {
	if len(w.policy.NetworkBoundaries) > 0 {
		return ranges(w.policy.NetworkBoundaries)
	}
	above, err := tx.Get(row.Parent)
	if err != nil {
		return nil, err
	}
	return []space.Range{ipam.RangeOf(above)}, nil
}

// ranges reads addresses, prefixes and ranges, which were checked.
func ranges(texts []string) (all []space.Range, err error) {
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

// ask asks the addresses, some at a time.
func (s *Sweeper) ask(ctx context.Context, w *sweep) error {
	var mu sync.Mutex
	var failure error
	var asking sync.WaitGroup
	turn := make(chan struct{}, askedAside)
	for _, n := range w.networks {
		for _, a := range w.asked[n.ID] {
			turn <- struct{}{}
			asking.Go(func() {
				defer func() { <-turn }()
				yes, err := s.answers(ctx, a)
				mu.Lock()
				defer mu.Unlock()
				if err != nil && failure == nil {
					failure = err
				}
				if yes {
					w.answer[a] = true
				}
			})
			mu.Lock()
			failed := failure != nil
			mu.Unlock()
			if failed || ctx.Err() != nil {
				asking.Wait()
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return failure
			}
		}
	}
	asking.Wait()
	return failure
}
