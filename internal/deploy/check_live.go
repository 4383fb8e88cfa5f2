package deploy

import (
	"bytes"

	"portolan/internal/zonedata"

	wire "github.com/miekg/dns"
)

// failing are the checks that keep a zone from being deployed: those that only warn are left out. What a record leads to is looked at as
// far as an alias there is one of them.
func (c checks) failing() (only checks, some bool) {
	only = checks{Zones: c.Zones, Integrity: "NONE"}
	if !c.Zones {
		return only, false
	}
	for _, one := range []struct{ from, to *string }{{&c.MXAlias, &only.MXAlias}, {&c.MX, &only.MX}, {&c.Names, &only.Names},
		{&c.NS, &only.NS},
		{&c.SRVAlias, &only.SRVAlias}, {&c.Wildcard, &only.Wildcard}} {
		if *one.to = "IGNORE"; *one.from == "FAIL" {
			*one.to, some = "FAIL", true
		}
	}
	return only, some
}

// refused says what is wrong with what a live view would publish of a zone, where the servers that answer for it say that such is not
// deployed; nil where nothing is. Of the records those are looked at that are new.
func (p *plan) refused(z *plannedZone, c *publication) error {
	if p.isForeign(z) || p.isPolicy(z) {
		return nil
	}
	var f findings
	for _, server := range z.serversOf(assigned.answers) {
		all, known := p.checks[server]
		if !known {
			row, err := p.tx.Get(server)
			if err != nil {
				return err
			}
			if all, err = checksOf(p.tx, row); err != nil {
				return err
			}
			if p.checks == nil {
				p.checks = map[int64]checks{}
			}
			p.checks[server] = all
		}
		only, some := all.failing()
		if !some {
			continue
		}
		if err := only.added(&f, p, z, c); err != nil || len(f.faults) > 0 {
			break
		}
	}
	return f.err()
}

// added checks the records that a publication adds.
func (c checks) added(f *findings, p *plan, z *plannedZone, of *publication) error {
	kinds, apex := map[string]map[uint16]bool{}, z.fqdn()
	note := func(e zonedata.Entry) {
		owner := string(e.Record.Owner())
		if kinds[owner] == nil {
			kinds[owner] = map[uint16]bool{}
		}
		kinds[owner][e.Record.Type()] = true
	}
	targets := names{}
	for _, e := range of.added {
		note(e)
		rr, err := e.Record.RR()
		if err != nil {
			return err
		}
		for _, target := range leadsTo(rr) {
			if err := targets.add(target); err != nil {
				return err
			}
		}
	}
	if of.existed && len(targets) > 0 {
		there, err := p.deployedOf(z.id, targets)
		if err != nil {
			return err
		}
		gone := func(e zonedata.Entry) bool {
			for _, one := range of.removed {
				if bytes.Equal(one.Key, e.Key) && bytes.Equal(one.Record, e.Record) {
					return true
				}
			}
			return false
		}
		for _, e := range there {
			if !gone(e) {
				note(e)
			}
		}
	}
	for _, e := range of.added {
		rr, err := e.Record.RR()
		if err != nil {
			return err
		}
		c.record(f, apex, rr, kinds)
	}
	return nil
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
