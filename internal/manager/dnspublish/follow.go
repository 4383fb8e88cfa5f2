package dnspublish

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns/transfer"
)

// Intervals and limits for zones of views that follow a server. The time between two checks of a zone is followInterval plus followShare
// for each zone, so that the manager sends at most one hundred queries per second.
const (
	followInterval = 5 * time.Second
	followShare    = 10 * time.Millisecond
	// followRest is the minimum pause after a check, as a multiple of its duration: it limits the load of a large zone that changes all the
	// time.
	followRest = 10
	// followBatch is the number of names that one transaction changes.
	followBatch = 200
	// followRejectedRetry is the time until rejected names are tried again, because the obstacle may be gone.
	followRejectedRetry = time.Minute
	// followFullInterval is the time until the whole zone is compared even if its serial number is unchanged: networks may have been
	// created for its addresses.
	followFullInterval = time.Hour
	// maxFollowRetry is the maximum time between two checks of a zone that cannot be queried.
	maxFollowRetry = 10 * time.Minute
	// maxReportedRejects is the number of rejected names that an event lists.
	maxReportedRejects = 5
)

// followedZone is a zone of a view that follows a server: its records are kept equal to those on the server.
type followedZone struct {
	// zone is the id of the zone; server is the name of the server.
	zone   int64
	server string
	// serverID is the id of the server. below are the names of the zones below it in the view, whose records it does not contain.
	serverID int64
	below    string
	// version is the version of the view. Any change of the view requires a comparison of the whole zone.
	version int64
	// serial is the serial number of the last copy; seen reports whether there was one.
	serial uint32
	seen   bool
	// lastRejected are the rejected records that the last event reported. It is kept if the zone is followed with other settings.
	lastRejected *lastReport
	// fullCheckAt is the time when the whole zone is compared even if its serial number is unchanged.
	fullCheckAt time.Time
	// failures is the number of consecutive failed queries.
	failures int
}

// lastReport is the text of the last event. mu guards text.
type lastReport struct {
	mu   sync.Mutex
	text string
}

// equals reports whether both follow the same zone of the same server with the same settings.
func (f *followedZone) equals(o *followedZone) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.zone == o.zone && f.server == o.server && f.serverID == o.serverID && f.below == o.below && f.version == o.version
}

// remember copies the last report of the same zone and server from its previous settings.
func (f *followedZone) remember(before *followedZone) {
	if before != nil && before.zone == f.zone && before.serverID == f.serverID {
		f.lastRejected = before.lastRejected
	}
}

// followed adds the zones of views that follow a server.
func (p *plan) followed(found map[string]*copiedZone) error {
	for _, view := range p.views {
		server := view.Ref("followedServer")
		if server == 0 {
			continue
		}
		var at []source
		for _, i := range slices.Sorted(maps.Keys(p.interfaces)) {
			if p.interfaces[i].server == server {
				at = append(at, p.sources(i)...)
			}
		}
		links, err := p.tx.Referring(view.ID)
		if err != nil {
			return err
		}
		var zones []*store.Resource
		below := map[int64]string{}
		for _, l := range links {
			if l.Field != "view" {
				continue
			}
			row, err := p.tx.Get(l.Target)
			if err != nil {
				return err
			}
			if row.Type == "Zone" {
				zones = append(zones, row)
				below[row.Parent] += row.Key + " "
			}
		}
		for _, row := range zones {
			z := &plannedZone{row: row}
			found[fmt.Sprintf("follow/%d", row.ID)] = &copiedZone{configuration: p.configuration, name: z.fqdn(), primaries: at,
				follows: &followedZone{lastRejected: &lastReport{}, zone: row.ID, server: p.heads[server].Name, serverID: server, below: below[row.ID],
					version: view.Version}}
		}
	}
	return nil
}

// followEvery returns the time between two checks of a followed zone.
func (c *Copier) followEvery() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return followInterval + time.Duration(len(c.zones))*followShare
}

// follow checks a zone. If its serial number has changed, it copies the records of the server.
func (c *Copier) follow(ctx context.Context, z *copiedZone) (soa *wire.SOA, what string, err error) {
	f := z.follows
	if len(z.primaries) == 0 {
		return nil, "failed", fmt.Errorf("server %s has no addresses: set the addresses of its interfaces", f.server)
	}
	for _, at := range z.primaries {
		server := at.String()
		if soa, err = at.authority(ctx, z.name); err != nil {
			continue
		}
		if f.seen && soa.Serial == f.serial && time.Now().Before(f.fullCheckAt) {
			return soa, "current", nil
		}
		var records []wire.RR
		if records, err = transfer.CopyZone(ctx, server, z.name, at.key); err != nil {
			continue
		}
		first, ok := records[0].(*wire.SOA)
		if !ok || wire.CanonicalName(first.Hdr.Name) != z.name {
			err = fmt.Errorf("%s does not start the zone with its SOA", server)
			continue
		}
		if err = c.applyRecords(ctx, z, at.Addr, records, first); err != nil {
			return soa, "failed", err
		}
		f.serial, f.seen = first.Serial, true
		return first, "copied", nil
	}
	return nil, "failed", err
}

// applyRecords makes the records of a zone equal to those received.
func (c *Copier) applyRecords(ctx context.Context, z *copiedZone, from netip.Addr, records []wire.RR, soa *wire.SOA) error {
	var names map[string][]wire.RR
	gone := false
	if err := c.api.Store.View(ctx, func(tx *store.Tx) error {
		zone, err := tx.Get(z.follows.zone)
		if gone = store.IsNotFound(err); gone {
			return nil
		}
		if err == nil {
			names, err = transfer.Different(tx, c.api, zone, records)
		}
		return err
	}); err != nil || gone {
		return err
	}
	var left []string
	refused := 0
	for part := range slices.Chunk(transfer.CreationOrder(names), followBatch) {
		not, n, err := c.applyNames(ctx, z, from, names, part)
		if err != nil {
			return err
		}
		left, refused = append(left, not...), refused+n
	}
	if err := c.applyAuthority(ctx, z, from, soa); err != nil {
		return err
	}
	z.follows.fullCheckAt = time.Now().Add(followFullInterval)
	if refused > 0 {
		z.follows.fullCheckAt = time.Now().Add(followRejectedRetry)
	}
	return c.reportRejected(ctx, z, left)
}

// author returns the author of the changes for the history.
func (f *followedZone) author(from netip.Addr) store.Author {
	return store.Author{Name: "server " + f.server, Comment: "followed from " + from.String()}
}

// applyAuthority stores the times and the serial number of the SOA. If the zone is served from here later, its serial numbers continue
// after it.
func (c *Copier) applyAuthority(ctx context.Context, z *copiedZone, from netip.Addr, soa *wire.SOA) error {
	return c.lease.UpdateIn(ctx, store.ConfigurationScope(z.configuration, false), z.follows.author(from), func(tx *store.Tx) error {
		zone, err := stillFollowed(tx, z.follows)
		if err != nil || zone == nil {
			return err
		}
		tx.Describe("RECONCILE_ZONE", "Followed zone "+zone.Key)
		if err := transfer.FollowAuthority(&resource.Change{Tx: tx, API: c.api, Extra: map[string]string{}}, zone, soa); err != nil {
			return err
		}
		return continueSerial(tx, zoneID(zone.Ref("view"), zone.Key), z.configuration, soa.Serial)
	})
}

// applyNames makes the records of some names equal to those received. If they cannot be changed together, each name is changed separately.
// It returns the rejected records with reasons, and the number of rejected names.
func (c *Copier) applyNames(ctx context.Context, z *copiedZone, from netip.Addr, names map[string][]wire.RR, part []string,
) (left []string, refused int, err error) {
	some := make(map[string][]wire.RR, len(part))
	for _, name := range part {
		some[name] = names[name]
	}
	err = c.lease.UpdateIn(ctx, store.ConfigurationScope(z.configuration, false), z.follows.author(from), func(tx *store.Tx) error {
		left = nil
		zone, err := stillFollowed(tx, z.follows)
		if err != nil || zone == nil {
			return err
		}
		tx.Describe("RECONCILE_ZONE", "Followed zone "+zone.Key)
		left, err = transfer.Follow(&resource.Change{Tx: tx, API: c.api, Extra: map[string]string{}}, zone, some)
		return err
	})
	if err == nil {
		return left, 0, nil
	}
	if code, why := transfer.CodeOf(err); code == wire.RcodeServerFailure {
		return nil, 0, err
	} else if len(part) == 1 {
		return []string{part[0] + ": " + why}, 1, nil
	}
	left = nil
	for _, name := range part {
		not, n, err := c.applyNames(ctx, z, from, names, []string{name})
		if err != nil {
			return nil, 0, err
		}
		left, refused = append(left, not...), refused+n
	}
	return left, refused, nil
}

// stillFollowed returns a followed zone; nil if it is not followed any more.
func stillFollowed(tx *store.Tx, f *followedZone) (*store.Resource, error) {
	zone, err := tx.Get(f.zone)
	if store.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	view, err := tx.Get(zone.Ref("view"))
	if err != nil || view.Ref("followedServer") != f.serverID {
		return nil, err
	}
	return zone, nil
}

// reportRejected adds an event for the rejected records of a followed zone, if they differ from the last report.
func (c *Copier) reportRejected(ctx context.Context, z *copiedZone, left []string) error {
	slices.Sort(left)
	left = slices.Compact(left)
	text := strings.Join(left[:min(len(left), maxReportedRejects)], "; ")
	if n := len(left) - maxReportedRejects; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	last := z.follows.lastRejected
	last.mu.Lock()
	defer last.mu.Unlock()
	isReported := text == "" || text == last.text
	if err := c.addFollowEvent(ctx, z, isReported, "WARNING", "it is only partly imported: "+text); err != nil {
		return err
	}
	last.text = text
	return nil
}

// addFollowEvent adds an event about a followed zone, unless isReported is true.
func (c *Copier) addFollowEvent(ctx context.Context, z *copiedZone, isReported bool, kind, text string) error {
	if isReported {
		return nil
	}
	return c.lease.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error { return z.addEvent(tx, kind, text) })
}
