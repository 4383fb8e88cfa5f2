package dns

import (
	"net/netip"
	"slices"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// PartData returns the sets of ZoneData whose names are in names, without reading the other records of the zone. names are absolute, in
// lower case, with their final dot. children are the zones right below, in the order of their ids. PartData adds to names the name servers
// of the delegations among them, because the glue addresses of these change together with the delegation.
func PartData(tx *store.Tx, api *resource.API, zone *store.Resource, served Served, children []*store.Resource, names map[string]bool,
) ([]naming.RRset, error) {
	z := &ZoneReader{Tx: tx, API: api, Addresses: map[int64][]netip.Addr{}, Targets: map[int64]string{}, latest: zone.Version, served: served}
	apex, err := FQDN(zone.Key)
	if err != nil {
		return nil, err
	}
	delegations, err := z.delegationsAt(apex, children, names)
	if err != nil {
		return nil, err
	}
	read := []string{naming.Key(apex)} // its NS records decide about the SOA
	var addresses []netip.Addr
	for name := range names {
		if name != apex {
			read = append(read, naming.Key(name))
		}
		if a, ok := naming.ReverseAddress(name, zone.Key); ok {
			addresses = append(addresses, a)
		}
	}
	slices.Sort(read)
	if z.Records, err = NameData(tx, api, zone, read, addresses); err != nil {
		return nil, err
	}
	for _, d := range delegations {
		z.addDelegation(apex, d, names)
	}
	z.addNameServers(apex, apex, served.nameServers(zone))
	for below, servers := range served.Below {
		if names[below] {
			z.addNameServers(below, apex, servers)
			continue
		}
		for _, server := range servers {
			if names[server.Name] {
				z.addServerAddresses(apex, server)
			}
		}
	}
	compiled, err := naming.Compile(apex, append(z.Records, z.authorityRecords(apex)...))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(compiled.Sets, func(s naming.RRset) bool { return !names[s.Name] }), nil
}

// delegation is a zone right below another zone.
type delegation struct {
	apex    string
	servers []NameServer
	// own are the records at its apex and the addresses of its name servers; nil where they were not read.
	own []dns.RR
}

// delegationsAt returns the delegations of a zone. It reads the records of those that have a name among names, or above one of them, and
// adds their name servers to names, until no further delegation is affected.
func (z *ZoneReader) delegationsAt(apex string, children []*store.Resource, names map[string]bool) ([]delegation, error) {
	all := make([]delegation, len(children))
	at := map[string]int{}
	for i, child := range children {
		name, err := FQDN(child.Key)
		if err != nil {
			return nil, err
		}
		all[i] = delegation{apex: name, servers: z.served.nameServers(child)}
		at[name] = i
	}
	pending := make([]string, 0, len(names))
	for name := range names {
		pending = append(pending, name)
	}
	for len(pending) > 0 {
		name := pending[0]
		pending = pending[1:]
		i, ok := delegationOf(at, name, apex)
		if !ok {
			continue
		}
		if all[i].own == nil {
			if err := z.readDelegation(children[i], &all[i]); err != nil {
				return nil, err
			}
		}
		if name != all[i].apex { // an address of one of its name servers
			continue
		}
		for _, server := range all[i].targets() {
			if dns.IsSubDomain(apex, server) && !names[server] {
				names[server] = true
				pending = append(pending, server)
			}
		}
	}
	return all, nil
}

// delegationOf returns the number of the delegation that contains a name.
func delegationOf(at map[string]int, name, apex string) (i int, ok bool) {
	for name != apex && name != RootName {
		if i, ok = at[name]; ok {
			return i, true
		}
		next, end := dns.NextLabel(name, 0)
		if end {
			return 0, false
		}
		name = name[next:]
	}
	return 0, false
}

// readDelegation reads the records at the apex of a zone, and the addresses of its name servers within it.
func (z *ZoneReader) readDelegation(child *store.Resource, d *delegation) (err error) {
	if d.own, err = NameData(z.Tx, z.API, child, []string{child.Key}, nil); err != nil {
		return err
	}
	var within []string
	for _, server := range d.targets() {
		if server != d.apex && dns.IsSubDomain(d.apex, server) {
			within = append(within, naming.Key(server))
		}
	}
	glue, err := NameData(z.Tx, z.API, child, within, nil)
	d.own = append(append([]dns.RR{}, d.own...), glue...) // not nil
	return err
}

// targets returns the names of its name servers, each once: those of its own NS records and those of its deployment roles.
func (d *delegation) targets() (all []string) {
	for _, rr := range d.own {
		if ns, ok := rr.(*dns.NS); ok && dns.CanonicalName(ns.Hdr.Name) == d.apex {
			all = append(all, dns.CanonicalName(ns.Ns))
		}
	}
	for _, server := range d.servers {
		all = append(all, server.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// addDelegation adds the NS records of a delegation to the zone apex, the glue addresses of name servers inside of the delegated zone, and
// the addresses of its other name servers. If wanted is not nil, it limits the names of the latter.
func (z *ZoneReader) addDelegation(apex string, d delegation, wanted map[string]bool) {
	if d.own != nil {
		sub := &ZoneReader{Records: d.own}
		sub.addNameServers(d.apex, d.apex, d.servers)
		d.own = sub.Records
	}
	for _, server := range d.servers {
		if !dns.IsSubDomain(d.apex, server.Name) && (wanted == nil || wanted[server.Name]) {
			z.addServerAddresses(apex, server)
		}
	}
	servers := map[string]bool{}
	for _, rr := range d.own {
		if ns, ok := rr.(*dns.NS); ok && dns.CanonicalName(ns.Hdr.Name) == d.apex {
			servers[dns.CanonicalName(ns.Ns)] = true
			z.Records = append(z.Records, rr)
		}
	}
	for _, rr := range d.own {
		if t := rr.Header().Rrtype; (t == dns.TypeA || t == dns.TypeAAAA) && servers[dns.CanonicalName(rr.Header().Name)] {
			z.Records = append(z.Records, rr)
		}
	}
}

// childZones returns the zones right below a zone that it delegates, in the order of their ids. The zones right below the internal root
// zone are those of its view.
func childZones(tx *store.Tx, zone *store.Resource) (below []*store.Resource, err error) {
	holder := zone.ID
	if zone.Type == "InternalRootZone" {
		holder = zone.Parent
	}
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("zones"), store.HasParent(holder)}},
		func(r *store.Resource) error {
			if IsDelegated(r) {
				below = append(below, r.Clone())
			}
			return nil
		})
	return below, err
}

// IsDelegated reports whether the zone right above delegates a zone. The other types are parts of their parent, or local to a server.
func IsDelegated(zone *store.Resource) bool { return zone.Type == "Zone" || zone.Type == "ENUMZone" }
