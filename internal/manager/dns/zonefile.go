package dns

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// DefaultTTL is the TTL in seconds of records without their own TTL.
const DefaultTTL = naming.DefaultTTL

// FindZone finds a zone by the names of its configuration, its view and itself. An empty view selects the only view. Blocks and networks
// have implied reverse zones: these have no id, and may be named by their range.
func FindZone(tx *store.Tx, configuration, view, name string) (*store.Resource, error) {
	v, err := FindView(tx, configuration, view)
	if err != nil {
		return nil, err
	}
	if name, err = resolveReverseName(name); err != nil {
		return nil, err
	}
	zone, err := FindZoneIn(tx, v, name)
	if err == nil && zone == nil {
		zone, err = ImpliedZone(tx, v, name)
	}
	if err == nil && zone == nil {
		return nil, problem.NotFound("zone %q does not exist in the view %s", name, problem.Describe(v.ID, v.Name))
	}
	return zone, err
}

// maxReverseZones is the maximum number of reverse zones that an error message lists for a range.
const maxReverseZones = 64

// resolveReverseName returns the name of the reverse zone if name is a range. It returns other names unchanged.
func resolveReverseName(name string) (string, error) {
	r, err := space.Parse(name)
	if err != nil {
		return name, nil //nolint:nilerr // not a range but a name
	}
	names := naming.ReverseZones(r.Low, r.High, maxReverseZones)
	switch len(names) {
	case 0:
		return "", problem.Invalid("zone", "%s has more than %d reverse zones: choose one by name", r, maxReverseZones)
	case 1:
		return names[0], nil
	}
	return "", problem.Invalid("zone", "%s has several reverse zones: choose one of %s", r, strings.Join(names, ", "))
}

// ImpliedZone returns the reverse zone of a name if its address space overlaps a block; otherwise nil.
func ImpliedZone(tx *store.Tx, view *store.Resource, name string) (*store.Resource, error) {
	low, high, ok := naming.ReverseRange(name)
	if !ok {
		return nil, nil
	}
	key := naming.Key(naming.Clean(name))
	zone := &store.Resource{Collection: "zones", Type: "Zone", Name: key, Key: key, Parent: view.ID, Configuration: view.Configuration,
		Refs: []store.Ref{{Field: "view", Target: view.ID}}}
	_, err := tx.FindOverlapping(view.Configuration, "blocks", store.AddrKey(low), store.AddrKey(high), 0)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return zone, err
}

// FindZoneIn returns the zone with a name in a view; nil if there is none.
func FindZoneIn(tx *store.Tx, view *store.Resource, name string) (*store.Resource, error) {
	if name == RootName {
		found, err := tx.ByName("zones", view.ID, RootName)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return found[0], nil
	}
	same, err := FindByName(tx, view.Configuration, view.ID, "zones", naming.Clean(name))
	if err != nil || len(same) == 0 {
		return nil, err
	}
	return same[0], nil
}

// FindView returns a view by its name and the name of its configuration, or an error.
func FindView(tx *store.Tx, configuration, view string) (*store.Resource, error) {
	found, err := ipam.ConfigurationNamed(tx, configuration)
	if err != nil {
		return nil, err
	}
	var views []*store.Resource
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("views"),
		store.HasParent(found.ID)}},
		func(r *store.Resource) error {
			if view == "" || r.Name == view {
				views = append(views, r.Clone())
			}
			return nil
		})
	switch {
	case err != nil:
		return nil, err
	case len(views) == 0:
		return nil, problem.NotFound("view %q does not exist in the configuration %s", view, problem.Describe(found.ID, found.Name))
	case len(views) > 1:
		return nil, problem.Invalid("view", "the configuration %s has several views: choose one by name", problem.Describe(found.ID, found.Name))
	}
	return views[0], nil
}

// FQDN returns a name in wire form: absolute, with the trailing dot, in A-labels.
func FQDN(name string) (string, error) {
	return naming.FQDN(name)
}

// ZoneReader collects the records of a zone.
type ZoneReader struct {
	Tx        *store.Tx
	API       *resource.API
	Addresses map[int64][]netip.Addr // addresses of host records, by id
	Targets   map[int64]string       // target names of linking records, by id
	Records   []dns.RR
	latest    int64 // the latest transaction that changed part of it
	served    Served
	// pack receives the records that do not decide about others, instead of Records; nil if there are none. others are the names whose
	// addresses and aliases decide about others: those of name servers.
	pack   func(dns.RR) error
	others map[string]bool
}

// Served is the zone data that comes from deployment roles and options. The zero value is empty.
type Served struct {
	// SOA is the start of authority without its owner name; it may be nil. An empty serial number or primary server is derived from the
	// zone.
	SOA *dns.SOA
	// Servers returns the name servers of a zone, or of a zone right below it. It may be nil.
	Servers func(zone *store.Resource) []NameServer
	// Below contains further delegations of a reverse zone, by lower-case zone name.
	Below map[string][]NameServer
}

// NameServer is a name server of a zone.
type NameServer struct {
	// Name is absolute, with the trailing dot. TTL is the TTL of the NS record in seconds.
	Name      string
	Addresses []netip.Addr
	TTL       uint32
}

// nameServers returns the name servers of a zone.
func (s Served) nameServers(zone *store.Resource) []NameServer {
	if s.Servers == nil {
		return nil
	}
	return s.Servers(zone)
}

// ZoneData returns the data of a zone as it is served, including delegations. If no serial number is given, the serial is the number of the
// latest transaction that changed one of its records.
func ZoneData(tx *store.Tx, api *resource.API, zone *store.Resource, served Served) (*naming.Zone, error) {
	return PackedZoneData(tx, api, zone, served, nil)
}

// PackedZoneData is ZoneData for large zones: it calls pack with most records, in any order, and returns only the others. The TTLs of the
// records that it packs are not those of their sets yet, and their names are not compared with the others. A nil pack means ZoneData.
func PackedZoneData(tx *store.Tx, api *resource.API, zone *store.Resource, served Served, pack func(dns.RR) error) (*naming.Zone, error) {
	z := &ZoneReader{Tx: tx, API: api, latest: zone.Version, served: served, pack: pack, others: map[string]bool{}}
	apex, err := FQDN(zone.Key)
	if err != nil {
		return nil, err
	}
	z.addOthers(served.nameServers(zone))
	for _, servers := range served.Below {
		z.addOthers(servers)
	}
	if zone.ID != 0 { // an implied zone has only PTR records
		children, err := childZones(tx, zone)
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			z.addOthers(served.nameServers(child))
		}
		for _, add := range []func() error{
			func() error { return z.Read(zone, func(dns.RR) bool { return true }) },
			func() error { return z.addDelegations(apex, children) }, func() error { return z.addNumbers(zone) },
			func() error { return z.addResponses(zone, nil) },
		} {
			if err := add(); err != nil {
				return nil, err
			}
		}
	}
	if err := z.addReverse(zone); err != nil {
		return nil, err
	}
	z.addNameServers(apex, apex, served.nameServers(zone))
	for below, servers := range served.Below {
		z.addNameServers(below, apex, servers)
	}
	return naming.Compile(apex, append(z.Records, z.authorityRecords(apex)...))
}

// addOthers adds the names of name servers to others.
func (z *ZoneReader) addOthers(servers []NameServer) {
	for _, server := range servers {
		z.others[server.Name] = true
	}
}

// add adds a record: to Records, or to those that are packed.
func (z *ZoneReader) add(rr dns.RR) error {
	if z.pack != nil {
		switch h := rr.Header(); h.Rrtype {
		case dns.TypeNS, dns.TypeSOA:
		case dns.TypeA, dns.TypeAAAA, dns.TypeCNAME:
			if !z.others[dns.CanonicalName(h.Name)] {
				return z.pack(rr)
			}
		default:
			return z.pack(rr)
		}
	}
	z.Records = append(z.Records, rr)
	return nil
}

// addNameServers adds the NS records of a zone: the zone itself (apex) or a zone below it. It also adds the addresses of name servers
// within apex that have no records yet.
func (z *ZoneReader) addNameServers(zone, apex string, servers []NameServer) {
	for _, server := range servers {
		z.Records = append(z.Records, &dns.NS{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: server.TTL},
			Ns: server.Name})
		z.addServerAddresses(apex, server)
	}
}

// addServerAddresses adds the addresses of a name server within apex, unless its name has address or CNAME records.
func (z *ZoneReader) addServerAddresses(apex string, server NameServer) {
	if !dns.IsSubDomain(apex, server.Name) || slices.ContainsFunc(z.Records, func(rr dns.RR) bool {
		t := rr.Header().Rrtype
		return (t == dns.TypeA || t == dns.TypeAAAA || t == dns.TypeCNAME) && dns.CanonicalName(rr.Header().Name) == server.Name
	}) {
		return
	}
	for _, addr := range server.Addresses {
		head := dns.RR_Header{Name: server.Name, Class: dns.ClassINET, Ttl: server.TTL}
		if addr.Is4() {
			head.Rrtype = dns.TypeA
			z.Records = append(z.Records, &dns.A{Hdr: head, A: addr.AsSlice()})
			continue
		}
		head.Rrtype = dns.TypeAAAA
		z.Records = append(z.Records, &dns.AAAA{Hdr: head, AAAA: addr.AsSlice()})
	}
}

// authorityRecords returns the SOA record of the zone, and an NS record if the zone has none.
func (z *ZoneReader) authorityRecords(apex string) (records []dns.RR) {
	server, has := "localhost.", false
	for _, rr := range z.Records {
		if ns, ok := rr.(*dns.NS); ok && dns.CanonicalName(ns.Hdr.Name) == apex {
			server, has = ns.Ns, true
			break
		}
	}
	head := dns.RR_Header{Name: apex, Class: dns.ClassINET, Ttl: DefaultTTL}
	if !has { // a zone requires at least one name server
		ns := &dns.NS{Hdr: head, Ns: server}
		ns.Hdr.Rrtype = dns.TypeNS
		records = append(records, ns)
	}
	soa := &dns.SOA{Hdr: head, Refresh: 10800, Retry: 3600, Expire: 604800, Minttl: DefaultTTL}
	if z.served.SOA != nil {
		*soa = *z.served.SOA
		soa.Hdr = dns.RR_Header{Name: apex, Class: dns.ClassINET, Ttl: z.served.SOA.Hdr.Ttl}
	}
	soa.Hdr.Rrtype = dns.TypeSOA
	if soa.Ns == "" {
		soa.Ns = server
	}
	if soa.Mbox == "" {
		soa.Mbox = "hostmaster." + strings.TrimPrefix(apex, RootName)
		if naming.Check(naming.Clean(soa.Mbox), naming.AnyName) != nil { // the name is too long
			soa.Mbox = RootName
		}
	}
	if soa.Serial == 0 {
		soa.Serial = uint32(z.latest) //nolint:gosec // serial numbers wrap around (RFC 1982)
	}
	return append(records, soa)
}

// Read adds the records of a zone that the function wanted selects.
func (z *ZoneReader) Read(zone *store.Resource, wanted func(dns.RR) bool) error {
	z.Addresses, z.Targets = map[int64][]netip.Addr{}, map[int64]string{}
	if err := z.Tx.TargetsBelow(zone.ID, "resourceRecords", "addresses", func(source int64, low []byte, _ string) {
		z.Addresses[source] = append(z.Addresses[source], store.KeyAddr(low))
	}); err != nil {
		return fmt.Errorf("read the addresses of a zone: %w", err)
	}
	if err := z.Tx.TargetsBelow(zone.ID, "resourceRecords", "linkedRecord", func(source int64, _ []byte, key string) {
		z.Targets[source] = key
	}); err != nil {
		return fmt.Errorf("read the links of a zone: %w", err)
	}
	rows, ended := make(chan []*store.Resource, 4), make(chan error, 1)
	go func() { ended <- z.convertRows(rows, wanted) }() // convert while the next rows are read
	var batch []*store.Resource
	err := z.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("resourceRecords"),
		store.HasParent(zone.ID)}},
		func(r *store.Resource) error {
			if batch = append(batch, r.Clone()); len(batch) == rowBatch {
				rows <- batch
				batch = nil
			}
			return nil
		})
	rows <- batch
	close(rows)
	if e := <-ended; err == nil {
		err = e
	}
	return err
}

// rowBatch is the number of rows that are converted at a time.
const rowBatch = 512

// convertRows converts rows to records. After a failure it still drains the channel, so that the sender does not block.
func (z *ZoneReader) convertRows(rows <-chan []*store.Resource, wanted func(dns.RR) bool) (failed error) {
	defer func() { // a panic must fail only this read, not the process
		if p := recover(); p != nil {
			failed = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			for range rows { // drain the channel
			}
		}
	}()
	for batch := range rows {
		for _, r := range batch {
			if failed != nil {
				break
			}
			z.latest = max(z.latest, r.Version)
			rrs, err := z.RecordsOf(r)
			if err != nil {
				failed = fmt.Errorf("%s %d, %s: %w", r.Type, r.ID, r.Key, err)
			}
			for _, rr := range rrs {
				if failed == nil && wanted(rr) {
					failed = z.add(rr)
				}
			}
		}
	}
	return failed
}

// addDelegations adds the name servers of the zones right below, and the glue addresses of name servers inside of the delegated zones.
func (z *ZoneReader) addDelegations(apex string, below []*store.Resource) (err error) {
	for _, child := range below {
		d := delegation{servers: z.served.nameServers(child)}
		if d.apex, err = FQDN(child.Key); err != nil {
			return err
		}
		if err := z.readDelegation(child, &d); err != nil {
			return err
		}
		z.addDelegation(apex, d, nil)
	}
	return nil
}

// addReverse adds the PTR records for the hosts of the view, if the zone is a reverse zone.
func (z *ZoneReader) addReverse(zone *store.Resource) error {
	low, high, ok := naming.ReverseRange(zone.Key)
	if !ok {
		return nil
	}
	return z.ReverseBetween(zone, low, high)
}

// ReverseBetween adds the PTR records for the addresses of a range.
func (z *ZoneReader) ReverseBetween(zone *store.Resource, low, high netip.Addr) error {
	return z.Tx.Each(func(scan func(...any) error) error {
		var key []byte
		var host string
		var version int64
		var wanted bool
		if err := scan(&key, &host, &version, &wanted); err != nil || !wanted || isWildcard(host) {
			return err
		}
		z.latest = max(z.latest, version)
		name, err := naming.ReverseName(store.KeyAddr(key), zone.Key)
		if err != nil {
			return err
		}
		target, err := FQDN(host)
		if err != nil {
			return err
		}
		owner, err := FQDN(naming.Join(name, zone.Key))
		if err != nil {
			return err
		}
		return z.add(&dns.PTR{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: DefaultTTL}, Ptr: target})
	}, "SELECT a.low, h.key, h.version, json_extract(h.body, '$.reverseRecord') FROM resource a"+
		" JOIN reference f ON f.target = a.id AND f.field = 'addresses' JOIN resource h ON h.id = f.source"+
		" JOIN reference v ON v.source = h.parent AND v.field = 'view' AND v.target = ?"+
		" WHERE a.configuration = ? AND a.collection = 'addresses' AND a.low >= ? AND a.low <= ? ORDER BY a.low, h.id",
		ViewOf(zone), zone.Configuration, store.AddrKey(low), store.AddrKey(high))
}
