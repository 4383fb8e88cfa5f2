package dnspublish

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/serverconfig"
)

// copiesTopic is touched when a NOTIFY message for a copied zone arrives.
const copiesTopic = "dns_copy"

// Intervals of the copier, and the maximum number of concurrent copies.
const (
	copyInterval     = 200 * time.Millisecond
	copyPlanInterval = time.Minute
	copyLease        = 10 * time.Second
	minTimer         = 2 * time.Second
	maxTimer         = 24 * time.Hour
	firstRetry       = 3 * time.Second
	maxCopies        = 8
	// maxCopiesPerServer is the maximum number of concurrent copies from one server.
	maxCopiesPerServer = 2
)

// Copier copies zones from foreign primary servers, for the servers that have a role for these zones (RFC 1034 section 4.3.5, RFC 5936). It
// also keeps views up to date that follow a foreign server. Only one manager of a database copies at a time.
type Copier struct {
	api    *resource.API
	points Points
	log    *slog.Logger
	lease  *store.Lease
	// Copied is called after each check of a zone with the result: copied (whole zone), changed (incremental), current or failed.
	Copied func(what string)
	// Feed fetches the list of names of a category; nil where feeds are not set up. The category is empty where a zone has none.
	Feed     func(ctx context.Context, category string) (io.ReadCloser, error)
	planned  *store.Cache[struct{}, bool]
	notified *store.Cache[struct{}, bool]
	// The following fields are used by Run only: when the lease was last tried and whether it is held, and when the zones were last listed.
	leaseTried, listedAt time.Time
	held                 bool
	// hadZones reports that there were zones to copy since the last cleanup of dns_copy, needsCleanup that a cleanup may be needed.
	hadZones, needsCleanup bool
	// slots limits concurrent copies, slow concurrent fetches of feeds, which may take long. wg waits for all of them.
	slots, slow chan struct{}
	wg          sync.WaitGroup

	mu sync.Mutex
	// zones are the copied zones. mu guards the map and the changing fields of its zones.
	zones map[string]*copiedZone
}

// copiedZone is a zone that is copied or followed.
type copiedZone struct {
	id            string
	configuration int64
	name          string
	primaries     []source
	// policy is the response policy zone; nil for other zones.
	policy *dns.ResponsePolicyZone
	// follows is the followed zone of a view; nil where the zone is copied unchanged.
	follows *followedZone
	// next is the time of the next check. lastError is the last error, which has an event already.
	next      time.Time
	lastError string
	// busy reports that a check is running, isRequested that another one is requested after it.
	busy, isRequested bool
	// ctx is cancelled by cancel when the zone is no longer copied.
	ctx    context.Context //nolint:containedctx // it lives as long as the zone
	cancel context.CancelFunc
	// sourceKnown reports that the deployed content comes from the current source; the serial numbers of another source are not comparable.
	// Only the goroutine that checks the zone uses it.
	sourceKnown bool
}

// NewCopier returns a copier. Start it with Run.
func NewCopier(a *resource.API, points Points, log *slog.Logger) *Copier {
	return &Copier{api: a, points: points, log: log, lease: a.Store.NewLease("dns_copies", copyLease), Copied: func(string) {},
		planned: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{"zones", "views", "deploymentRoles", "interfaces",
			"servers", "signingKeys"}}),
		notified: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{copiesTopic}}),
		zones:    map[string]*copiedZone{}, slots: make(chan struct{}, maxCopies), slow: make(chan struct{}, maxCopies)}
}

// sameSource reports whether two zones have the same source and refresh interval.
func (z *copiedZone) sameSource(o *copiedZone) bool {
	if (z.policy == nil) != (o.policy == nil) || !slices.EqualFunc(z.primaries, o.primaries, source.equals) || !z.follows.equals(o.follows) {
		return false
	}
	return z.policy == nil || z.policy.ResponsePolicyZoneType == o.policy.ResponsePolicyZoneType &&
		slices.Equal(z.policy.FeedCategories, o.policy.FeedCategories) && z.policy.OverrideRefreshTime == o.policy.OverrideRefreshTime
}

// firstSource returns the address of the first source; invalid if there is none.
func (z *copiedZone) firstSource() (at netip.Addr) {
	if len(z.primaries) > 0 {
		at = z.primaries[0].Addr
	}
	return at
}

// isFeed reports whether the zone is fetched as a list of names.
func (z *copiedZone) isFeed() bool {
	return z.policy != nil && z.policy.ResponsePolicyZoneType == dns.FeedPolicy
}

// Run copies zones until ctx is cancelled.
func (c *Copier) Run(ctx context.Context) {
	c.api.Store.Work(ctx, copyInterval, c.log, "zone copies", c.runOnce, c.lease)
	c.wg.Wait()
}

// runOnce starts the checks of all zones that are due.
func (c *Copier) runOnce(ctx context.Context) error {
	if err := c.plan(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	none := len(c.zones) == 0 && !c.hadZones
	c.mu.Unlock()
	if none {
		return nil
	}
	if time.Since(c.leaseTried) > copyLease/5 {
		c.leaseTried = time.Now()
		var err error
		if c.held, err = c.lease.Acquire(ctx); err != nil {
			return err
		}
	}
	if !c.held {
		return nil
	}
	if c.needsCleanup {
		if err := c.deleteStale(ctx); err != nil {
			return err
		}
		c.mu.Lock()
		c.needsCleanup, c.hadZones = false, len(c.zones) > 0
		c.mu.Unlock()
	}
	if err := c.readNotifies(ctx); err != nil {
		return err
	}
	for _, z := range c.pick(ctx) {
		c.wg.Go(func() {
			defer func() { <-c.slotsOf(z) }()
			c.refresh(z.ctx, z)
		})
	}
	return nil
}

// slotsOf returns the slots that limit the checks of a zone.
func (c *Copier) slotsOf(z *copiedZone) chan struct{} {
	if z.isFeed() {
		return c.slow
	}
	return c.slots
}

// pick returns the zones that are due and takes a slot for each. Only a few zones of the same server are picked, so that a server that does
// not answer does not delay others.
func (c *Copier) pick(ctx context.Context) (due []*copiedZone) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := map[netip.Addr]int{}
	for _, z := range c.zones {
		if z.busy {
			asked[z.firstSource()]++
		}
	}
	for _, z := range c.zones {
		if z.busy || time.Now().Before(z.next) || z.firstSource().IsValid() && asked[z.firstSource()] >= maxCopiesPerServer {
			continue
		}
		select {
		case c.slotsOf(z) <- struct{}{}:
		default: // all slots are in use
			continue
		}
		if z.ctx == nil {
			z.ctx, z.cancel = context.WithCancel(ctx) //nolint:gosec // plan cancels it
		}
		z.busy, z.isRequested = true, false
		asked[z.firstSource()]++
		due = append(due, z)
	}
	return due
}

// plan lists the zones to copy, if resources have changed or copyPlanInterval has passed.
func (c *Copier) plan(ctx context.Context) error {
	if known, ok := c.planned.Now(struct{}{}); known && ok && time.Since(c.listedAt) < copyPlanInterval {
		return nil
	}
	found := map[string]*copiedZone{}
	err := c.api.Store.View(ctx, func(tx *store.Tx) error {
		clear(found)
		var configurations []int64
		if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("servers"), isForeignServer}},
			func(r *store.Resource) error {
				configurations = append(configurations, r.Configuration)
				return nil
			}); err != nil {
			return err
		}
		if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("zones"), isPolicyOfOthers}},
			func(r *store.Resource) error {
				configurations = append(configurations, r.Configuration)
				return nil
			}); err != nil {
			return err
		}
		slices.Sort(configurations)
		for _, id := range slices.Compact(configurations) {
			err := c.planOf(tx, id, found)
			if !isFault(err) {
				if err != nil {
					return err
				}
				continue
			}
			c.log.Error("listing copied zones failed", "configuration", id, "error", err)
			c.mu.Lock()
			for name, z := range c.zones { // the zones listed before stay
				if z.configuration == id {
					found[name] = z
				}
			}
			c.mu.Unlock()
		}
		c.planned.Put(tx, struct{}{}, true)
		return nil
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, before := range c.zones {
		z := found[id]
		if z != nil && before.sameSource(z) {
			found[id] = before
			continue
		}
		if z != nil && z.follows != nil {
			z.follows.remember(before.follows)
		}
		if before.cancel != nil {
			before.cancel()
		}
	}
	c.zones, c.listedAt, c.needsCleanup, c.hadZones = found, time.Now(), true, c.hadZones || len(c.zones)+len(found) > 0
	return nil
}

// planOf adds the copied zones of a configuration.
func (c *Copier) planOf(tx *store.Tx, configuration int64, found map[string]*copiedZone) (err error) {
	defer recoverFault(&err)
	p, err := newPlan(tx, c.api, configuration)
	if err != nil {
		return err
	}
	for _, z := range p.zones {
		if !p.isCopied(z) {
			continue
		}
		one := &copiedZone{id: z.id, configuration: configuration, name: z.fqdn(), policy: p.policies[z.row.ID]}
		for _, server := range z.serversOf(assigned.writes) {
			if p.foreign(server) {
				one.primaries = append(one.primaries, p.sources(z.roles[server].iface)...)
			}
		}
		if one.policy != nil {
			one.primaries = p.sourcesOf(z)
		}
		found[z.id] = one
	}
	return p.followed(found)
}

// deleteStale deletes the state of zones that are not copied any more, because it would be outdated if they were copied again.
func (c *Copier) deleteStale(ctx context.Context) error {
	c.mu.Lock()
	copied := maps.Clone(c.zones)
	c.mu.Unlock()
	return c.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		var gone []string
		if err := tx.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			if copied[id] == nil {
				gone = append(gone, id)
			}
			return err
		}, "SELECT zone FROM dns_copy"); err != nil {
			return err
		}
		for _, id := range gone {
			if err := tx.Write("DELETE FROM dns_copy WHERE zone = ?", id); err != nil {
				return err
			}
		}
		return nil
	})
}

// isForeignServer selects the foreign servers.
var isForeignServer = store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"profile"}}, Op: "eq",
	Value: serverconfig.IsOtherServer}

// isPolicyOfOthers selects the response policy zones whose names come from elsewhere.
var isPolicyOfOthers = store.All{
	store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: "ResponsePolicyZone"},
	store.Any{typeOfPolicy(dns.FeedPolicy), typeOfPolicy(dns.ExternalPolicy)}}

func typeOfPolicy(kind string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"responsePolicyZoneType"}}, Op: "eq", Value: kind}
}

// isCopied reports whether a zone is copied: it is foreign, and one of our servers serves or uses it.
func (p *plan) isCopied(z *plannedZone) bool {
	ours := func(does func(assigned) bool) bool {
		return slices.ContainsFunc(z.serversOf(does), func(server int64) bool { return !p.foreign(server) })
	}
	if p.isPolicy(z) {
		return p.isForeign(z) && ours(func(a assigned) bool { return a.kind != serverconfig.RoleNone })
	}
	return z.row.Type == "Zone" && p.isForeign(z) && ours(assigned.answers)
}

// sourcesOf returns the sources of a transferred response policy zone: the foreign servers with a role for it.
func (p *plan) sourcesOf(z *plannedZone) (all []source) {
	for _, server := range z.serversOf(func(a assigned) bool { return a.kind != serverconfig.RoleNone }) {
		if a := z.roles[server]; p.foreign(server) && p.policies[z.row.ID].ResponsePolicyZoneType == dns.ExternalPolicy {
			all = append(all, p.sources(a.iface)...)
		}
	}
	return all
}

// primariesOf returns the addresses of the servers that write a zone; only those of foreign servers if the zone is foreign.
func (p *plan) primariesOf(z *plannedZone) (all []netip.Addr) {
	foreign := p.isForeign(z)
	for _, server := range z.serversOf(assigned.writes) {
		if foreign && !p.foreign(server) {
			continue
		}
		all = append(all, p.interfaces[z.roles[server].iface].addresses...)
	}
	return all
}

// readNotifies schedules an immediate check of zones with a NOTIFY message.
func (c *Copier) readNotifies(ctx context.Context) error {
	if quiet, ok := c.notified.Now(struct{}{}); quiet && ok {
		return nil
	}
	var all []string
	if err := c.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		all = nil
		if err := tx.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			all = append(all, id)
			return err
		}, "SELECT zone FROM dns_copy WHERE notified = 1"); err != nil || len(all) == 0 {
			return err
		}
		return tx.Write("UPDATE dns_copy SET notified = 0 WHERE notified = 1")
	}); err != nil {
		return err
	}
	c.mu.Lock()
	for _, id := range all {
		if z := c.zones[id]; z != nil {
			z.next, z.isRequested = time.Time{}, true
		}
	}
	c.mu.Unlock()
	return c.api.Store.View(ctx, func(tx *store.Tx) error {
		var left int
		err := tx.QueryRow("SELECT count(*) FROM dns_copy WHERE notified = 1").Scan(&left)
		if err == nil && left == 0 {
			c.notified.Put(tx, struct{}{}, true)
		}
		return err
	})
}
