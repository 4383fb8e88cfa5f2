package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// authorityType is the type of the deployment option with the SOA data of a zone.
const authorityType = "StartOfAuthority"

// findSOA returns the SOA record; nil if there is none.
func findSOA(records []dns.RR) *dns.SOA {
	for _, rr := range records {
		if soa, ok := rr.(*dns.SOA); ok {
			return soa
		}
	}
	return nil
}

// importAuthority stores the SOA data of a zone that the import created: its times, mail address and serial. Deployed serials continue from
// it. The primary server is derived from the roles.
func (i *zoneImport) importAuthority(zone *store.Resource, soa *dns.SOA) error {
	err := i.createAuthority(zone, authorityParts(soa))
	if p, ok := problem.As(i.c.Concealed(err)); ok && p.Status < 500 {
		return i.skip(soa, p.Message)
	}
	return err
}

// authorityParts returns the values of the option for an SOA record: TTL, primary server, mail address, serial, refresh, retry, expire and
// minimum.
func authorityParts(soa *dns.SOA) []any {
	mail := any(nil)
	if address, ok := mailAddress(soa.Mbox); ok {
		mail = address
	}
	serial := any(soa.Serial + 1)
	if soa.Serial+1 == 0 {
		serial = "auto"
	}
	return []any{secondsOrNil(soa.Hdr.Ttl, 0), nil, mail, serial, secondsOrNil(soa.Refresh, 1), secondsOrNil(soa.Retry, 1),
		secondsOrNil(soa.Expire, 1), secondsOrNil(soa.Minttl, 0)}
}

// authorityNames are the names of these values, for messages.
var authorityNames = []string{"TTL", "primary server", "mail address", "serial", "refresh", "retry", "expire", "minimum"}

// changeAuthority updates the SOA data of an existing zone, except the serial and the primary server. A zone without its own option, such
// as an intermediate zone, gets the SOA data of the file.
func (i *zoneImport) changeAuthority(soa *dns.SOA) error {
	row, err := authorityOption(i.c.Tx, i.zone)
	if err != nil {
		return err
	}
	if row == nil {
		i.done.Changes = append(i.done.Changes, "SOA: the zone gets that of the file")
		return i.importAuthority(i.zone, soa)
	}
	var body struct {
		Value []any `json:"value"`
	}
	reader := json.NewDecoder(bytes.NewReader(row.Body))
	reader.UseNumber() // preserves the digits of numbers for the comparison
	if err := reader.Decode(&body); err != nil || len(body.Value) != len(authorityNames) {
		return err
	}
	var texts []string
	for at, part := range authorityParts(soa) {
		if name := authorityNames[at]; name == "serial" || name == "primary server" || fmt.Sprint(part) == fmt.Sprint(body.Value[at]) {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s %v -> %v", authorityNames[at], body.Value[at], part))
		body.Value[at] = part
	}
	if len(texts) == 0 {
		return nil
	}
	value, err := json.Marshal(body.Value)
	if err != nil {
		return err
	}
	t := i.c.API.TypeNamed(authorityType)
	if _, err := i.c.Following("value").Change(row, func(o schema.Object) {
		_, _ = t.Decode(o, map[string]json.RawMessage{"value": value}, false) // the write reports invalid values
	}); err != nil {
		if p, ok := problem.As(i.c.Concealed(err)); ok && p.Status < 500 {
			return i.skip(soa, p.Message)
		}
		return err
	}
	i.done.Changed++
	i.done.Changes = append(i.done.Changes, "SOA: "+strings.Join(texts, ", "))
	return nil
}

// authorityOption returns the SOA option of a zone itself; nil if there is none.
func authorityOption(tx *store.Tx, zone *store.Resource) (row *store.Resource, err error) {
	return row, tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentOptions"),
		store.HasParent(zone.ID)}}, func(r *store.Resource) error {
		if r.Type == authorityType {
			row = r
		}
		return nil
	})
}

func (i *zoneImport) createAuthority(zone *store.Resource, parts []any) error {
	value, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	t, ok := i.c.API.Type(authorityType)
	if !ok {
		return fmt.Errorf("unknown type %s", authorityType)
	}
	o := t.New()
	if _, problems := t.Decode(o, map[string]json.RawMessage{"value": value}, true); len(problems) > 0 {
		return problems[0]
	}
	h := schema.HeadOf(o)
	h.Type, h.Parent, h.Config = authorityType, zone.ID, zone.Configuration
	if _, err = i.c.Following("value").Create(t, o); err == nil {
		i.done.Created++
	}
	return err
}

// secondsOrNil returns n as a value of the option, or nil, which means the default, if n is out of range.
func secondsOrNil(n, least uint32) any {
	if n < least || n > 1<<31-1 {
		return nil
	}
	return n
}

// mailAddress converts a name to a mail address (RFC 1035 section 8).
func mailAddress(name string) (address string, ok bool) {
	labels := dns.SplitDomainName(name)
	if len(labels) < 2 {
		return "", false
	}
	return strings.ReplaceAll(labels[0], `\.`, ".") + "@" + strings.Join(labels[1:], "."), true
}

// FollowAuthority stores the SOA data of a followed zone if the zone has no SOA option yet, so that its times stay the same after following
// ends.
func FollowAuthority(c *resource.Change, zone *store.Resource, soa *dns.SOA) error {
	f, err := followerOf(c.Tx)
	if err != nil {
		return err
	}
	f.isOwn = true
	if row, err := authorityOption(c.Tx, zone); err != nil || row != nil {
		return err
	}
	i := &zoneImport{c: c, zone: zone, done: &ImportedZone{}}
	return i.importAuthority(zone, soa)
}
