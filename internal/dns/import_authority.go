package dns

import (
	"encoding/json"
	"fmt"
	"strings"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"

	"github.com/miekg/dns"
)

// authorityType is the option that says what the SOA of a zone says.
const authorityType = "StartOfAuthority"

// authorityOf gives the SOA among records; nil where there is none.
func authorityOf(records []dns.RR) *dns.SOA {
	for _, rr := range records {
		if soa, ok := rr.(*dns.SOA); ok {
			return soa
		}
	}
	return nil
}

// keepAuthority keeps what the SOA of a zone says that was made for an import: its times, its mail address, and its serial, behind which
// those go on that are deployed. The primary server follows from the roles.
func (i *zoneImport) keepAuthority(zone *store.Resource, soa *dns.SOA) error {
	mail := any(nil)
	if address, ok := mailAddress(soa.Mbox); ok {
		mail = address
	}
	serial := any(soa.Serial + 1)
	if soa.Serial+1 == 0 {
		serial = "auto"
	}
	err := i.makeAuthority(zone, []any{second(soa.Hdr.Ttl, 0), nil, mail, serial, second(soa.Refresh, 1), second(soa.Retry, 1),
		second(soa.Expire, 1), second(soa.Minttl, 0)})
	if p, ok := problem.As(err); ok && p.Status < 500 {
		return i.skip(soa, p.Message)
	}
	return err
}

func (i *zoneImport) makeAuthority(zone *store.Resource, parts []any) error {
	value, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	t, ok := i.c.API.Type(authorityType)
	if !ok {
		return fmt.Errorf("there is no type %s", authorityType)
	}
	o := t.New()
	if _, problems := t.Decode(o, map[string]json.RawMessage{"value": value}, true); len(problems) > 0 {
		return problems[0]
	}
	h := schema.HeadOf(o)
	h.Type, h.Parent, h.Config = authorityType, zone.ID, zone.Configuration
	if _, err = i.c.Following("value").Create(t, o); err == nil {
		i.done.Made++
	}
	return err
}

// second gives a number of seconds as the option takes it; nil, which stands for the default, outside of its bounds.
func second(n, least uint32) any {
	if n < least || n > 1<<31-1 {
		return nil
	}
	return n
}

// mailAddress reads a name that stands for a mail address (RFC 1035 section 8).
func mailAddress(name string) (address string, ok bool) {
	labels := dns.SplitDomainName(name)
	if len(labels) < 2 {
		return "", false
	}
	return strings.ReplaceAll(labels[0], `\.`, ".") + "@" + strings.Join(labels[1:], "."), true
}

// FollowAuthority keeps what the SOA of a zone says that is followed, where nothing is said of it here yet: who goes on with the zone goes
// on with its times.
func FollowAuthority(c *resource.Change, zone *store.Resource, soa *dns.SOA) error {
	f, err := followerOf(c.Tx)
	if err != nil {
		return err
	}
	f.follows = true
	there := false
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentOptions"),
		store.HasParent(zone.ID)}}, func(r *store.Resource) error {
		there = there || r.Type == authorityType
		return nil
	}); err != nil || there {
		return err
	}
	i := &zoneImport{c: c, zone: zone, done: &ImportedZone{}}
	return i.keepAuthority(zone, soa)
}
