package externaldns

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"portolan/client"
)

// zone is a zone that external-dns may manage.
type zone struct {
	id   int64
	name string
}

// record is an existing record. id is 0 for records that external-dns did not create: they are listed but never deleted.
type record struct {
	id                 int64
	name, kind, target string
	ttl                int64
}

// zones returns the zones that can contain managed names, deepest first.
func (p *Provider) zones(ctx context.Context) (all []zone, err error) {
	q := client.Query{Filter: fmt.Sprintf("type:'Zone' and view.id:%d", p.View), Fields: "id,absoluteName", Limit: 1000}
	err = p.Client.All(ctx, "zones", q,
		func(text json.RawMessage) error {
			var one struct {
				ID           int64
				AbsoluteName string
			}
			if err := json.Unmarshal(text, &one); err != nil {
				return err
			}
			name := cleanName(one.AbsoluteName)
			if p.isManaged(name) || slices.ContainsFunc(p.Domains, func(d string) bool { return isWithin(cleanName(d), name) }) {
				all = append(all, zone{one.ID, name})
			}
			return nil
		})
	slices.SortFunc(all, func(a, b zone) int { return strings.Count(b.name, ".") - strings.Count(a.name, ".") })
	return all, err
}

// isManaged reports whether external-dns may manage a name.
func (p *Provider) isManaged(name string) bool {
	return len(p.Domains) == 0 || slices.ContainsFunc(p.Domains, func(d string) bool { return isWithin(cleanName(name), cleanName(d)) })
}

// isWithin reports whether a name equals another name or is below it.
func isWithin(name, above string) bool { return name == above || strings.HasSuffix(name, "."+above) }

// zoneOf returns the deepest zone that contains a name, or nil.
func zoneOf(zones []zone, name string) *zone {
	for i := range zones {
		if isWithin(cleanName(name), zones[i].name) {
			return &zones[i]
		}
	}
	return nil
}

// shown is a record in the format of the API.
type shown struct {
	ID           int64
	Type         string
	AbsoluteName string
	Comment      string
	TTL          *int64
	Text         string
	RecordType   string
	Rdata        string
	LinkedRecord struct{ AbsoluteName string }
	Embedded     struct {
		Addresses []struct{ Address string }
	} `json:"_embedded"`
}

// read returns the records of supported types in all managed zones.
func (p *Provider) read(ctx context.Context) (all []record, err error) {
	zones, err := p.zones(ctx)
	if err != nil {
		return nil, err
	}
	for _, z := range zones {
		if err := p.Client.All(ctx, "zones/"+strconv.FormatInt(z.id, 10)+"/resourceRecords", client.Query{Limit: 1000,
			Fields: "embed(addresses)"}, func(text json.RawMessage) error {
			var one shown
			err := json.Unmarshal(text, &one)
			all = append(all, one.records()...)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(r record) bool { return !slices.Contains(kinds, r.kind) || !p.isManaged(r.name) }), nil
}

// records returns the DNS records of an API resource.
func (s *shown) records() (all []record) {
	one := record{id: s.ID, name: cleanName(s.AbsoluteName)}
	if s.Comment != comment {
		one.id = 0
	}
	if s.TTL != nil {
		one.ttl = *s.TTL
	}
	switch s.Type {
	case "GenericRecord":
		one.kind, one.target = s.RecordType, s.Rdata
	case "TXTRecord":
		one.kind, one.target = "TXT", `"`+s.Text+`"`
	case "AliasRecord":
		one.kind, one.target = "CNAME", cleanName(s.LinkedRecord.AbsoluteName)
	case "HostRecord":
		for _, a := range s.Embedded.Addresses {
			if one.kind, one.target = "A", a.Address; strings.Contains(a.Address, ":") {
				one.kind = "AAAA"
			}
			all = append(all, one)
		}
		return all
	default:
		return nil
	}
	return []record{one}
}
