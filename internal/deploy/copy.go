package deploy

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"portolan/internal/dns"
	"portolan/internal/event"
	"portolan/internal/resource"
	"portolan/internal/store"
	"portolan/internal/zonedata"

	wire "github.com/miekg/dns"
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
	firstRetry = 10 * time.Second
	mostCopies = 8
)

// Copier copies zones whose primary servers are run by others, for the servers that have a role for them: of all managers of a database one
// at a time (RFC 1034 section 4.3.5, RFC 5936).
type Copier struct {
	api    *resource.API
	points Points
	log    *slog.Logger
	lease  *store.Lease
	// Copied is told of each look at a zone, by what came of it: copied, current or failed.
	Copied  func(what string)
	planned *store.Cache[struct{}, bool]
	told    *store.Cache[struct{}, bool]
	// What follows is Run's own: when the lease was last taken and whether it is held, when the zones were last looked up, and the zones.
	taken, looked time.Time
	held          bool
	zones         map[string]*copiedZone
}

// copiedZone is a zone that is copied.
type copiedZone struct {
	id            string
	configuration int64
	name          string
	primaries     []netip.Addr
	// next is when it is looked at again; wrong is what was wrong the last time, which was said.
	next  time.Time
	wrong string
}

// NewCopier makes what copies zones. Run runs it.
func NewCopier(a *resource.API, points Points, log *slog.Logger) *Copier {
	return &Copier{api: a, points: points, log: log, lease: a.Store.NewLease("dns_copies", copyLease), Copied: func(string) {},
		planned: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{"zones", "views", "deploymentRoles", "interfaces",
			"servers"}}),
		told:  store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{copiesTopic}}),
		zones: map[string]*copiedZone{}}
}

// Run copies until ctx ends.
func (c *Copier) Run(ctx context.Context) {
	store.Work(ctx, copyLook, c.log, "zones that are copied", c.look, c.lease)
}

// look copies the zones that are due.
func (c *Copier) look(ctx context.Context) error {
	if err := c.plan(ctx); err != nil {
		return err
	}
	if len(c.zones) == 0 {
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
	if err := c.hear(ctx); err != nil {
		return err
	}
	var due []*copiedZone
	for _, z := range c.zones {
		if !time.Now().Before(z.next) {
			due = append(due, z)
		}
	}
	if len(due) == 0 {
		return nil
	}
	slices.SortFunc(due, func(a, b *copiedZone) int { return a.next.Compare(b.next) })
	due = due[:min(len(due), mostCopies)]
	defer c.lease.Keep(ctx, c.log)()
	var all sync.WaitGroup
	for _, z := range due {
		all.Go(func() { c.refresh(ctx, z) })
	}
	all.Wait()
	return nil
}

// plan finds the zones that are copied, when something has changed that says which.
func (c *Copier) plan(ctx context.Context) error {
	if known, ok := c.planned.Now(struct{}{}); known && ok && time.Since(c.looked) < copyPlan {
		return nil
	}
	found := map[string]*copiedZone{}
	err := c.api.Store.View(ctx, func(tx *store.Tx) error {
		clear(found)
		c.planned.Put(tx, struct{}{}, true)
		var configurations []int64
		if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("servers"), isForeignServer}},
			func(r *store.Resource) error {
				configurations = append(configurations, r.Configuration)
				return nil
			}); err != nil {
			return err
		}
		slices.Sort(configurations)
		for _, id := range slices.Compact(configurations) {
			p, err := newPlan(tx, c.api, id)
			if err != nil {
				return err
			}
			for _, z := range p.zones {
				if p.isCopied(z) {
					found[z.id] = &copiedZone{id: z.id, configuration: id, name: z.fqdn(), primaries: p.primariesOf(z)}
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, z := range found {
		if before := c.zones[id]; before != nil && slices.Equal(before.primaries, z.primaries) {
			found[id] = before
		}
	}
	c.zones, c.looked = found, time.Now()
	return nil
}

// isForeignServer finds the servers that are run by others.
var isForeignServer = store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"profile"}}, Op: "eq", Value: otherServer}

// isCopied reports whether a zone is copied from servers of others: they alone write it, and one of ours answers for it.
func (p *plan) isCopied(z *plannedZone) bool {
	return z.row.Type == "Zone" && p.isForeign(z) && slices.ContainsFunc(z.serversOf(assigned.answers), func(server int64) bool {
		return !p.foreign(server)
	})
}

// primariesOf gives the addresses of the servers that write a zone.
func (p *plan) primariesOf(z *plannedZone) (all []netip.Addr) {
	for _, server := range z.serversOf(assigned.writes) {
		all = append(all, p.interfaces[z.roles[server].iface].addresses...)
	}
	return all
}

// hear has those zones looked at now of which somebody has said that they have changed.
func (c *Copier) hear(ctx context.Context) error {
	if quiet, ok := c.told.Now(struct{}{}); quiet && ok {
		return nil
	}
	var told []string
	if err := c.api.Store.View(ctx, func(tx *store.Tx) error {
		told = nil
		if err := tx.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			told = append(told, id)
			return err
		}, "SELECT zone FROM dns_copy WHERE told = 1"); err != nil {
			return err
		}
		if len(told) == 0 {
			c.told.Put(tx, struct{}{}, true)
		}
		return nil
	}); err != nil || len(told) == 0 {
		return err
	}
	for _, id := range told {
		if z := c.zones[id]; z != nil {
			z.next = time.Time{}
		}
	}
	return c.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		tx.Touch(copiesTopic)
		return tx.Write("UPDATE dns_copy SET told = 0 WHERE told = 1")
	})
}

// refresh looks at a zone, copies it where it has changed, and says when it is looked at again.
func (c *Copier) refresh(ctx context.Context, z *copiedZone) {
	soa, what, err := c.copy(ctx, z)
	now := time.Now()
	if c.Copied(what); err == nil {
		z.next, z.wrong = now.Add(bounded(min(soa.Refresh, soa.Expire))), ""
		return
	}
	if ctx.Err() != nil {
		return
	}
	z.next = now.Add(firstRetry)
	if soa != nil {
		z.next = now.Add(bounded(soa.Retry))
	}
	if text := err.Error(); z.wrong != text {
		z.wrong = text
		c.log.Error("a zone could not be copied", "zone", z.name, "error", err)
	}
	if err := c.expire(ctx, z, soa, err); err != nil {
		c.log.Error("noting that a zone could not be copied", "zone", z.name, "error", err)
	}
}

func bounded(seconds uint32) time.Duration {
	return min(max(time.Duration(seconds)*time.Second, leastTimer), mostTimer)
}

// copy looks at a zone, and copies it where its serial number is another one. soa is the one that is served, or that came; nil where none
// is known.
func (c *Copier) copy(ctx context.Context, z *copiedZone) (soa *wire.SOA, what string, err error) {
	before, there, entries, err := c.deployed(ctx, z)
	if err != nil {
		return nil, "failed", err
	}
	soa = soaIn(entries)
	if len(z.primaries) == 0 {
		return soa, "failed", errors.New("its primary servers have no addresses: set those of their interfaces")
	}
	for _, at := range z.primaries {
		server := netip.AddrPortFrom(at, dnsPort).String()
		var is *wire.SOA
		if is, err = dns.FetchAuthority(ctx, server, z.name); err != nil {
			continue
		}
		if there && before.refreshed > 0 && soa != nil && is.Serial == soa.Serial {
			return is, "current", c.note(ctx, z, nil)
		}
		var records []wire.RR
		if records, err = dns.CopyZone(ctx, server, z.name, nil); err != nil {
			continue
		}
		var after []zonedata.Entry
		if after, err = entriesOfRecords(inZone(records, z.name)); err != nil {
			continue
		}
		after = inOrder(after)
		got := soaIn(after)
		if got == nil {
			err = fmt.Errorf("%s gives the zone without its SOA", server)
			continue
		}
		p := &publication{zone: &plannedZone{id: z.id, row: &store.Resource{Configuration: z.configuration}}, before: before.deployedZone,
			existed: there, serial: got.Serial, after: after}
		p.removed, p.added = zonedata.Diff(entries, after)
		if err = p.count(); err != nil {
			return soa, "failed", err
		}
		return got, "copied", c.note(ctx, z, p)
	}
	return soa, "failed", err
}

// inZone gives the records of a transfer that are of the zone, each once.
func inZone(records []wire.RR, name string) (all []wire.RR) {
	seen := false
	for _, rr := range records {
		soa := rr.Header().Rrtype == wire.TypeSOA
		if !wire.IsSubDomain(name, wire.CanonicalName(rr.Header().Name)) || soa && seen {
			continue
		}
		seen = seen || soa
		all = append(all, rr)
	}
	return all
}

// soaIn gives the SOA among records; nil where there is none.
func soaIn(entries []zonedata.Entry) *wire.SOA {
	for _, e := range entries {
		if rr, err := e.Record.RR(); err == nil {
			if soa, ok := rr.(*wire.SOA); ok {
				return soa
			}
		}
	}
	return nil
}

// copiedNow is what is deployed of a zone that is copied.
type copiedNow struct {
	deployedZone
	refreshed int64
}

func (c *Copier) deployed(ctx context.Context, z *copiedZone) (now copiedNow, there bool, entries []zonedata.Entry, err error) {
	err = c.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		if now.deployedZone, there, err = readDeployed(tx, z.id); err != nil {
			return err
		}
		if now.refreshed, _, err = readCopy(tx, z.id); err != nil {
			return err
		}
		entries, err = readParts(tx, z.id)
		return err
	})
	return now, there, entries, err
}

// readCopy gives when a zone was last looked at with success, in Unix milliseconds, 0 for never, and whether that is too long ago.
func readCopy(tx *store.Tx, zone string) (refreshed int64, expired bool, err error) {
	var is int64
	err = tx.QueryRow("SELECT refreshed, expired FROM dns_copy WHERE zone = ?", zone).Scan(&refreshed, &is)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return refreshed, is != 0, err
}

// note keeps that a zone was looked at with success, and its content where that has changed.
func (c *Copier) note(ctx context.Context, z *copiedZone, p *publication) error {
	return c.change(ctx, z, p, func(tx *store.Tx, before int64, expired bool) (bool, error) {
		if expired || before == 0 {
			text := "it is copied and answered for"
			if expired {
				text = "it is there again"
			}
			if err := z.tell(tx, "INFO", text); err != nil {
				return false, err
			}
		}
		return false, tx.Write("INSERT INTO dns_copy (zone, configuration, refreshed, expired, told) VALUES (?, ?, ?, 0, 0) ON CONFLICT (zone)"+
			" DO UPDATE SET refreshed = excluded.refreshed, expired = 0", z.id, z.configuration, tx.Now().UnixMilli())
	})
}

// expire has nobody answer for a zone any more that could not be looked at for too long (RFC 1035 section 3.3.13).
func (c *Copier) expire(ctx context.Context, z *copiedZone, soa *wire.SOA, why error) error {
	if soa == nil {
		return nil
	}
	return c.change(ctx, z, nil, func(tx *store.Tx, refreshed int64, expired bool) (bool, error) {
		if expired || refreshed == 0 || tx.Now().Sub(time.UnixMilli(refreshed)) < time.Duration(soa.Expire)*time.Second {
			return expired || refreshed == 0, nil
		}
		if err := z.tell(tx, "ERROR", "it has expired, and is not answered for: "+why.Error()); err != nil {
			return true, err
		}
		return true, tx.Write("UPDATE dns_copy SET expired = 1 WHERE zone = ?", z.id)
	})
}

// tell adds an event about a zone.
func (z *copiedZone) tell(tx *store.Tx, kind, text string) error {
	return event.Add(tx, event.Event{EventType: kind, Category: "DEPLOYMENT", Subcategory: dnsService, SourceName: z.name,
		Message: fmt.Sprintf("Zone %s of servers of others: %s", z.name, text)}, z.configuration)
}

// change publishes what a zone has become, and whether it is answered for: note keeps what was seen, and says whether it is void.
func (c *Copier) change(ctx context.Context, z *copiedZone, p *publication,
	note func(tx *store.Tx, refreshed int64, expired bool) (bool, error),
) error {
	var told []string
	err := c.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		told = nil
		refreshed, expired, err := readCopy(tx, z.id)
		if err != nil {
			return err
		}
		void, err := note(tx, refreshed, expired)
		if err != nil {
			return err
		}
		number, err := nextNumber(tx)
		if err != nil {
			return err
		}
		var changed []int64
		if p != nil && (!p.existed || len(p.removed)+len(p.added) > 0) {
			if changed, err = publish(tx, z.configuration, number, []*publication{p}); err != nil {
				return err
			}
		}
		if void != (expired || refreshed == 0) {
			also, err := setVoid(tx, c.api.Sealer, z.id, number, void)
			if err != nil {
				return err
			}
			changed = append(changed, also...)
		}
		slices.Sort(changed)
		for _, server := range slices.Compact(changed) {
			point, err := tellServer(tx, c.api, c.points, server)
			if err != nil {
				return err
			}
			told = append(told, point)
		}
		return nil
	})
	if err == nil {
		for _, point := range told {
			c.points.Wake(point)
		}
	}
	return err
}

// setVoid says to the servers of a zone whether they are to answer for it, and gives those that do otherwise from now on.
func setVoid(tx *store.Tx, sealer resource.Sealer, zone string, number int64, void bool) (changed []int64, err error) {
	var servers []int64
	if err := tx.Each(func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		servers = append(servers, id)
		return err
	}, "SELECT server FROM dns_served WHERE zone = ?", zone); err != nil {
		return nil, err
	}
	for _, server := range servers {
		settings, err := settingsOf(tx, sealer, server)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(settings.Zones, func(z zonedata.Zone) bool { return z.ID == zone })
		if i < 0 || settings.Zones[i].Void == void {
			continue
		}
		settings.Zones[i].Void = void
		text, err := json.Marshal(settings)
		if err != nil {
			return nil, err
		}
		if err := serveOtherwise(tx, sealer, server, number, string(text)); err != nil {
			return nil, err
		}
		changed = append(changed, server)
	}
	return changed, nil
}

// hearNotice notes that somebody has said that a zone has changed (RFC 1996).
func hearNotice(ctx context.Context, a *resource.API, u *Update) (code int, why string) {
	err := a.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		settings, _, err := servedBy(tx, a, u.ServicePoint)
		if err != nil {
			return err
		}
		for _, z := range settings.Zones {
			if z.View == u.View && z.Name == u.Zone && slices.Contains(z.Primaries, u.Client) {
				tx.Touch(copiesTopic)
				return tx.Write("UPDATE dns_copy SET told = 1 WHERE zone = ?", z.ID)
			}
		}
		return &dns.Refused{Code: wire.RcodeRefused, Why: "it is no primary server of the zone"}
	})
	if err != nil {
		code, why, _ = dns.CodeOf(err)
	}
	return code, why
}
