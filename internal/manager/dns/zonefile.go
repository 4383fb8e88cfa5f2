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
)

// DefaultTTL is the time to live, in seconds, of records that have none of their own.
const DefaultTTL = naming.DefaultTTL

// FindZone finds a zone by the names of its configuration and view and its own; an empty view is the
// only one there is. Blocks and networks have reverse zones without anybody making them: such a zone has
// no id, and may be named by its range.
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
		return nil, problem.NotFound("there is no zone %q in the view %s", name, problem.About(v.ID, v.Name))
	}
	return zone, err
}

// maxReverse is how many reverse zones a range is told to have.
const maxReverseZones = 64

// reverseNamed gives the name of the reverse zone of a range, where the name of a zone is one; other names
// are given back.
func resolveReverseName(name string) (string, error) {
	r, err := space.Parse(name)
	if err != nil {
		return name, nil //nolint:nilerr // it is a name then
	}
	names := naming.ReverseZones(r.Low, r.High, maxReverseZones)
	switch len(names) {
	case 0:
		return "", problem.Invalid("zone", "%s has more than %d reverse zones: name one", r, maxReverseZones)
	case 1:
		return names[0], nil
	}
	return "", problem.Invalid("zone", "%s has these reverse zones, name one: %s", r, strings.Join(names, ", "))
}

// ImpliedZone gives the reverse zone of that name where blocks or networks lie in its space, or it lies
// in theirs; nil where none does.
func ImpliedZone(tx *store.Tx, view *store.Resource, name string) (*store.Resource, error) {
	low, high, ok := naming.ReverseRange(name)
	if !ok {
		return nil, nil
	}
	key := naming.Key(naming.Clean(name))
	zone := &store.Resource{Collection: "zones", Type: "Zone", Name: key, Key: key, Parent: view.ID, Configuration: view.Configuration,
		Refs: []store.Ref{{Field: "view", Target: view.ID}}}
	_, err := tx.Overlapping(view.Configuration, "blocks", store.AddrKey(low), store.AddrKey(high), 0)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return zone, err
}

// FindZoneIn returns the zone of a name in a view; nil where there is none.
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

// FindView returns the view of a configuration, both by their names; it fails where there is none.
func FindView(tx *store.Tx, configuration, view string) (*store.Resource, error) {
	found, err := resource.ConfigurationNamed(tx, configuration)
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
		return nil, problem.NotFound("there is no view %q in the configuration %s", view, problem.About(found.ID, found.Name))
	case len(views) > 1:
		return nil, problem.Invalid("view", "the configuration %s has several: name one", problem.About(found.ID, found.Name))
	}
	return views[0], nil
}

// FQDN is a name as the wire has it: absolute, with its last dot, in A-labels.
func FQDN(name string) (string, error) {
	return naming.FQDN(name)
}

// ZoneReader gathers what a zone's records say.
type ZoneReader struct {
	Tx        *store.Tx
	API       *resource.API
	Addresses map[int64][]netip.Addr // of host records, by id
	Targets   map[int64]string       // of records that link to one, by id
	Records   []dns.RR
	latest    int64 // the latest transaction that changed any of it
	served    Served
}

// Served is what the data of zones has from roles and options of deployment; the zero value is nothing.
type Served struct {
	// SOA, where it is not nil, is the start of authority, without its owner. Its serial number and its primary server follow from the zone
	// where they are empty.
	SOA *dns.SOA
	// Servers gives the name servers of a zone, or of one right below it; nil where nobody asks.
	Servers func(zone *store.Resource) []NameServer
	// Below gives further zones below a reverse zone that others answer for, by their names in lower case.
	Below map[string][]NameServer
}

// NameServer is a name server of a zone.
type NameServer struct {
	// Name is absolute, with its last dot; TTL is that of the NS record, in seconds.
	Name      string
	Addresses []netip.Addr
	TTL       uint32
}

// serversOf gives the name servers of a zone.
func (s Served) nameServers(zone *store.Resource) []NameServer {
	if s.Servers == nil {
		return nil
	}
	return s.Servers(zone)
}

// ZoneData gives the data of a zone as it is served, delegations of the zones below it included. The serial number of its SOA, where none
// is given, is the latest transaction that changed one of its records.
func ZoneData(tx *store.Tx, api *resource.API, zone *store.Resource, served Served) (*naming.Zone, error) {
	z := &ZoneReader{Tx: tx, API: api, latest: zone.Version, served: served}
	if zone.ID != 0 { // else it has nothing but what leads back to hosts
		if err := z.Read(zone, func(dns.RR) bool { return true }); err != nil {
			return nil, err
		}
		holder := zone.ID
		if zone.Type == "InternalRootZone" { // all zones of the view lie below it
			holder = zone.Parent
		}
		for _, add := range []func() error{
			func() error { return z.addDelegations(holder, zone) }, func() error { return z.addNumbers(zone) },
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
	apex, err := FQDN(zone.Key)
	if err != nil {
		return nil, err
	}
	z.addNameServers(apex, apex, served.nameServers(zone))
	for below, servers := range served.Below {
		z.addNameServers(below, apex, servers)
	}
	return naming.Compile(apex, append(z.Records, z.authorityRecords(apex)...))
}

// answeredBy adds the NS records of a zone, the one that is read or one below it, and the addresses of name servers within the zone that is
// read, where nothing is said of those.
func (z *ZoneReader) addNameServers(zone, apex string, servers []NameServer) {
	for _, server := range servers {
		z.Records = append(z.Records, &dns.NS{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: server.TTL},
			Ns: server.Name})
		z.addServerAddresses(apex, server)
	}
}

// addressesOf adds the addresses of a name server within a zone, where nothing is said of it.
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

// authority gives the SOA of the zone, and an NS record where it has none.
func (z *ZoneReader) authorityRecords(apex string) (records []dns.RR) {
	server, has := "localhost.", false
	for _, rr := range z.Records {
		if ns, ok := rr.(*dns.NS); ok && dns.CanonicalName(ns.Hdr.Name) == apex {
			server, has = ns.Ns, true
			break
		}
	}
	head := dns.RR_Header{Name: apex, Class: dns.ClassINET, Ttl: DefaultTTL}
	if !has { // a zone without name servers of its own is still a zone
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
		if naming.Check(naming.Clean(soa.Mbox), naming.AnyName) != nil { // it would be longer than a name may be
			soa.Mbox = RootName
		}
	}
	if soa.Serial == 0 {
		soa.Serial = uint32(z.latest) //nolint:gosec // serial numbers go round (RFC 1982)
	}
	return append(records, soa)
}

// Read adds the records of a zone that are wanted.
func (z *ZoneReader) Read(zone *store.Resource, wanted func(dns.RR) bool) error {
	z.Addresses, z.Targets = map[int64][]netip.Addr{}, map[int64]string{}
	if err := z.Tx.TargetsBelow(zone.ID, "resourceRecords", "addresses", func(source int64, low []byte, _ string) {
		z.Addresses[source] = append(z.Addresses[source], store.KeyAddr(low))
	}); err != nil {
		return fmt.Errorf("reading the addresses of a zone: %w", err)
	}
	if err := z.Tx.TargetsBelow(zone.ID, "resourceRecords", "linkedRecord", func(source int64, _ []byte, key string) {
		z.Targets[source] = key
	}); err != nil {
		return fmt.Errorf("reading the links of a zone: %w", err)
	}
	rows, ended := make(chan []*store.Resource, 4), make(chan error, 1)
	go func() { ended <- z.convertRows(rows, wanted) }() // while the next ones are read
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

// rowsAtOnce is how many rows are turned into records at a time.
const rowBatch = 512

// toRecords turns rows into records, all that come, also behind one that it fails at.
func (z *ZoneReader) convertRows(rows <-chan []*store.Resource, wanted func(dns.RR) bool) (failed error) {
	defer func() { // a fault costs whoever reads the zone, and nobody else
		if p := recover(); p != nil {
			failed = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			for range rows { // until there are no more
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
				if wanted(rr) {
					z.Records = append(z.Records, rr)
				}
			}
		}
	}
	return failed
}

// delegations adds the name servers of the zones right below, and the addresses of those whose names
// lie in the zone that is delegated: without them nobody would find it.
func (z *ZoneReader) addDelegations(holder int64, zone *store.Resource) error {
	own, err := FQDN(zone.Key)
	if err != nil {
		return err
	}
	var below []*store.Resource
	if err := z.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("zones"),
		store.HasParent(holder)}},
		func(r *store.Resource) error {
			if r.Type == "Zone" || r.Type == "ENUMZone" {
				below = append(below, r.Clone())
			}
			return nil
		}); err != nil {
		return err
	}
	for _, child := range below {
		apex, err := FQDN(child.Key)
		if err != nil {
			return err
		}
		servers := map[string]bool{}
		sub := &ZoneReader{Tx: z.Tx, API: z.API}
		if err := sub.Read(child, func(rr dns.RR) bool { return true }); err != nil {
			return err
		}
		sub.addNameServers(apex, apex, z.served.nameServers(child))
		for _, server := range z.served.nameServers(child) {
			if !dns.IsSubDomain(apex, server.Name) {
				z.addServerAddresses(own, server)
			}
		}
		for _, rr := range sub.Records {
			if ns, ok := rr.(*dns.NS); ok && dns.CanonicalName(ns.Hdr.Name) == apex {
				servers[dns.CanonicalName(ns.Ns)] = true
				z.Records = append(z.Records, rr)
			}
		}
		for _, rr := range sub.Records {
			if t := rr.Header().Rrtype; (t == dns.TypeA || t == dns.TypeAAAA) && servers[dns.CanonicalName(rr.Header().Name)] {
				z.Records = append(z.Records, rr)
			}
		}
	}
	return nil
}

// reverse adds what leads from addresses back to the hosts of the view, where the zone is one for that.
func (z *ZoneReader) addReverse(zone *store.Resource) error {
	low, high, ok := naming.ReverseRange(zone.Key)
	if !ok {
		return nil
	}
	return z.ReverseBetween(zone, low, high)
}

// ReverseBetween adds what leads from the addresses of a range back.
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
		z.Records = append(z.Records, &dns.PTR{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: DefaultTTL},
			Ptr: target})
		return nil
	}, "SELECT a.low, h.key, h.version, json_extract(h.body, '$.reverseRecord') FROM resource a"+
		" JOIN reference f ON f.target = a.id AND f.field = 'addresses' JOIN resource h ON h.id = f.source"+
		" JOIN reference v ON v.source = h.parent AND v.field = 'view' AND v.target = ?"+
		" WHERE a.configuration = ? AND a.collection = 'addresses' AND a.low >= ? AND a.low <= ? ORDER BY a.low, h.id",
		ViewOf(zone), zone.Configuration, store.AddrKey(low), store.AddrKey(high))
}
