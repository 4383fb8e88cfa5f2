package discovery

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"portolan/internal/base/snmpwalk"
	"portolan/internal/base/space"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
	"portolan/internal/manager/ipam"
)

//go:embed migrations/*/*_sweep.sql
var sweepMigrations embed.FS

// The discovery methods.
const (
	methodPing = "PINGSWEEP"
	methodSNMP = "SNMP"
	methodBoth = "SNMP_PINGSWEEP"
	methodNone = "NO_DISCOVERY"
)

// usesSNMP and usesPing report whether a method reads devices, and whether it pings addresses.
func usesSNMP(method string) bool { return method == methodSNMP || method == methodBoth }
func usesPing(method string) bool { return method == methodPing || method == methodBoth }

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
	findingMismatch  = "mismatch"
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
	// ping reports whether an address answers.
	ping func(ctx context.Context, a netip.Addr) (bool, error)
	// Ended is called after each run with its state.
	Ended func(state string)
}

// NewSweeper returns a sweeper that probes addresses with ping. Start it with Run.
func NewSweeper(a *resource.API, ping func(ctx context.Context, a netip.Addr) (bool, error), log *slog.Logger) *Sweeper {
	return &Sweeper{api: a, log: log, ping: ping, lease: a.Store.NewLease("reconciliation", sweepLease),
		clock: timetable.NewClock(a, policies), Ended: func(string) {}}
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
	head   *schema.Head
	common *Reconciliation
	// v4 is the policy of IPv4 networks; nil for IPv6.
	v4     *IPv4ReconciliationPolicy
	method string
	// bounds are the ranges of the policy, excluded those that it does not examine, and gaps those that it does not ping.
	bounds, excluded, gaps []space.Range
	// networks are the networks in the bounds in the order of their addresses, and targets their addresses to ping, by network id.
	// isTruncated reports that addresses were left out because of maxSweepAddresses.
	networks    []*store.Resource
	targets     map[int64]map[netip.Addr]bool
	pinged      int
	isTruncated bool
	// target has the access data of devices; nil for a policy without SNMP. pace limits the packets of the run.
	target *snmpwalk.Target
	pace   *pacer
	// seen are the addresses that were seen. devices are the devices that answered.
	seen    map[netip.Addr]*Observation
	devices []*foundDevice
	// isPartial reports that a part of the scan failed; messages are the problems.
	isPartial bool
	messages  []string
	// stored are the values of seen addresses in the database, by address id.
	stored map[int64]storedValues
}

// covers reports whether an address is in the bounds of the policy and not excluded.
func (w *sweep) covers(a netip.Addr) bool {
	return contains(w.bounds, a) && !contains(w.excluded, a)
}

// contains reports whether a range contains the address.
func contains(ranges []space.Range, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r space.Range) bool { return r.Has(a) })
}

// recordMethod returns the observation of an address, to which a method is added.
func (w *sweep) recordMethod(a netip.Addr, method string) *Observation {
	x := w.seen[a]
	if x == nil {
		x = &Observation{Address: a}
		w.seen[a] = x
	}
	if !slices.Contains(x.Methods, method) {
		x.Methods = append(x.Methods, method)
	}
	return x
}

// reconcile runs a policy: it scans, stores the observations, applies the result in one transaction and removes the policy from the queue.
func (s *Sweeper) reconcile(ctx context.Context, id int64) error {
	w, err := s.plan(ctx, id)
	if err != nil {
		return err
	}
	if w == nil || !w.common.Enabled { // deleted or disabled meanwhile
		return s.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error { return dequeue(tx, id) })
	}
	failure := s.scan(ctx, w)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.store(ctx, w, failure)
}

// dequeue removes a policy from the queue.
func dequeue(tx *store.Tx, policy int64) error {
	return tx.Write("DELETE FROM sweep_due WHERE policy = ?", policy)
}

// store stores the result of a scan: the observations, and in one transaction the findings and the run. failure is the reason of a scan
// that failed; such a run changes nothing.
func (s *Sweeper) store(ctx context.Context, w *sweep, failure error) error {
	if failure != nil {
		s.log.Warn("discovery failed", "policy", w.head.ID, "reason", failure)
	} else if err := errors.Join(s.writeObservations(ctx, w), s.readStored(ctx, w)); err != nil {
		return err
	}
	result := ReconciliationRun{State: runFailed}
	err := s.lease.Update(ctx, s.author(w), func(tx *store.Tx) (err error) {
		if err := dequeue(tx, w.head.ID); err != nil {
			return err
		}
		c := &resource.Change{Tx: tx, API: s.api}
		result = ReconciliationRun{State: runFailed, Messages: w.messages, Pinged: int64(w.pinged), Seen: int64(len(w.seen)),
			Devices: int64(len(w.devices))}
		if failure != nil {
			result.Messages = append([]string{failure.Error()}, w.messages...)
			return errors.Join(recordRun(c, w.head, result), event.Add(tx, w.failureEvent(failure), w.head.ID))
		}
		result.State = runDone
		if result.Findings, err = w.settle(c); err != nil {
			return err
		}
		return recordRun(c, w.head, result)
	})
	if err == nil {
		s.Ended(result.State)
	}
	return err
}

// scan pings the addresses, reads the devices and looks up names, as the policy requires.
func (s *Sweeper) scan(ctx context.Context, w *sweep) error {
	if usesPing(w.method) {
		if err := s.probe(ctx, w); err != nil {
			return err
		}
	}
	if usesSNMP(w.method) {
		if err := s.readDevices(ctx, w); err != nil {
			return err
		}
	}
	return s.lookUpNames(ctx, w)
}

// author returns the author of the changes, whose comment names the policy.
func (s *Sweeper) author(w *sweep) store.Author {
	return store.Author{Comment: fmt.Sprintf("reconciliation policy %d", w.head.ID)}
}

// plan returns a sweep with the addresses to ping; nil if the policy was deleted meanwhile.
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
		one := &sweep{head: schema.HeadOf(o), targets: map[int64]map[netip.Addr]bool{}, seen: map[netip.Addr]*Observation{}}
		switch x := o.(type) {
		case *IPv4ReconciliationPolicy:
			one.v4, one.common, one.method = x, &x.Reconciliation, x.DiscoveryMethod
		case *IPv6ReconciliationPolicy:
			one.common, one.method = &x.Reconciliation, x.DiscoveryMethod
		}
		if one.common == nil {
			return nil
		}
		one.pace = newPacer(one.common.PacketsPerSecond)
		if usesSNMP(one.method) && one.common.SNMP != nil {
			secrets, err := s.api.Secrets(tx, o)
			if err != nil {
				return err
			}
			one.target = targetOf(one.common.SNMP, secrets)
		}
		w = one
		return w.findTargets(tx, row)
	})
	return w, err
}

// findTargets sets the networks of the policy and the addresses to ping in them, at most maxSweepAddresses.
func (w *sweep) findTargets(tx *store.Tx, row *store.Resource) (err error) {
	if err = w.setBounds(tx, row); err != nil {
		return err
	}
	typeName := "IPv6Network"
	if w.v4 != nil {
		typeName = "IPv4Network"
	}
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("networks"),
		store.Compare{Field: configurationColumn, Op: "eq", Value: row.Configuration}}},
		func(n *store.Resource) error {
			if n.Type != typeName {
				return nil
			}
			for _, bound := range w.bounds {
				if _, ok := ipam.RangeOf(n).Intersect(bound); ok {
					w.networks = append(w.networks, n.Clone())
					break
				}
			}
			return nil
		}); err != nil {
		return err
	}
	slices.SortFunc(w.networks, func(a, b *store.Resource) int { return bytes.Compare(a.Low, b.Low) })
	if usesPing(w.method) {
		w.addTargets()
	}
	return nil
}

// addTargets sets the addresses to ping.
func (w *sweep) addTargets() {
	for _, n := range w.networks {
		added := map[netip.Addr]bool{}
		for _, bound := range w.bounds {
			both, ok := ipam.Usable(n).Intersect(bound)
			for a := both.Low; ok && w.pinged < maxSweepAddresses; a = a.Next() {
				if !added[a] && w.covers(a) && !contains(w.gaps, a) {
					w.pinged++
					added[a] = true
				}
				ok = a != both.High
			}
		}
		w.isTruncated = w.isTruncated || w.pinged >= maxSweepAddresses
		w.targets[n.ID] = added
	}
}

// setBounds sets the ranges that a policy covers, which are its boundaries, or the range of its parent if it has none, and the ranges that
// it excludes.
func (w *sweep) setBounds(tx *store.Tx, row *store.Resource) (err error) {
	if w.v4 != nil {
		if w.excluded, err = parseRanges(w.v4.Overrides); err != nil {
			return err
		}
		if w.gaps, err = parseRanges(w.v4.PingSweepNetworkGaps); err != nil {
			return err
		}
		if len(w.v4.NetworkBoundaries) > 0 {
			w.bounds, err = parseRanges(w.v4.NetworkBoundaries)
			return err
		}
	}
	above, err := tx.Get(row.Parent)
	if err != nil {
		return err
	}
	w.bounds = []space.Range{ipam.RangeOf(above)}
	return nil
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxConcurrentPings)
	for _, n := range w.networks {
		for a := range w.targets[n.ID] {
			if w.pace.wait(ctx) != nil {
				break
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				yes, err := s.ping(ctx, a)
				if err != nil {
					cancel(err)
				}
				if yes {
					mu.Lock()
					defer mu.Unlock()
					w.recordMethod(a, seenByPing)
				}
			})
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}
