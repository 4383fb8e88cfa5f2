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

// How often a zone of a view that follows a server is looked at: each time, and the more where there are many, so that nobody is asked
// more than a hundred times a second.
const (
	followLook  = 5 * time.Second
	followShare = 10 * time.Millisecond
	// followRest is how much longer a zone rests than looking at it took: one that is large and changes all the time takes no more than that.
	followRest = 10
	// followNames is how many names are changed in one transaction.
	followNames = 200
	// followAgain is when what was refused is tried again: what was in its way may be gone. followAnew is when all of a zone is looked at,
	// whatever its serial number is: networks may have been made for its addresses.
	followAgain = time.Minute
	followAnew  = time.Hour
	// followRetry is how long a zone is not looked at, at most, that cannot be asked for.
	followRetry = 10 * time.Minute
	// followedLeft is how many of the names that are not kept are told.
	followedLeft = 5
)

// followedZone is a zone of a view that follows a server: its records are made those that the server has.
type followedZone struct {
	// zone is its id; server the name of the server.
	zone   int64
	server string
	// serverID is the id of the server; below are the zones below it that the view has, whose names are theirs.
	serverID int64
	below    string
	// version is that of the view: whatever has changed of it, all is looked at.
	version int64
	// serial is that which the records are like; there is none before the first look.
	serial uint32
	seen   bool
	// left is what was not kept the last time, which was said: it stays when the same zone is followed otherwise. again is when all of it is
	// looked at, whatever its serial number is.
	left  *saidOf
	again time.Time
	// failures is how often it could not be asked for, one time behind the other.
	failures int
}

// saidOf is what was said last of something. mu guards text.
type saidOf struct {
	mu   sync.Mutex
	text string
}

// same reports whether both follow the same zone of the same server.
func (f *followedZone) same(o *followedZone) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.zone == o.zone && f.server == o.server && f.serverID == o.serverID && f.below == o.below && f.version == o.version
}

// remember takes over what was said of the same zone of the same server, which was followed otherwise before.
func (f *followedZone) remember(before *followedZone) {
	if before != nil && before.zone == f.zone && before.serverID == f.serverID {
		f.left = before.left
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
				follows: &followedZone{left: &saidOf{}, zone: row.ID, server: p.heads[server].Name, serverID: server, below: below[row.ID],
					version: view.Version}}
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
		if f.seen && soa.Serial == f.serial && time.Now().Before(f.again) {
			return soa, "current", nil
		}
		var records []wire.RR
		if records, err = transfer.CopyZone(ctx, server, z.name, at.key); err != nil {
			continue
		}
		first, ok := records[0].(*wire.SOA)
		if !ok || wire.CanonicalName(first.Hdr.Name) != z.name {
			err = fmt.Errorf("%s does not begin the zone with its SOA", server)
			continue
		}
		if err = c.take(ctx, z, at.Addr, records, first); err != nil {
			return soa, "failed", err
		}
		f.serial, f.seen = first.Serial, true
		return first, "copied", nil
	}
	return nil, "failed", err
}

// take makes the records of a zone those that came.
func (c *Copier) take(ctx context.Context, z *copiedZone, from netip.Addr, records []wire.RR, soa *wire.SOA) error {
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
	for part := range slices.Chunk(transfer.InOrder(names), followNames) {
		not, n, err := c.takeNames(ctx, z, from, names, part)
		if err != nil {
			return err
		}
		left, refused = append(left, not...), refused+n
	}
	if err := c.takeAuthority(ctx, z, from, soa); err != nil {
		return err
	}
	z.follows.again = time.Now().Add(followAnew)
	if refused > 0 {
		z.follows.again = time.Now().Add(followAgain)
	}
	return c.notKept(ctx, z, left)
}

// by is who changes what is followed.
func (f *followedZone) by(from netip.Addr) store.Author {
	return store.Author{Name: "server " + f.server, Comment: "followed from " + from.String()}
}

// takeAuthority keeps what the SOA says, for who goes on with the zone: its times, and its serial number, behind which those are that it
// is deployed with.
func (c *Copier) takeAuthority(ctx context.Context, z *copiedZone, from netip.Addr, soa *wire.SOA) error {
	return c.lease.UpdateIn(ctx, store.Within(z.configuration, false), z.follows.by(from), func(tx *store.Tx) error {
		zone, err := stillFollowed(tx, z.follows)
		if err != nil || zone == nil {
			return err
		}
		tx.Describe("RECONCILE_ZONE", "Followed zone "+zone.Key)
		if err := transfer.FollowAuthority(&resource.Change{Tx: tx, API: c.api, Extra: map[string]string{}}, zone, soa); err != nil {
			return err
		}
		return passSerial(tx, zoneID(zone.Ref("view"), zone.Key), z.configuration, soa.Serial)
	})
}

// takeNames makes the records of some names those that came, each name by itself where that cannot be done at once. It gives what is not
// kept, with the reasons, and how many names were refused.
func (c *Copier) takeNames(ctx context.Context, z *copiedZone, from netip.Addr, names map[string][]wire.RR, part []string,
) (left []string, refused int, err error) {
	some := make(map[string][]wire.RR, len(part))
	for _, name := range part {
		some[name] = names[name]
	}
	err = c.lease.UpdateIn(ctx, store.Within(z.configuration, false), z.follows.by(from), func(tx *store.Tx) error {
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
		not, n, err := c.takeNames(ctx, z, from, names, []string{name})
		if err != nil {
			return nil, 0, err
		}
		left, refused = append(left, not...), refused+n
	}
	return left, refused, nil
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
	if err != nil || view.Ref("followedServer") != f.serverID {
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
	last := z.follows.left
	last.mu.Lock()
	defer last.mu.Unlock()
	said := text == "" || text == last.text
	if err := c.sayOf(ctx, z, said, "WARNING", "not all of it is kept: "+text); err != nil {
		return err
	}
	last.text = text
	return nil
}

// sayOf adds an event about a zone that is followed, unless it was said.
func (c *Copier) sayOf(ctx context.Context, z *copiedZone, said bool, kind, text string) error {
	if said {
		return nil
	}
	return c.lease.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error { return z.tell(tx, kind, text) })
}
