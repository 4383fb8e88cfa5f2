package deploy

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"portolan/internal/dns"
	"portolan/internal/resource"
	"portolan/internal/store"

	wire "github.com/miekg/dns"
)

// How often a zone of a view that follows a server is looked at: each time, and the more where there are many, so that nobody is asked
// more than a hundred times a second.
const (
	followLook  = 5 * time.Second
	followShare = 10 * time.Millisecond
	// followNames is how many names are changed in one transaction.
	followNames = 200
	// followedLeft is how many of the names that are not kept are told.
	followedLeft = 5
)

// followedZone is a zone of a view that follows a server: its records are made those that the server has.
type followedZone struct {
	// zone is its id; server the name of the server.
	zone   int64
	server string
	// serial is that which the records are like; there is none before the first look.
	serial uint32
	seen   bool
	// left is what was not kept the last time, which was said.
	left string
}

// same reports whether both follow the same zone of the same server.
func (f *followedZone) same(o *followedZone) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.zone == o.zone && f.server == o.server
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
		for _, l := range links {
			if l.Field != "view" {
				continue
			}
			row, err := p.tx.Get(l.Target)
			if err != nil {
				return err
			}
			if row.Type == "Zone" {
				z := &plannedZone{row: row}
				found[fmt.Sprintf("follow/%d", row.ID)] = &copiedZone{configuration: p.configuration, name: z.fqdn(), primaries: at,
					follows: &followedZone{zone: row.ID, server: p.heads[server].Name}}
			}
		}
	}
	return nil
}

// followEvery is how long a zone that is followed is not looked at.
func (c *Copier) followEvery() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return followLook + time.Duration(len(c.zones))*followShare
}

// follow looks at a zone, and makes its records those that the server has, where its serial number is another one.
func (c *Copier) follow(ctx context.Context, z *copiedZone) (soa *wire.SOA, what string, err error) {
	f := z.follows
	if len(z.primaries) == 0 {
		return nil, "failed", fmt.Errorf("server %s has no addresses: set those of its interfaces", f.server)
	}
	for _, at := range z.primaries {
		server := at.String()
		if soa, err = at.authority(ctx, z.name); err != nil {
			continue
		}
		if f.seen && soa.Serial == f.serial {
			return soa, "current", nil
		}
		var records []wire.RR
		if records, err = dns.CopyZone(ctx, server, z.name, at.key); err != nil {
			continue
		}
		first, ok := records[0].(*wire.SOA)
		if !ok || wire.CanonicalName(first.Hdr.Name) != z.name {
			err = fmt.Errorf("%s does not begin the zone with its SOA", server)
			continue
		}
		if err = c.take(ctx, z, at.Addr, records); err != nil {
			return soa, "failed", err
		}
		f.serial, f.seen = first.Serial, true
		return first, "copied", nil
	}
	return nil, "failed", err
}

// take makes the records of a zone those that came.
func (c *Copier) take(ctx context.Context, z *copiedZone, from netip.Addr, records []wire.RR) error {
	var names map[string][]wire.RR
	gone := false
	if err := c.api.Store.View(ctx, func(tx *store.Tx) error {
		zone, err := tx.Get(z.follows.zone)
		if gone = store.IsNotFound(err); gone {
			return nil
		}
		if err == nil {
			names, err = dns.Different(tx, c.api, zone, records)
		}
		return err
	}); err != nil || gone {
		return err
	}
	var left []string
	for part := range slices.Chunk(dns.InOrder(names), followNames) {
		not, err := c.takeNames(ctx, z, from, names, part)
		if err != nil {
			return err
		}
		left = append(left, not...)
	}
	return c.notKept(ctx, z, left)
}

// takeNames makes the records of some names those that came, each name by itself where that cannot be done at once. It gives what is not
// kept, with the reasons.
func (c *Copier) takeNames(ctx context.Context, z *copiedZone, from netip.Addr, names map[string][]wire.RR, part []string,
) (left []string, err error) {
	some := make(map[string][]wire.RR, len(part))
	for _, name := range part {
		some[name] = names[name]
	}
	by := store.Author{Name: "server " + z.follows.server, Comment: "followed from " + from.String()}
	err = c.lease.UpdateIn(ctx, store.Within(z.configuration, false), by, func(tx *store.Tx) error {
		left = nil
		zone, err := stillFollowed(tx, z.follows)
		if err != nil || zone == nil {
			return err
		}
		tx.Describe("RECONCILE_ZONE", "Followed zone "+zone.Key)
		left, err = dns.Follow(&resource.Change{Tx: tx, API: c.api, Extra: map[string]string{}}, zone, some)
		return err
	})
	if err == nil {
		return left, nil
	}
	if code, why := dns.CodeOf(err); code == wire.RcodeServerFailure {
		return nil, err
	} else if len(part) == 1 {
		return []string{part[0] + ": " + why}, nil
	}
	left = nil
	for _, name := range part {
		not, err := c.takeNames(ctx, z, from, names, []string{name})
		if err != nil {
			return nil, err
		}
		left = append(left, not...)
	}
	return left, nil
}

// stillFollowed gives a zone that is followed; nil where it is not any more.
func stillFollowed(tx *store.Tx, f *followedZone) (*store.Resource, error) {
	zone, err := tx.Get(f.zone)
	if store.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	view, err := tx.Get(zone.Ref("view"))
	if err != nil || view.Ref("followedServer") == 0 {
		return nil, err
	}
	return zone, nil
}

// notKept tells what of a zone that is followed is not kept, once.
func (c *Copier) notKept(ctx context.Context, z *copiedZone, left []string) error {
	slices.Sort(left)
	left = slices.Compact(left)
	text := strings.Join(left[:min(len(left), followedLeft)], "; ")
	if n := len(left) - followedLeft; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	said := text == z.follows.left
	z.follows.left = text
	return c.sayOf(ctx, z, said || text == "", "WARNING", "not all of it is kept: "+text)
}

// sayOf adds an event about a zone that is followed, unless it was said.
func (c *Copier) sayOf(ctx context.Context, z *copiedZone, said bool, kind, text string) error {
	if said {
		return nil
	}
	return c.lease.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error { return z.tell(tx, kind, text) })
}
