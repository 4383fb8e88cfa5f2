package dns

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/ipam"
	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"

	"github.com/miekg/dns"
)

// ImportedZone tells what an import made.
type ImportedZone struct {
	Zone    string
	Made    int
	Skipped []string // records that were left out, with the reason
}

// ImportZone makes the zone and its records in the view: all of them, in one transaction, or nothing.
// Addresses that lie in no network of the configuration become GenericRecords. Targets that are not in
// the view become external hosts.
func ImportZone(ctx context.Context, a *resource.API, configuration, view, zone string, records []dns.RR) (done ImportedZone, err error) {
	within, err := ipam.ConfigurationID(ctx, a, configuration)
	if err != nil {
		return done, err
	}
	err = a.Store.UpdateIn(ctx, store.Within(within, false), store.Author{Name: "command line", Comment: "import"}, func(tx *store.Tx) error {
		done = ImportedZone{Zone: strings.TrimSuffix(zone, ".")}
		tx.Describe("IMPORT_ZONE", "Imported zone "+done.Zone)
		v, err := findView(tx, configuration, view)
		if err != nil {
			return err
		}
		i := &zoneImport{c: &resource.Change{Tx: tx, API: a, Extra: map[string]string{}}, view: v, done: &done}
		return i.run(zone, records)
	})
	return done, err
}

// zoneImport is one import.
type zoneImport struct {
	c    *resource.Change
	view *store.Resource
	zone *store.Resource
	done *ImportedZone
}

func (i *zoneImport) run(zone string, records []dns.RR) (err error) {
	if i.zone, err = i.makeZone(zone); err != nil {
		return err
	}
	// Hosts first: the others lead to them. Then data, then what links, aliases last of all, since an
	// alias may stand for any of them; an alias of an alias waits for the other one.
	var hosts, plain, links, aliases []dns.RR
	seen := map[string]bool{} // a transfer ends with the SOA again, and files hold the same line twice
	for _, rr := range records {
		if key := strings.ToLower(rr.String()); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		if !dns.IsSubDomain(zone, dns.CanonicalName(rr.Header().Name)) {
			i.skip(rr, "it lies outside of the zone")
			continue
		}
		switch rr.(type) {
		case *dns.SOA:
		case *dns.A, *dns.AAAA:
			hosts = append(hosts, rr)
		case *dns.MX, *dns.SRV:
			links = append(links, rr)
		case *dns.CNAME:
			aliases = append(aliases, rr)
		default:
			plain = append(plain, rr)
		}
	}
	if err := i.makeHosts(hosts); err != nil {
		return err
	}
	for _, rr := range slices.Concat(plain, links) {
		if err := i.makeOne(rr); err != nil {
			return err
		}
	}
	return i.makeAliases(aliases)
}

func (i *zoneImport) skip(rr dns.RR, why string) {
	i.done.Skipped = append(i.done.Skipped, fmt.Sprintf("%s %s: %s", rr.Header().Name, dns.TypeToString[rr.Header().Rrtype], why))
}

// makeZone finds the zone, or makes it with the ones that are missing above it.
func (i *zoneImport) makeZone(name string) (*store.Resource, error) {
	found, err := zoneNamed(i.c.Tx, i.view, name)
	if err != nil || found != nil {
		return found, err
	}
	t, _ := i.c.API.Type("Zone")
	z := &Zone{AbsoluteName: strings.TrimSuffix(name, "."), DeploymentEnabled: true}
	z.Type, z.Parent, z.Config = "Zone", i.view.ID, i.view.Configuration
	i.done.Made++
	return i.c.Following("absoluteName").Create(t, z)
}

// create makes a record.
func (i *zoneImport) create(rr dns.RR, o schema.Object, ttl uint32) error {
	h := o.(comparableRecord).record()
	t, _ := i.c.API.Type(h.Type)
	relative, _ := naming.Relative(strings.TrimSuffix(rr.Header().Name, "."), i.zone.Key)
	seconds := int64(ttl)
	h.Name, h.Parent, h.Config, h.TTL = relative, i.zone.ID, i.zone.Configuration, &seconds
	if ttl > 1<<31-1 {
		h.TTL = nil
	}
	if _, err := i.c.Following("name", "addresses", "linkedRecord").Create(t, o); err != nil {
		if p, ok := problem.As(err); ok {
			return problem.New(p.Status, p.Code, "%s %s: %s", rr.Header().Name, dns.TypeToString[rr.Header().Rrtype], p.Message)
		}
		return err
	}
	i.done.Made++
	return nil
}

// makeHosts makes a host record of all addresses of a name.
func (i *zoneImport) makeHosts(records []dns.RR) error {
	byName := map[string][]dns.RR{}
	var order []string
	for _, rr := range records {
		name := dns.CanonicalName(rr.Header().Name)
		if byName[name] == nil {
			order = append(order, name)
		}
		byName[name] = append(byName[name], rr)
	}
	for _, name := range order {
		host := &HostRecord{ReverseRecord: true}
		host.Type = "HostRecord"
		host.Addresses.Given = true
		ttl := byName[name][0].Header().Ttl
		for _, rr := range byName[name] {
			ttl = min(ttl, rr.Header().Ttl)
			var addr netip.Addr
			switch x := rr.(type) {
			case *dns.A:
				addr, _ = netip.AddrFromSlice(x.A.To4())
			case *dns.AAAA:
				addr, _ = netip.AddrFromSlice(x.AAAA.To16())
			}
			network, err := ipam.NetworkOf(i.c.Tx, i.zone.Configuration, addr)
			label := strings.TrimSuffix(name, ".")
			if err == nil && ipam.Usable(network).Has(addr) && naming.Check(label, naming.HostName) == nil {
				host.Addresses.Items = append(host.Addresses.Items, schema.RefItem{Text: map[string]string{"address": addr.String()}})
				continue
			}
			if err != nil && !store.IsNotFound(err) {
				return err
			}
			if err := i.makeGeneric(rr); err != nil {
				return err
			}
		}
		if len(host.Addresses.Items) > 0 {
			if err := i.create(byName[name][0], host, ttl); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeGeneric makes a record of the type's own data.
func (i *zoneImport) makeGeneric(rr dns.RR) error {
	kind := dns.TypeToString[rr.Header().Rrtype]
	t, _ := i.c.API.Type("GenericRecord")
	if f, ok := t.Field("recordType"); !ok || !slices.Contains(f.Enum, kind) {
		i.skip(rr, "records of this type are not kept")
		return nil
	}
	o := &GenericRecord{RecordType: kind, Rdata: strings.TrimPrefix(rr.String(), rr.Header().String())}
	o.Type = "GenericRecord"
	return i.create(rr, o, rr.Header().Ttl)
}

func (i *zoneImport) makeOne(rr dns.RR) error {
	ttl := rr.Header().Ttl
	switch x := rr.(type) {
	case *dns.TXT:
		o := &TXTRecord{}
		for _, part := range x.Txt {
			o.Text += unescape(part)
		}
		o.Type = "TXTRecord"
		return i.create(rr, o, ttl)
	case *dns.HINFO:
		o := &HINFORecord{OS: unescape(x.Os), CPU: unescape(x.Cpu)}
		o.Type = "HINFORecord"
		return i.create(rr, o, ttl)
	case *dns.NAPTR:
		o := &NAPTRRecord{Order: int64(x.Order), Preference: int64(x.Preference), Flags: unescape(x.Flags), Service: unescape(x.Service),
			RegularExpression: unescape(x.Regexp), Replacement: strings.TrimSuffix(x.Replacement, ".")}
		o.Type = "NAPTRRecord"
		return i.create(rr, o, ttl)
	case *dns.MX:
		link, err := i.target(x.Mx)
		if err != nil {
			return err
		}
		o := &MXRecord{LinkedRecord: link, Priority: int64(x.Preference)}
		o.Type = "MXRecord"
		return i.create(rr, o, ttl)
	case *dns.SRV:
		link, err := i.target(x.Target)
		if err != nil {
			return err
		}
		o := &SRVRecord{LinkedRecord: link, Priority: int64(x.Priority), Weight: int64(x.Weight), Port: int64(x.Port)}
		o.Type = "SRVRecord"
		return i.create(rr, o, ttl)
	}
	return i.makeGeneric(rr)
}

// makeAliases makes aliases, those first whose targets are no alias that is still to be made.
func (i *zoneImport) makeAliases(records []dns.RR) error {
	waiting := map[string]bool{}
	for _, rr := range records {
		waiting[dns.CanonicalName(rr.Header().Name)] = true
	}
	for len(records) > 0 {
		var later []dns.RR
		for _, rr := range records {
			alias, ok := rr.(*dns.CNAME)
			if !ok {
				continue
			}
			if waiting[dns.CanonicalName(alias.Target)] {
				later = append(later, rr)
				continue
			}
			link, err := i.target(alias.Target)
			if err != nil {
				return err
			}
			o := &AliasRecord{LinkedRecord: link}
			o.Type = "AliasRecord"
			if err := i.create(rr, o, rr.Header().Ttl); err != nil {
				return err
			}
			delete(waiting, dns.CanonicalName(rr.Header().Name))
		}
		if len(later) == len(records) {
			for _, rr := range later {
				i.skip(rr, "it leads to itself")
			}
			return nil
		}
		records = later
	}
	return nil
}

// target finds the record that a name leads to, or makes it an external host.
func (i *zoneImport) target(name string) (schema.Ref, error) {
	same, err := sameName(i.c.Tx, i.zone.Configuration, i.view.ID, "resourceRecords", naming.Clean(name))
	if err != nil {
		return schema.Ref{}, err
	}
	for _, r := range same {
		if r.Type == "HostRecord" || r.Type == "AliasRecord" || r.Type == "GenericRecord" || r.Type == "ExternalHostRecord" {
			return schema.Ref{ID: r.ID}, nil
		}
	}
	return externalHost(i.c, i.view, naming.Clean(name))
}

// externalHost finds or makes the record of an external host in a view, and the zone for it.
func externalHost(c *resource.Change, view *store.Resource, name string) (schema.Ref, error) {
	zone, err := externalHosts(c.Tx, view.ID)
	if err != nil {
		return schema.Ref{}, err
	}
	n := c.FollowingAsked("name")
	if zone == nil {
		z := &ExternalHostsZone{}
		z.Type, z.Parent, z.Config = "ExternalHostsZone", view.ID, view.Configuration
		t, _ := c.API.Type(z.Type)
		if zone, err = n.Create(t, z); err != nil {
			return schema.Ref{}, err
		}
	}
	found, err := c.Tx.ByKey(view.Configuration, naming.Key(name))
	if err != nil {
		return schema.Ref{}, err
	}
	for _, r := range found {
		if r.Parent == zone.ID {
			return schema.Ref{ID: r.ID}, nil
		}
	}
	h := &ExternalHostRecord{}
	h.Type, h.Name, h.Parent, h.Config = "ExternalHostRecord", name, zone.ID, view.Configuration
	t, _ := c.API.Type(h.Type)
	row, err := n.Create(t, h)
	if err != nil {
		return schema.Ref{}, err
	}
	return schema.Ref{ID: row.ID}, nil
}
