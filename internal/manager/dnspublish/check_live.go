package dnspublish

import (
	"bytes"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/wire/zonedata"
)

// selectFailing returns the checks that prevent the deployment of a record, without those that only warn. some reports whether there are
// any. These checks examine the target of a record only for an alias.
func (c checks) selectFailing() (only checks, some bool) {
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

// checksFor returns the failing checks of the servers that answer for a zone.
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
		if only, some := of.selectFailing(); some {
			all = append(all, only)
		}
	}
	return all, nil
}

// rrset identifies an RRset by owner and type.
type rrset struct {
	owner string
	kind  uint16
}

// rrsetOf returns the RRset of an entry.
func rrsetOf(e zonedata.Entry) rrset { return rrset{string(e.Key()), e.Record().Type()} }

// withheld is a record that is not deployed: its name, and the reason as a sentence.
type withheld struct{ name, reason string }

// joinReasons returns the reasons as one error, up to the number of findings that are listed; nil where there are none.
func joinReasons(all []withheld) error {
	var f findings
	for _, one := range all {
		f.add("FAIL", "%s", one.reason)
	}
	return f.err()
}

// withholdRecords removes the records from a publication that the checks of the servers reject. For the name and type of such a record the
// deployed records stay; if an alias is added or removed at the name, those of the whole name stay. The result left is nil if nothing
// remains to be published. The result out lists the rejected records. Only new records are checked. They are checked again after each
// removal, because the records that stay may conflict with them.
func (p *plan) withholdRecords(z *plannedZone, c *publication) (left *publication, out []withheld, err error) {
	all, err := p.checksFor(z)
	if err != nil || len(all) == 0 {
		return c, nil, err
	}
	for left = c; left != nil; {
		bad, found, err := left.findFailing(p, z, all)
		if err != nil || len(bad) == 0 {
			return left, out, err
		}
		out = append(out, found...)
		if left, err = left.omitChanges(left.whereAliases(bad)); err != nil {
			return nil, nil, err
		}
	}
	return left, out, nil
}

// findFailing returns the RRsets with new records that the checks reject, and the reasons.
func (c *publication) findFailing(p *plan, z *plannedZone, all []checks) (bad map[rrset]bool, found []withheld, err error) {
	kinds, err := c.kinds(p)
	if err != nil {
		return nil, nil, err
	}
	bad = map[rrset]bool{}
	for _, e := range c.added {
		rr, err := e.Record().RR()
		if err != nil {
			return nil, nil, err
		}
		for _, only := range all {
			var f findings
			only.checkRecord(&f, z.fqdn(), rr, kinds)
			for _, why := range f.errors {
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

// whereAliases adds to RRsets of a publication all other types of their names where an alias is added or removed. Other data cannot exist
// beside an alias (RFC 1034 section 3.6.2), so such a name stays as it was.
func (c *publication) whereAliases(some map[rrset]bool) map[rrset]bool {
	changed := slices.Concat(c.added, c.removed)
	owners := map[string]bool{}
	for one := range some {
		owners[one.owner] = false
	}
	for _, e := range changed {
		if _, is := owners[string(e.Key())]; is && e.Record().Type() == wire.TypeCNAME {
			owners[string(e.Key())] = true
		}
	}
	for _, e := range changed {
		if owners[string(e.Key())] {
			some[rrsetOf(e)] = true
		}
	}
	return some
}

// kinds returns the types at the names of a publication and at the targets of its records, as far as these are in the zone.
func (c *publication) kinds(p *plan) (map[string]map[uint16]bool, error) {
	kinds, targets := map[string]map[uint16]bool{}, names{}
	note := func(e zonedata.Entry) {
		owner := string(e.Record().Owner())
		if kinds[owner] == nil {
			kinds[owner] = map[uint16]bool{}
		}
		kinds[owner][e.Record().Type()] = true
	}
	for _, e := range c.added {
		note(e)
		rr, err := e.Record().RR()
		if err != nil {
			return nil, err
		}
		for _, target := range targetsOf(rr) {
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
			return bytes.Equal(one.Key(), e.Key()) && bytes.Equal(one.Record(), e.Record())
		}) {
			note(e)
		}
	}
	return kinds, nil
}

// omitChanges returns a publication without its changes of some RRsets; nil if only a change of the serial number would remain.
func (c *publication) omitChanges(some map[rrset]bool) (*publication, error) {
	left := *c
	taken := func(e zonedata.Entry) bool { return some[rrsetOf(e)] }
	left.added = slices.DeleteFunc(slices.Clone(c.added), taken)
	left.removed = slices.DeleteFunc(slices.Clone(c.removed), taken)
	other := func(e zonedata.Entry) bool { return e.Record().Type() != wire.TypeSOA } // not only the serial number
	if c.existed && !slices.ContainsFunc(left.added, other) && !slices.ContainsFunc(left.removed, other) {
		return nil, nil
	}
	if c.after != nil {
		whole := func(e zonedata.Entry) string { return string(e.Key()) + "\x00" + string(e.Record()) }
		out := map[string]bool{} // unchanged records are in neither list, and stay
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

// targetsOf returns the targets of a record, for the types that are checked.
func targetsOf(rr wire.RR) []string {
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
