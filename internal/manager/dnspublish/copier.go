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

// copiesTopic is touched where somebody has said that a zone that is copied has changed.
const copiesTopic = "dns_copy"

// Times of copying zones from servers of others, and how many are copied at a time.
const (
	copyLook   = 200 * time.Millisecond
	copyPlan   = time.Minute
	copyLease  = 10 * time.Second
	leastTimer = 2 * time.Second
	mostTimer  = 24 * time.Hour
	firstRetry = 3 * time.Second
	mostCopies = 8
	// mostOfServer is how many of them are asked of one server.
	mostOfServer = 2
)

// Copier copies zones whose primary servers are run by others, for the servers that have a role for them, and keeps the records of views
// that follow such a server as that has them: of all managers of a database one at a time (RFC 1034 section 4.3.5, RFC 5936).
type Copier struct {
	api    *resource.API
	points Points
	log    *slog.Logger
	lease  *store.Lease
	// Copied is told of each look at a zone, by what came of it: copied (all of it), changed (what has changed), current or failed.
	Copied func(what string)
	// Feed fetches the list of names of a category; nil where there are none. The category is empty where a zone has none.
	Feed     func(ctx context.Context, category string) (io.ReadCloser, error)
	planned  *store.Cache[struct{}, bool]
	notified *store.Cache[struct{}, bool]
	// What follows is Run's own: when the lease was last taken and whether it is held, and when the zones were last looked up.
	taken, looked time.Time
	held          bool
	// had says that there were zones to copy since what is kept of those that are no more was deleted, forgets that it may have to be.
	had, forgets bool
	// turns has a token for each copying that is under way, slow for each fetching of a feed, which may take long; under waits for all.
	turns, slow chan struct{}
	under       sync.WaitGroup

	mu sync.Mutex
	// zones are those that are copied. The map, and what changes of its zones, is guarded by mu.
	zones map[string]*copiedZone
}

// copiedZone is a zone that is copied.
type copiedZone struct {
	id            string
	configuration int64
	name          string
	primaries     []source
	// policy is the response policy zone that it is; nil where it is none.
	policy *dns.ResponsePolicyZone
	// follows is what of it is followed; nil where it is copied as it is.
	follows *followedZone
	// next is when it is looked at again; wrong is what was wrong the last time, which was said.
	next  time.Time
	wrong string
	// busy says that it is being looked at, again that it is to be once more behind that.
	busy, again bool
	// ctx ends when it is not copied any more, by leave.
	ctx   context.Context //nolint:containedctx // it lives as long as the zone
	leave context.CancelFunc
	// taken says that what is deployed of it comes from where it is copied from now: another server may count otherwise. It is that of the
	// goroutine that looks at it.
	taken bool
}

// NewCopier makes what copies zones. Run runs it.
func NewCopier(a *resource.API, points Points, log *slog.Logger) *Copier {
	return &Copier{api: a, points: points, log: log, lease: a.Store.NewLease("dns_copies", copyLease), Copied: func(string) {},
		planned: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{"zones", "views", "deploymentRoles", "interfaces",
			"servers", "signingKeys"}}),
		notified: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{copiesTopic}}),
		zones:    map[string]*copiedZone{}, turns: make(chan struct{}, mostCopies), slow: make(chan struct{}, mostCopies)}
}

// sameSource reports whether two zones are copied from the same place, as often.
func (z *copiedZone) sameSource(o *copiedZone) bool {
	if (z.policy == nil) != (o.policy == nil) || !slices.EqualFunc(z.primaries, o.primaries, source.same) || !z.follows.same(o.follows) {
		return false
	}
	return z.policy == nil || z.policy.ResponsePolicyZoneType == o.policy.ResponsePolicyZoneType &&
		slices.Equal(z.policy.FeedCategories, o.policy.FeedCategories) && z.policy.OverrideRefreshTime == o.policy.OverrideRefreshTime
}

// first is the address that it is asked of first; none where there is none.
func (z *copiedZone) first() (at netip.Addr) {
	if len(z.primaries) > 0 {
		at = z.primaries[0].Addr
	}
	return at
}

// isFeed reports whether it is fetched as a list of names.
func (z *copiedZone) isFeed() bool {
	return z.policy != nil && z.policy.ResponsePolicyZoneType == dns.FeedPolicy
}

// Run copies until ctx ends.
func (c *Copier) Run(ctx context.Context) {
	c.api.Store.Work(ctx, copyLook, c.log, "zones that are copied", c.look, c.lease)
	c.under.Wait()
}

// look copies the zones that are due.
func (c *Copier) look(ctx context.Context) error {
	if err := c.plan(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	none := len(c.zones) == 0 && !c.had
	c.mu.Unlock()
	if none {
		return nil
	}
	if time.Since(c.taken) > copyLease/5 {
		c.taken = time.Now()
		var err error
		if c.held, err = c.lease.Take(ctx); err != nil {
			return err
		}
	}
	if !c.held {
		return nil
	}
	if c.forgets {
		if err := c.forget(ctx); err != nil {
			return err
		}
		c.mu.Lock()
		c.forgets, c.had = false, len(c.zones) > 0
		c.mu.Unlock()
	}
	if err := c.hear(ctx); err != nil {
		return err
	}
	for _, z := range c.pick(ctx) {
		c.under.Go(func() {
			defer func() { <-c.turnsOf(z) }()
			c.refresh(z.ctx, z)
		})
	}
	return nil
}

// turnsOf gives the turns that a zone has to have one of.
func (c *Copier) turnsOf(z *copiedZone) chan struct{} {
	if z.isFeed() {
		return c.slow
	}
	return c.turns
}

// pick gives the zones that are due, and for which there is a turn, which they have then: of each server few, so that one that does not
// answer keeps none of others waiting.
func (c *Copier) pick(ctx context.Context) (due []*copiedZone) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := map[netip.Addr]int{}
	for _, z := range c.zones {
		if z.busy {
			asked[z.first()]++
		}
	}
	for _, z := range c.zones {
		if z.busy || time.Now().Before(z.next) || z.first().IsValid() && asked[z.first()] >= mostOfServer {
			continue
		}
		select {
		case c.turnsOf(z) <- struct{}{}:
		default: // as many as may be are under way
			continue
		}
		if z.ctx == nil {
			z.ctx, z.leave = context.WithCancel(ctx) //nolint:gosec // plan ends it
		}
		z.busy, z.again = true, false
		asked[z.first()]++
		due = append(due, z)
	}
	return due
}

// plan finds the zones that are copied, when something has changed that says which.
func (c *Copier) plan(ctx context.Context) error {
	if known, ok := c.planned.Now(struct{}{}); known && ok && time.Since(c.looked) < copyPlan {
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
			c.log.Error("the zones of a configuration that are copied cannot be found", "configuration", id, "error", err)
			c.mu.Lock()
			for name, z := range c.zones { // those that were go on
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
		if before.leave != nil {
			before.leave()
		}
	}
	c.zones, c.looked, c.forgets, c.had = found, time.Now(), true, c.had || len(c.zones)+len(found) > 0
	return nil
}

// planOf adds the zones of a configuration that are copied.
func (c *Copier) planOf(tx *store.Tx, configuration int64, found map[string]*copiedZone) (err error) {
	defer caught(&err)
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

// forget deletes what is kept of zones that are not copied any more: should they be once more, nobody knows what they hold.
func (c *Copier) forget(ctx context.Context) error {
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

// isForeignServer finds the servers that are run by others.
var isForeignServer = store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"profile"}}, Op: "eq",
	Value: serverconfig.IsOtherServer}

// isPolicyOfOthers finds the response policy zones whose names come from elsewhere.
var isPolicyOfOthers = store.All{
	store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: "ResponsePolicyZone"},
	store.Any{typeOfPolicy(dns.FeedPolicy), typeOfPolicy(dns.ExternalPolicy)}}

func typeOfPolicy(kind string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"responsePolicyZoneType"}}, Op: "eq", Value: kind}
}

// isCopied reports whether a zone is copied from others: they alone write it, and one of our servers answers for it, or acts upon it.
func (p *plan) isCopied(z *plannedZone) bool {
	ours := func(does func(assigned) bool) bool {
		return slices.ContainsFunc(z.serversOf(does), func(server int64) bool { return !p.foreign(server) })
	}
	if p.isPolicy(z) {
		return p.isForeign(z) && ours(func(a assigned) bool { return a.kind != serverconfig.RoleNone })
	}
	return z.row.Type == "Zone" && p.isForeign(z) && ours(assigned.answers)
}

// sourcesOf gives the addresses that a response policy zone is transferred from: those of servers of others that have a role for it.
func (p *plan) sourcesOf(z *plannedZone) (all []source) {
	for _, server := range z.serversOf(func(a assigned) bool { return a.kind != serverconfig.RoleNone }) {
		if a := z.roles[server]; p.foreign(server) && p.policies[z.row.ID].ResponsePolicyZoneType == dns.ExternalPolicy {
			all = append(all, p.sources(a.iface)...)
		}
	}
	return all
}

// primariesOf gives the addresses of the servers that write a zone: of others alone, where it is theirs.
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

// hear has those zones looked at now of which somebody has said that they have changed.
func (c *Copier) hear(ctx context.Context) error {
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
			z.next, z.again = time.Time{}, true
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
