package dnspublish

import (
	"net/netip"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/manager/dns"
)

// zoneWork is the pending work on a zone: changed names by the keys of their records, changed addresses, and names whose delegations, name
// servers or keys have changed. whole reports that the whole zone must be examined.
type zoneWork struct {
	keys      []string
	addresses []netip.Addr
	framed    []string
	whole     bool
}

// minWhole is the minimum number of changed names for which a whole zone may be examined instead, and wholeShare the share of its records:
// reading a name costs as much as reading that many records of the zone.
const (
	minWhole   = 1000
	wholeShare = 10
)

// needsFullCheck reports whether the changed names of a zone cost more to examine than the whole zone.
func (w *zoneWork) needsFullCheck(is deployedZone) bool {
	n := len(w.keys) + len(w.addresses)
	return n > minWhole && int64(n)*wholeShare > is.records
}

// isEmpty reports whether there is nothing to examine.
func (w *zoneWork) isEmpty() bool {
	return len(w.keys)+len(w.addresses)+len(w.framed) == 0 && !w.whole
}

// works is the pending work by zone.
type works map[*plannedZone]*zoneWork

// addZone returns the work on a zone, which is added if there is none.
func (w works) addZone(z *plannedZone) *zoneWork {
	if w[z] == nil {
		w[z] = &zoneWork{}
	}
	return w[z]
}

// workOn returns the zones that contain the names and addresses. A name is part of the nearest zone above it, and may be part of a
// delegation in the zone above that.
func (p *plan) workOn(keys []string, addresses []netip.Addr) works {
	work := works{}
	p.addNames(work, keys)
	if len(addresses) == 0 {
		return work
	}
	sorted := slices.Clone(addresses)
	slices.SortFunc(sorted, netip.Addr.Compare)
	sorted = slices.Compact(sorted)
	for _, z := range p.zones {
		low, high, ok := z.reverseRange()
		if !ok {
			continue
		}
		from, _ := slices.BinarySearchFunc(sorted, low, netip.Addr.Compare)
		to, found := slices.BinarySearchFunc(sorted, high, netip.Addr.Compare)
		if found {
			to++
		}
		if from < to {
			w := work.addZone(z)
			w.addresses = append(w.addresses, sorted[from:to]...)
		}
	}
	return work
}

// addNames adds names to the work on their zones.
func (p *plan) addNames(work works, keys []string) {
	for view, zones := range p.byName {
		for _, key := range keys {
			name, err := naming.FQDN(key)
			if err != nil { // the name was checked when it was created
				continue
			}
			z := nearestZone(zones, wire.CanonicalName(name))
			if z == nil {
				continue
			}
			work.addName(z, key)
			if above := p.nearestAbove(z); above != nil && view == above.view {
				work.addName(above, key)
			}
		}
	}
}

// addName adds a name to the work on a zone. The names of a reverse zone that was not created by a user follow from addresses.
func (w works) addName(z *plannedZone, key string) {
	if z.row.ID != 0 {
		one := w.addZone(z)
		one.keys = append(one.keys, key)
	}
}

// nearestZone returns the zone with the longest name at or above a name; nil if there is none.
func nearestZone(zones map[string]*plannedZone, name string) *plannedZone {
	for {
		if z := zones[name]; z != nil || name == dns.RootName {
			return z
		}
		next, end := wire.NextLabel(name, 0)
		if name = name[next:]; end {
			name = dns.RootName
		}
	}
}

// addLinked adds the names of records that link to records of the changed names: an alias changes with the name of its host, which may be
// in a zone that is not deployed.
func (p *plan) addLinked(work works, changed []string, deployed func(id string) (deployedZone, bool, error)) error {
	var joined, linked []string // joined are the changed names of zones that are examined as a whole
	for z, w := range work {
		is, _, err := deployed(z.id)
		if err != nil {
			return err
		}
		if !w.needsFullCheck(is) {
			continue
		}
		joined = append(joined, w.keys...)
		if err := p.tx.Each(func(scan func(...any) error) error {
			var key string
			err := scan(&key)
			linked = append(linked, key)
			return err
		}, "SELECT DISTINCT s.key FROM resource t JOIN reference f ON f.target = t.id AND f.field = 'linkedRecord' JOIN resource s ON s.id ="+
			" f.source WHERE t.parent = ? AND t.collection = 'resourceRecords' AND s.parent <> t.parent AND s.key IS NOT NULL",
			z.row.ID); err != nil {
			return err
		}
	}
	slices.Sort(joined)
	keys := slices.Sorted(slices.Values(changed))
	for _, key := range slices.Compact(keys) {
		if _, found := slices.BinarySearch(joined, key); found {
			continue
		}
		rows, err := p.tx.ResourcesByKey(p.configuration, key)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.Collection != "resourceRecords" {
				continue
			}
			links, err := p.tx.Referring(r.ID)
			if err != nil {
				return err
			}
			for _, l := range links {
				if l.Field != "linkedRecord" {
					continue
				}
				other, err := p.tx.Get(l.Target)
				if err != nil {
					return err
				}
				linked = append(linked, other.Key)
			}
		}
	}
	slices.Sort(linked)
	p.addNames(work, slices.Compact(linked))
	for _, w := range work {
		slices.Sort(w.keys)
		w.keys = slices.Compact(w.keys)
	}
	return nil
}
