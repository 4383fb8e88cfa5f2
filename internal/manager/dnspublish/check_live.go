package dnspublish

import (
	"bytes"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/wire/zonedata"
)

// failing are the checks that keep records from being deployed: those that only warn are left out. What a record leads to is looked at as
// far as an alias there is one of them.
func (c checks) failing() (only checks, some bool) {
	only = checks{Zones: c.Zones, Integrity: "NONE"}
	if !c.Zones {
		return only, false
	}
	for _, one := range []struct{ from, to *string }{{&c.MXAlias, &only.MXAlias}, {&c.MX, &only.MX}, {&c.Names, &only.Names},
		{&c.NS, &only.NS}, {&c.SRVAlias, &only.SRVAlias}, {&c.Wildcard, &only.Wildcard}} {
		if *one.to = "IGNORE"; *one.from == "FAIL" {
			*one.to, some = "FAIL", true
		}
	}
	return only, some
}

// checksFor are the checks that the servers that answer for a zone have.
func (p *plan) checksFor(z *plannedZone) (all []checks, err error) {
	if p.isForeign(z) || p.isPolicy(z) {
		return nil, nil
	}
	for _, server := range z.serversOf(assigned.answers) {
		of, known := p.checks[server]
		if !known {
			row, err := p.tx.Get(server)
			if err != nil {
				return nil, err
			}
			if of, err = checksOf(p.tx, row); err != nil {
				return nil, err
			}
			if p.checks == nil {
				p.checks = map[int64]checks{}
			}
			p.checks[server] = of
		}
		if only, some := of.failing(); some {
			all = append(all, only)
		}
	}
	return all, nil
}

// rrset is a name and a type.
type rrset struct {
	owner string
	kind  uint16
}

// rrsetOf is what an entry belongs to.
func rrsetOf(e zonedata.Entry) rrset { return rrset{string(e.Key), e.Record.Type()} }

// withheld is a record that is not deployed: by its name, and the sentence that says why, with its zone.
type withheld struct{ name, why string }

// words are the sentences, as many as are listed.
func words(all []withheld) error {
	var f findings
	for _, one := range all {
		f.add("FAIL", "%s", one.why)
	}
	return f.err()
}

// withhold takes out of what would be published of a zone the records that the servers say are not deployed: of their names and types, and
// where an alias comes or goes of their whole names, what was deployed before stays, and all else goes on. left is nil where nothing
// else is to be published; out says what was taken out. Records are looked at as far as they are new, and again behind what was taken out:
// what stays may be in their way.
func (p *plan) withhold(z *plannedZone, c *publication) (left *publication, out []withheld, err error) {
	all, err := p.checksFor(z)
	if err != nil || len(all) == 0 {
		return c, nil, err
	}
	for left = c; left != nil; {
		bad, found, err := left.failing(p, z, all)
		if err != nil || len(bad) == 0 {
			return left, out, err
		}
		out = append(out, found...)
		if left, err = left.without(left.whereAliases(bad)); err != nil {
			return nil, nil, err
		}
	}
	return left, out, nil
}

// failing gives the names and types of new records of a publication that checks fail.
func (c *publication) failing(p *plan, z *plannedZone, all []checks) (bad map[rrset]bool, found []withheld, err error) {
	kinds, err := c.kinds(p)
	if err != nil {
		return nil, nil, err
	}
	bad = map[rrset]bool{}
	for _, e := range c.added {
		rr, err := e.Record.RR()
		if err != nil {
			return nil, nil, err
		}
		for _, only := range all {
			var f findings
			only.record(&f, z.fqdn(), rr, kinds)
			for _, why := range f.faults {
				bad[rrsetOf(e)] = true
				one := withheld{naming.Key(rr.Header().Name), why}
				if !slices.Contains(found, one) {
					found = append(found, one)
				}
			}
		}
	}
	return bad, found, nil
}

// whereAliases adds to names and types of a publication all types of those names at which an alias comes or goes: nothing else may be
// beside one (RFC 1034 section 3.6.2), and what is withheld leaves the name as it was.
func (c *publication) whereAliases(some map[rrset]bool) map[rrset]bool {
	changed := slices.Concat(c.added, c.removed)
	owners := map[string]bool{}
	for one := range some {
		owners[one.owner] = false
	}
	for _, e := range changed {
		if _, is := owners[string(e.Key)]; is && e.Record.Type() == wire.TypeCNAME {
			owners[string(e.Key)] = true
		}
	}
	for _, e := range changed {
		if owners[string(e.Key)] {
			some[rrsetOf(e)] = true
		}
	}
	return some
}

// kinds are the types that the names of a publication have, and those that its records lead to, as far as they lie in the zone.
func (c *publication) kinds(p *plan) (map[string]map[uint16]bool, error) {
	kinds, targets := map[string]map[uint16]bool{}, names{}
	note := func(e zonedata.Entry) {
		owner := string(e.Record.Owner())
		if kinds[owner] == nil {
			kinds[owner] = map[uint16]bool{}
		}
		kinds[owner][e.Record.Type()] = true
	}
	for _, e := range c.added {
		note(e)
		rr, err := e.Record.RR()
		if err != nil {
			return nil, err
		}
		for _, target := range leadsTo(rr) {
			if err := targets.add(target); err != nil {
				return nil, err
			}
		}
	}
	if !c.existed || len(targets) == 0 {
		return kinds, nil
	}
	there, err := p.deployedOf(c.zone.id, targets)
	if err != nil {
		return nil, err
	}
	for _, e := range there {
		if !slices.ContainsFunc(c.removed, func(one zonedata.Entry) bool {
			return bytes.Equal(one.Key, e.Key) && bytes.Equal(one.Record, e.Record)
		}) {
			note(e)
		}
	}
	return kinds, nil
}

// without is a publication without what it changes of some names and types; nil where it changes nothing else, but for the serial number.
func (c *publication) without(some map[rrset]bool) (*publication, error) {
	left := *c
	taken := func(e zonedata.Entry) bool { return some[rrsetOf(e)] }
	left.added = slices.DeleteFunc(slices.Clone(c.added), taken)
	left.removed = slices.DeleteFunc(slices.Clone(c.removed), taken)
	other := func(e zonedata.Entry) bool { return e.Record.Type() != wire.TypeSOA } // than the serial number
	if c.existed && !slices.ContainsFunc(left.added, other) && !slices.ContainsFunc(left.removed, other) {
		return nil, nil
	}
	if c.after != nil {
		whole := func(e zonedata.Entry) string { return string(e.Key) + "\x00" + string(e.Record) }
		out := map[string]bool{} // what is the same before and behind is in neither list, and stays
		for _, e := range c.added {
			if taken(e) {
				out[whole(e)] = true
			}
		}
		left.after = slices.DeleteFunc(slices.Clone(c.after), func(e zonedata.Entry) bool { return taken(e) && out[whole(e)] })
		for _, e := range c.removed {
			if taken(e) {
				left.after = append(left.after, e)
			}
		}
		slices.SortFunc(left.after, zonedata.Entry.Compare)
	}
	return &left, left.count()
}

// leadsTo are the names that a record leads to, of those that are checked.
func leadsTo(rr wire.RR) []string {
	switch x := rr.(type) {
	case *wire.MX:
		return []string{x.Mx}
	case *wire.SRV:
		return []string{x.Target}
	case *wire.NS:
		return []string{x.Ns}
	}
	return nil
}
