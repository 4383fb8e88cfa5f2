package dnspublish

import (
	"bytes"
	"maps"
	"net/netip"
	"slices"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/wire/zonedata"
)

// names are owner names, as keys of wire format (zonedata.Key).
type names map[string]bool

// add adds a name.
func (n names) add(name string) error {
	owner, err := keyOf(name)
	if err == nil {
		n[owner] = true
	}
	return err
}

// keyOf returns the key of a name, as an owner of records (zonedata.Key).
func keyOf(name string) (string, error) {
	ascii, err := naming.ASCII(naming.Clean(name))
	if err != nil {
		return "", err
	}
	packed := make([]byte, 256)
	end, err := wire.PackDomainName(wire.CanonicalName(ascii), packed, 0, nil, false)
	return string(zonedata.Key(packed[:max(end, 0)])), err
}

// reverseRange returns the addresses of a reverse zone; ok is false for any other zone.
func (z *plannedZone) reverseRange() (low, high netip.Addr, ok bool) {
	return naming.ReverseRange(z.row.Key)
}

// addresses returns the addresses in the range of a reverse zone; nil for any other zone.
func (z *plannedZone) addresses(all []netip.Addr) (mine []netip.Addr) {
	low, high, ok := z.reverseRange()
	if !ok {
		return nil
	}
	for _, a := range all {
		if a.BitLen() == low.BitLen() && !a.Less(low) && !high.Less(a) {
			mine = append(mine, a)
		}
	}
	return mine
}

// withReverse completes names and addresses of a zone: it adds the addresses of reverse names, and the reverse names of addresses. A
// reverse name has the PTR records of its address, and records of its own.
func (z *plannedZone) withReverse(keys []string, back []netip.Addr) ([]string, []netip.Addr, error) {
	back = slices.Clone(back)
	for _, key := range keys {
		if a, ok := naming.ReverseAddress(key, z.row.Key); ok {
			back = append(back, a)
		}
	}
	slices.SortFunc(back, netip.Addr.Compare)
	back = z.addresses(slices.Compact(back))
	all := slices.Clone(keys)
	for _, a := range back {
		name, err := naming.ReverseName(a, z.row.Key)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, naming.Key(naming.Join(name, z.row.Key)))
	}
	slices.Sort(all)
	return slices.Compact(all), back, nil
}

// partialPublication returns the changes of some names of a zone, and of the reverse names of some addresses. framed are further names, as
// absolute names in lower case, whose delegations, name servers or keys have changed.
func (p *plan) partialPublication(z *plannedZone, deployed deployedZone, keys []string, back []netip.Addr, framed []string, now time.Time) (
	c *publication, err error,
) {
	defer recoverFault(&err)
	keys, back, err = z.withReverse(keys, back)
	if err != nil {
		return nil, err
	}
	owners := names{}
	for _, key := range keys {
		if err := owners.add(key); err != nil {
			return nil, err
		}
	}
	further := len(framed) > 0
	if !further {
		if further, err = p.touchesFrame(z, owners); err != nil {
			return nil, err
		}
	}
	switch {
	case further && !p.framed(z):
		return p.publication(z, nil, now)
	case further:
		all := map[string]bool{}
		for _, name := range framed {
			all[name] = true
		}
		for _, key := range keys {
			name, err := naming.FQDN(key)
			if err != nil {
				return nil, err
			}
			all[wire.CanonicalName(name)] = true
		}
		return p.framePublication(z, deployed, all, now)
	case len(owners) == 0:
		return nil, nil
	}
	rrs, err := dns.NameData(p.tx, p.api, z.row, keys, back)
	if err != nil {
		return nil, err
	}
	after, err := compileRecords(z.fqdn(), rrs)
	if err != nil {
		return nil, err
	}
	before, err := p.deployedOf(z.id, owners)
	if err != nil {
		return nil, err
	}
	return p.changeOf(z, deployed, before, after, now)
}

// compileRecords returns the records of some names as they are in a compiled zone, without the SOA.
func compileRecords(apex string, rrs []wire.RR) ([]zonedata.Entry, error) {
	head := &wire.SOA{Hdr: wire.RR_Header{Name: apex, Rrtype: wire.TypeSOA, Class: wire.ClassINET}, Ns: ".", Mbox: "."}
	zone, err := naming.Compile(apex, append(rrs, head))
	if err != nil {
		return nil, err
	}
	all, err := entriesOf(zone)
	return slices.DeleteFunc(all, func(e zonedata.Entry) bool { return e.Record().Type() == wire.TypeSOA }), err
}

// touchesFrame reports whether one of the names affects more than its own records: the name of the zone itself, of a zone below it, or of
// a name server. It removes names in zones below that do not affect this zone from owners.
func (p *plan) touchesFrame(z *plannedZone, owners names) (bool, error) {
	apex, err := keyOf(z.row.Key)
	if err != nil || z.row.Type != "Zone" && !p.isPolicy(z) || owners[apex] {
		return true, err
	}
	if p.isPolicy(z) { // each name of a policy zone is independent
		return false, nil
	}
	framed, err := p.framedNames(z)
	if err != nil {
		return true, err
	}
	for owner := range owners {
		if framed[owner] {
			return true, nil
		}
	}
	cuts, err := p.cutsOf(z.view)
	if err != nil {
		return true, err
	}
	_, _, reverse := z.reverseRange()
	for owner := range owners {
		cut := cutAbove(owner, apex, cuts)
		if cut == "" {
			continue
		}
		if cut == owner {
			return true, nil
		}
		entries, err := p.deployedOf(z.id, names{owner: true, cut: true})
		if err != nil {
			return true, err
		}
		for _, e := range entries {
			if string(e.Key()) == owner || e.Record().Type() == wire.TypeNS && string(zonedata.Key(lower(e.Record().Data()))) == owner {
				return true, nil
			}
		}
		if !reverse { // a reverse zone has the names of its addresses, whichever zones are below it
			delete(owners, owner)
		}
	}
	return false, nil
}

// lower returns a name in wire format in lower case.
func lower(name []byte) []byte { return bytes.ToLower(name) }

// cutAbove returns the first zone below the apex, from the top down, that contains a name; empty if there is none.
func cutAbove(owner, apex string, cuts map[string]bool) string {
	for i := len(apex); i < len(owner); i++ {
		if owner[i] == 0 && cuts[owner[:i+1]] {
			return owner[:i+1]
		}
	}
	return ""
}

// cutsOf returns the keys of all zones of a view.
func (p *plan) cutsOf(view int64) (map[string]bool, error) {
	if cuts, known := p.cuts[view]; known {
		return cuts, nil
	}
	cuts := map[string]bool{}
	for _, key := range p.apexes[view] {
		cut, err := keyOf(key)
		if err != nil {
			return nil, err
		}
		cuts[cut] = true
	}
	p.cuts[view] = cuts
	return cuts, nil
}

// deployedOf returns the deployed records of some names of a zone, sorted.
func (p *plan) deployedOf(zone string, owners names) (all []zonedata.Entry, err error) {
	return deployedOf(p.tx, zone, owners)
}

// deployedOf reads each part of the zone once: the sorted names of a part follow each other.
func deployedOf(tx *store.Tx, zone string, owners names) (all []zonedata.Entry, err error) {
	var next []byte
	read := false
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if read && (next == nil || owner < string(next)) {
			continue
		}
		var entries []zonedata.Entry
		if _, next, entries, err = readPart(tx, zone, []byte(owner)); err != nil {
			return nil, err
		}
		read = true
		for _, e := range entries {
			if owners[string(e.Key())] {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, zonedata.Entry.Compare)
	return all, nil
}

// soaOf returns the deployed SOA record of a zone.
func (p *plan) soaOf(z *plannedZone) (soa zonedata.Entry, err error) {
	apex := names{}
	if err := apex.add(z.row.Key); err != nil {
		return soa, err
	}
	entries, err := p.deployedOf(z.id, apex)
	if err != nil {
		return soa, err
	}
	for _, e := range entries {
		if e.Record().Type() == wire.TypeSOA {
			return e, nil
		}
	}
	return soa, problem.BadRequest("InvalidDeploymentData", "the SOA record of zone %s has never been deployed",
		problem.Describe(z.row.ID, z.row.Key))
}
