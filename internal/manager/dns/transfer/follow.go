package transfer

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
)

// Different compares a zone with the records of another server. It returns the names with differences, each with all records that it must
// have; none if the name must be deleted. It ignores the SOA and NS records of the zone itself, which come from options and roles,
// signatures, and the content of zones below. The result includes names with generic address records that can be hosts now (findStrays).
func Different(tx *store.Tx, a *resource.API, zone *store.Resource, records []wire.RR) (map[string][]wire.RR, error) {
	apex, err := dns.FQDN(zone.Key)
	if err != nil {
		return nil, err
	}
	apex = wire.CanonicalName(apex)
	below, err := zonesBelow(tx, zone)
	if err != nil {
		return nil, err
	}
	sums := map[string]uint64{} // by name: a hash of the current records minus the wanted ones; 0 if equal
	seed := maphash.MakeSeed()
	add := func(rr wire.RR, times uint64) {
		var h maphash.Hash
		h.SetSeed(seed)
		_, _ = h.WriteString(dataOf(rr))
		maphash.WriteComparable(&h, rr.Header().Ttl)
		sums[wire.CanonicalName(rr.Header().Name)] += times * h.Sum64()
	}
	z := &dns.ZoneReader{Tx: tx, API: a}
	if err := z.Read(zone, func(rr wire.RR) bool {
		if isFollowed(rr, apex, nil) { // includes names of zones below, which must be deleted from this zone
			add(rr, 1)
		}
		return false
	}); err != nil {
		return nil, err
	}
	stray, err := findStrays(tx, a, zone)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{} // a transfer may contain a record twice
	for _, rr := range records {
		if key := sameRecord(rr); isFollowed(rr, apex, below) && !seen[key] {
			seen[key] = true
			add(rr, ^uint64(0))
		}
	}
	wanted := map[string][]wire.RR{}
	for name, sum := range sums {
		if sum != 0 || stray[name] {
			wanted[name] = nil
		}
	}
	clear(seen)
	for _, rr := range records {
		name, key := wire.CanonicalName(rr.Header().Name), sameRecord(rr)
		if _, is := wanted[name]; is && isFollowed(rr, apex, below) && !seen[key] {
			seen[key] = true
			wanted[name] = append(wanted[name], rr)
		}
	}
	return wanted, nil
}

// findStrays returns the names of a zone with generic address records that can be hosts, because their networks were created later.
func findStrays(tx *store.Tx, a *resource.API, zone *store.Resource) (map[string]bool, error) {
	var generic []*store.Resource
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("resourceRecords"), store.HasParent(zone.ID),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: "GenericRecord"}}},
		func(r *store.Resource) error {
			generic = append(generic, r.Clone())
			return nil
		}); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	z, i := &dns.ZoneReader{Tx: tx, API: a}, &zoneImport{c: &resource.Change{Tx: tx, API: a}, zone: zone}
	for _, r := range generic {
		rrs, err := z.RecordsOf(r)
		if err != nil {
			return nil, err
		}
		for _, rr := range rrs {
			addr, is := addressOf(rr)
			if !is {
				continue
			}
			fits, err := i.isHostAddress(r.Key, addr)
			if err != nil {
				return nil, err
			}
			found[wire.CanonicalName(rr.Header().Name)] = found[wire.CanonicalName(rr.Header().Name)] || fits
		}
	}
	return found, nil
}

// isFollowed reports whether a record is copied from a followed server.
func isFollowed(rr wire.RR, apex string, below map[string]bool) bool {
	h := rr.Header()
	name := wire.CanonicalName(h.Name)
	if h.Class != wire.ClassINET || dns.IsMeta(h.Rrtype) || slices.Contains(keyTypes, h.Rrtype) || name == apex && isApexType(h.Rrtype) ||
		!wire.IsSubDomain(apex, name) {
		return false
	}
	for at := name; len(below) > 0 && at != apex; {
		if below[at] {
			return false
		}
		next, end := wire.NextLabel(at, 0)
		if end {
			break
		}
		at = at[next:]
	}
	return true
}

// zonesBelow returns the names of the zones right below a zone.
func zonesBelow(tx *store.Tx, zone *store.Resource) (map[string]bool, error) {
	below := map[string]bool{}
	return below, tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("zones"), store.HasParent(zone.ID)}},
		func(r *store.Resource) error {
			name, err := dns.FQDN(r.Key)
			if err == nil && r.Type == "Zone" {
				below[wire.CanonicalName(name)] = true
			}
			return err
		})
}

// Follow applies the result of Different to a zone. It returns a message for each record that was skipped.
func Follow(c *resource.Change, zone *store.Resource, names map[string][]wire.RR) (left []string, err error) {
	f, err := followerOf(c.Tx)
	if err != nil {
		return nil, err
	}
	f.isOwn = true
	u, err := newUpdater(c, zone)
	if err != nil {
		return nil, err
	}
	for name, wanted := range names {
		n, err := u.loadName(name)
		if err != nil {
			return nil, err
		}
		n.wanted = slices.DeleteFunc(n.wanted, func(rr wire.RR) bool { return n.name != u.apex || !isApexType(rr.Header().Rrtype) })
		for _, rr := range wanted {
			// PTR records of hosts exist already.
			if !slices.ContainsFunc(n.derived, func(one wire.RR) bool { return u.cachedData(one) == u.cachedData(rr) }) {
				n.wanted = append(n.wanted, rr)
			}
		}
	}
	slices.Sort(u.order)
	u.convertsToHosts = true
	if _, err = u.writeAll(); err != nil {
		return nil, err
	}
	return u.importer.done.Skipped, u.markAssigned()
}

// CreationOrder returns the names of a result of Different in the order of creation: hosts before records that link to them, aliases last.
func CreationOrder(names map[string][]wire.RR) []string {
	rank := map[string]int{}
	order := make([]string, 0, len(names))
	for name, wanted := range names {
		order = append(order, name)
		for _, rr := range wanted {
			switch rr.Header().Rrtype {
			case wire.TypeA, wire.TypeAAAA:
				rank[name] = max(rank[name], 1)
			case wire.TypeCNAME:
				rank[name] = 3
			default:
				rank[name] = max(rank[name], 2)
			}
		}
	}
	slices.SortFunc(order, func(a, b string) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), strings.Compare(a, b)) })
	return order
}
