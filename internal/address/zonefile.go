package address

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"

	"github.com/miekg/dns"
)

// DefaultTTL is the time to live, in seconds, of records that have none of their own.
const DefaultTTL = 3600

// FindZone finds a zone by the names of its configuration and view and its own; an empty view is the
// only one there is.
func FindZone(tx *store.Tx, configuration, view, name string) (*store.Resource, error) {
	_, v, err := findView(tx, configuration, view)
	if err != nil {
		return nil, err
	}
	zone, err := zoneNamed(tx, v, name)
	if err == nil && zone == nil {
		return nil, problem.NotFound("there is no zone %q in the view %s", name, v.Name)
	}
	return zone, err
}

func zoneNamed(tx *store.Tx, view *store.Resource, name string) (*store.Resource, error) {
	same, err := sameName(tx, view.Configuration, view.ID, "zones", naming.Clean(name))
	if err != nil || len(same) == 0 {
		return nil, err
	}
	return same[0], nil
}

func findView(tx *store.Tx, configuration, view string) (c, v *store.Resource, err error) {
	found, err := tx.ByName("configurations", 0, configuration)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return nil, nil, problem.NotFound("there is no configuration %q", configuration)
	}
	var views []*store.Resource
	err = tx.List(store.Query{From: store.Resources, Where: store.All{inCollection("views"),
		store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}, Op: "eq", Value: found[0].ID}}}, func(r *store.Resource) error {
		if view == "" || r.Name == view {
			views = append(views, r.Clone())
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case len(views) == 0:
		return nil, nil, problem.NotFound("there is no view %q in the configuration %s", view, configuration)
	case len(views) > 1:
		return nil, nil, problem.Invalid("view", "the configuration %s has several: name one", configuration)
	}
	return found[0], views[0], nil
}

// fqdn is a name as the wire has it: absolute, with its last dot, in A-labels.
func fqdn(name string) (string, error) {
	ascii, err := naming.ASCII(naming.Clean(name))
	if err != nil {
		return "", err
	}
	return dns.Fqdn(ascii), nil
}

// zoneReader gathers what a zone's records say.
type zoneReader struct {
	tx        *store.Tx
	api       *resource.API
	addresses map[int64][]netip.Addr // of host records, by id
	targets   map[int64]string       // of records that link to one, by id
	records   []dns.RR
	latest    int64 // the latest transaction that changed any of it
}

// ZoneData gives the data of a zone as it is served, delegations of the zones below it included. The
// serial number of its SOA is the latest transaction that changed one of its records.
func ZoneData(tx *store.Tx, api *resource.API, zone *store.Resource) (*naming.Zone, error) {
	z := &zoneReader{tx: tx, api: api, latest: zone.Version}
	if err := z.read(zone, func(dns.RR) bool { return true }); err != nil {
		return nil, err
	}
	if err := z.delegations(zone); err != nil {
		return nil, err
	}
	if err := z.reverse(zone); err != nil {
		return nil, err
	}
	apex, err := fqdn(zone.Key)
	if err != nil {
		return nil, err
	}
	server := "localhost."
	for _, rr := range z.records {
		if ns, ok := rr.(*dns.NS); ok && dns.CanonicalName(ns.Hdr.Name) == apex {
			server = ns.Ns
			break
		}
	}
	head := dns.RR_Header{Name: apex, Class: dns.ClassINET, Ttl: DefaultTTL}
	if server == "localhost." { // a zone without name servers of its own is still a zone
		ns := &dns.NS{Hdr: head, Ns: server}
		ns.Hdr.Rrtype = dns.TypeNS
		z.records = append(z.records, ns)
	}
	soa := &dns.SOA{Hdr: head, Ns: server, Mbox: "hostmaster." + strings.TrimPrefix(apex, "."), Serial: uint32(z.latest), //nolint:gosec // serial numbers go round (RFC 1982)
		Refresh: 10800, Retry: 3600, Expire: 604800, Minttl: DefaultTTL}
	soa.Hdr.Rrtype = dns.TypeSOA
	return naming.Compile(apex, append(z.records, soa))
}

// read adds the records of a zone that are wanted.
func (z *zoneReader) read(zone *store.Resource, wanted func(dns.RR) bool) error {
	z.addresses, z.targets = map[int64][]netip.Addr{}, map[int64]string{}
	if err := z.tx.Each(func(scan func(...any) error) error {
		var source int64
		var low []byte
		err := scan(&source, &low)
		z.addresses[source] = append(z.addresses[source], store.KeyAddr(low))
		return err
	}, "SELECT f.source, a.low FROM resource r JOIN reference f ON f.source = r.id AND f.field = 'addresses' JOIN resource a ON a.id = f.target"+
		" WHERE r.parent = ? AND r.collection = 'resourceRecords' ORDER BY f.source, a.low", zone.ID); err != nil {
		return fmt.Errorf("reading the addresses of a zone: %w", err)
	}
	if err := z.tx.Each(func(scan func(...any) error) error {
		var source int64
		var key string
		err := scan(&source, &key)
		z.targets[source] = key
		return err
	}, "SELECT f.source, t.key FROM resource r JOIN reference f ON f.source = r.id AND f.field = 'linkedRecord' JOIN resource t ON t.id = f.target"+
		" WHERE r.parent = ? AND r.collection = 'resourceRecords'", zone.ID); err != nil {
		return fmt.Errorf("reading the links of a zone: %w", err)
	}
	return z.tx.List(store.Query{From: store.Resources, Where: store.All{inCollection("resourceRecords"),
		store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}, Op: "eq", Value: zone.ID}}}, func(r *store.Resource) error {
		z.latest = max(z.latest, r.Version)
		rrs, err := z.of(r)
		if err != nil {
			return fmt.Errorf("%s %d, %s: %w", r.Type, r.ID, r.Key, err)
		}
		for _, rr := range rrs {
			if wanted(rr) {
				z.records = append(z.records, rr)
			}
		}
		return nil
	})
}

// delegations adds the name servers of the zones right below, and the addresses of those whose names
// lie in the zone that is delegated: without them nobody would find it.
func (z *zoneReader) delegations(zone *store.Resource) error {
	var below []*store.Resource
	if err := z.tx.List(store.Query{From: store.Resources, Where: store.All{inCollection("zones"),
		store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}, Op: "eq", Value: zone.ID}}}, func(r *store.Resource) error {
		below = append(below, r.Clone())
		return nil
	}); err != nil {
		return err
	}
	for _, child := range below {
		apex, err := fqdn(child.Key)
		if err != nil {
			return err
		}
		servers := map[string]bool{}
		sub := &zoneReader{tx: z.tx, api: z.api}
		if err := sub.read(child, func(rr dns.RR) bool { return true }); err != nil {
			return err
		}
		for _, rr := range sub.records {
			if ns, ok := rr.(*dns.NS); ok && dns.CanonicalName(ns.Hdr.Name) == apex {
				servers[dns.CanonicalName(ns.Ns)] = true
				z.records = append(z.records, rr)
			}
		}
		for _, rr := range sub.records {
			if t := rr.Header().Rrtype; (t == dns.TypeA || t == dns.TypeAAAA) && servers[dns.CanonicalName(rr.Header().Name)] {
				z.records = append(z.records, rr)
			}
		}
	}
	return nil
}

// reverse adds what leads from addresses back to the hosts of the view, where the zone is one for that.
func (z *zoneReader) reverse(zone *store.Resource) error {
	low, high, ok := naming.ReverseRange(zone.Key)
	if !ok {
		return nil
	}
	return z.tx.Each(func(scan func(...any) error) error {
		var key []byte
		var host string
		var version int64
		var wanted bool
		if err := scan(&key, &host, &version, &wanted); err != nil || !wanted {
			return err
		}
		z.latest = max(z.latest, version)
		name, err := naming.ReverseName(store.KeyAddr(key), zone.Key)
		if err != nil {
			return err
		}
		target, err := fqdn(host)
		if err != nil {
			return err
		}
		owner, err := fqdn(naming.Join(name, zone.Key))
		if err != nil {
			return err
		}
		z.records = append(z.records, &dns.PTR{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: DefaultTTL}, Ptr: target})
		return nil
	}, "SELECT a.low, h.key, h.version, json_extract(h.body, '$.reverseRecord') FROM resource a"+
		" JOIN reference f ON f.target = a.id AND f.field = 'addresses' JOIN resource h ON h.id = f.source"+
		" JOIN reference v ON v.source = h.parent AND v.field = 'view' AND v.target = ?"+
		" WHERE a.configuration = ? AND a.collection = 'addresses' AND a.low >= ? AND a.low <= ? ORDER BY a.low, h.id",
		viewOf(zone), zone.Configuration, store.AddrKey(low), store.AddrKey(high))
}

// of gives the records that a resource stands for.
func (z *zoneReader) of(r *store.Resource) ([]dns.RR, error) {
	name, err := fqdn(r.Key)
	if err != nil {
		return nil, err
	}
	o, err := z.api.Object(r)
	if err != nil {
		return nil, err
	}
	a, ok := o.(alike)
	if !ok { // an external host
		return nil, nil
	}
	ttl := uint32(DefaultTTL)
	if given := a.record().TTL; given != nil {
		ttl = uint32(*given) //nolint:gosec // the field's bounds are those of a TTL
	}
	head := func(t uint16) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: t, Class: dns.ClassINET, Ttl: ttl}
	}
	target, err := fqdn(z.targets[r.ID])
	if err != nil {
		return nil, err
	}
	switch x := o.(type) {
	case *HostRecord:
		var rrs []dns.RR
		for _, addr := range z.addresses[r.ID] {
			if addr.Is4() {
				rrs = append(rrs, &dns.A{Hdr: head(dns.TypeA), A: addr.AsSlice()})
			} else {
				rrs = append(rrs, &dns.AAAA{Hdr: head(dns.TypeAAAA), AAAA: addr.AsSlice()})
			}
		}
		return rrs, nil
	case *AliasRecord:
		return []dns.RR{&dns.CNAME{Hdr: head(dns.TypeCNAME), Target: target}}, nil
	case *MXRecord:
		return []dns.RR{&dns.MX{Hdr: head(dns.TypeMX), Preference: uint16(x.Priority), Mx: target}}, nil //nolint:gosec // within its bounds
	case *SRVRecord:
		return []dns.RR{&dns.SRV{Hdr: head(dns.TypeSRV), Priority: uint16(x.Priority), Weight: uint16(x.Weight), Port: uint16(x.Port), Target: target}}, nil //nolint:gosec // within their bounds
	case *TXTRecord:
		return []dns.RR{&dns.TXT{Hdr: head(dns.TypeTXT), Txt: chunks(x.Text)}}, nil
	case *HINFORecord:
		return []dns.RR{&dns.HINFO{Hdr: head(dns.TypeHINFO), Cpu: escape(x.CPU), Os: escape(x.OS)}}, nil
	case *NAPTRRecord:
		replacement := "."
		if x.Replacement != "" && x.Replacement != "." {
			if replacement, err = fqdn(x.Replacement); err != nil {
				return nil, err
			}
		}
		return []dns.RR{&dns.NAPTR{Hdr: head(dns.TypeNAPTR), Order: uint16(x.Order), Preference: uint16(x.Preference), Flags: escape(x.Flags), //nolint:gosec // within their bounds
			Service: escape(x.Service), Regexp: escape(x.RegularExpression), Replacement: replacement}}, nil
	case *GenericRecord:
		rr, err := dns.NewRR(fmt.Sprintf("%s %d IN %s %s", name, ttl, x.RecordType, x.Rdata))
		if err != nil {
			return nil, err
		}
		return []dns.RR{rr}, nil
	}
	return nil, nil
}

// chunks cuts text into strings of at most 255 bytes, as the DNS library writes them.
func chunks(text string) (parts []string) {
	for part := range slices.Chunk([]byte(text), 255) {
		parts = append(parts, escape(string(part)))
	}
	return parts
}

// escape writes text as the DNS library keeps it (RFC 1035 section 5.1).
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, "\\%03d", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape undoes escape.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		if i+3 < len(text) && isDigits(text[i+1:i+4]) {
			b.WriteByte((text[i+1]-'0')*100 + (text[i+2]-'0')*10 + text[i+3] - '0')
			i += 3
			continue
		}
		i++
		b.WriteByte(text[i])
	}
	return b.String()
}

func isDigits(text string) bool {
	return strings.Trim(text, "0123456789") == ""
}

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
	var within int64
	if err := a.Store.View(ctx, func(tx *store.Tx) error {
		c, _, err := findView(tx, configuration, view)
		if err == nil {
			within = c.ID
		}
		return err
	}); err != nil {
		return done, err
	}
	err = a.Store.UpdateIn(ctx, store.Within(within, false), store.Author{Comment: "import"}, func(tx *store.Tx) error {
		done = ImportedZone{Zone: strings.TrimSuffix(zone, ".")}
		tx.Describe("IMPORT_ZONE", "Imported zone "+done.Zone)
		_, v, err := findView(tx, configuration, view)
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
	n := *i.c
	n.Given = map[string]bool{"absoluteName": true}
	i.done.Made++
	return n.Create(t, z)
}

// create makes a record.
func (i *zoneImport) create(rr dns.RR, o resource.Object, ttl uint32) error {
	h := o.(alike).record()
	t, _ := i.c.API.Type(h.Type)
	relative, _ := naming.Relative(strings.TrimSuffix(rr.Header().Name, "."), i.zone.Key)
	seconds := int64(ttl)
	h.Name, h.Parent, h.Config, h.TTL = relative, i.zone.ID, i.zone.Configuration, &seconds
	if ttl > 1<<31-1 {
		h.TTL = nil
	}
	n := *i.c
	n.Given = map[string]bool{"name": true, "addresses": true, "linkedRecord": true}
	if _, err := n.Create(t, o); err != nil {
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
			network, err := i.c.Tx.NetworkOf(i.zone.Configuration, addr)
			label := strings.TrimSuffix(name, ".")
			if err == nil && usable(network).Has(addr) && naming.Check(label, naming.HostName) == nil {
				host.Addresses.Items = append(host.Addresses.Items, resource.RefItem{Text: map[string]string{"address": addr.String()}})
				continue
			}
			if err != nil && !asNotFound(err) {
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
func (i *zoneImport) target(name string) (resource.Ref, error) {
	same, err := sameName(i.c.Tx, i.zone.Configuration, i.view.ID, "resourceRecords", naming.Clean(name))
	if err != nil {
		return resource.Ref{}, err
	}
	for _, r := range same {
		if r.Type == "HostRecord" || r.Type == "AliasRecord" || r.Type == "GenericRecord" || r.Type == "ExternalHostRecord" {
			return resource.Ref{ID: r.ID}, nil
		}
	}
	return externalHost(i.c, i.view, naming.Clean(name))
}

// externalHost finds or makes the record of an external host in a view, and the zone for it.
func externalHost(c *resource.Change, view *store.Resource, name string) (resource.Ref, error) {
	zone, err := externalHosts(c.Tx, view.ID)
	if err != nil {
		return resource.Ref{}, err
	}
	n := *c
	n.Given = map[string]bool{"name": true}
	if zone == nil {
		z := &ExternalHostsZone{}
		z.Type, z.Parent, z.Config = "ExternalHostsZone", view.ID, view.Configuration
		t, _ := c.API.Type(z.Type)
		if zone, err = n.Create(t, z); err != nil {
			return resource.Ref{}, err
		}
	}
	found, err := c.Tx.ByKey(view.Configuration, naming.Key(name))
	if err != nil {
		return resource.Ref{}, err
	}
	for _, r := range found {
		if r.Parent == zone.ID {
			return resource.Ref{ID: r.ID}, nil
		}
	}
	h := &ExternalHostRecord{}
	h.Type, h.Name, h.Parent, h.Config = "ExternalHostRecord", name, zone.ID, view.Configuration
	t, _ := c.API.Type(h.Type)
	row, err := n.Create(t, h)
	if err != nil {
		return resource.Ref{}, err
	}
	return resource.Ref{ID: row.ID}, nil
}
