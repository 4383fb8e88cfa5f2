package transfer

import (
	"iter"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
)

// aliasJobs gives the making of aliases, those first whose targets are no alias that is still to be made.
func (i *zoneImport) aliasJobs(records []wire.RR) iter.Seq[func() error] {
	return func(yield func(func() error) bool) {
		waiting := map[string]bool{}
		for _, rr := range records {
			waiting[wire.CanonicalName(rr.Header().Name)] = true
		}
		for len(records) > 0 {
			var later []wire.RR
			for _, rr := range records {
				alias, ok := rr.(*wire.CNAME)
				if !ok {
					continue
				}
				if waiting[wire.CanonicalName(alias.Target)] {
					later = append(later, rr)
					continue
				}
				if !yield(func() error { return i.createAlias(alias) }) {
					return
				}
				delete(waiting, wire.CanonicalName(rr.Header().Name))
			}
			if len(later) < len(records) {
				records = later
				continue
			}
			for _, rr := range later {
				if !yield(func() error { return i.skip(rr, "its target is an alias that leads back to it") }) {
					return
				}
			}
			return
		}
	}
}

func (i *zoneImport) createAlias(alias *wire.CNAME) error {
	if alias.Target == dns.RootName {
		return i.skipRefused(alias, problem.Invalid("linkedRecord", "an alias of the root: an AliasRecord leads to a name"))
	}
	link, err := i.findTarget(alias.Target)
	if err != nil {
		return i.skipRefused(alias, err)
	}
	o := &dns.AliasRecord{LinkedRecord: link}
	o.Type = "AliasRecord"
	return i.create(alias, o, alias.Header().Ttl)
}

// target finds the record that a name leads to, or makes it an external host.
func (i *zoneImport) findTarget(name string) (schema.Ref, error) {
	name = cleanName(name)
	same, err := dns.FindByName(i.c.Tx, i.zone.Configuration, i.view.ID, "resourceRecords", name)
	if err != nil {
		return schema.Ref{}, err
	}
	for _, r := range same {
		if slices.Contains(linkable, r.Type) {
			return schema.Ref{ID: r.ID}, nil
		}
	}
	return dns.ExternalHost(i.c, i.view, name)
}

// textOf gives a name that the DNS library wrote as names are written here.
func cleanName(name string) string {
	text, err := naming.ASCII(naming.Clean(name))
	if err != nil { // it is no name, and whatever checks it says so
		return name
	}
	return text
}

// adopt has records lead to one that is new, which have led to an external host of its name: that is none any more.
func (i *zoneImport) replaceExternalHost(row *store.Resource) error {
	if !slices.Contains(linkable, row.Type) {
		return nil
	}
	same, err := dns.FindByName(i.c.Tx, i.zone.Configuration, i.view.ID, "resourceRecords", row.Key)
	if err != nil {
		return err
	}
	for _, r := range same {
		if r.Type != dns.ExternalHostType {
			continue
		}
		if err := i.relink(r.ID, func() (schema.Ref, error) { return schema.Ref{ID: row.ID}, nil }); err != nil {
			return err
		}
		if err := i.c.Following().Delete(r); err != nil {
			return err
		}
	}
	return nil
}

// leadTo has the records that lead to one lead to another.
func (i *zoneImport) relink(from int64, to func() (schema.Ref, error)) error {
	links, err := i.c.Tx.Referring(from)
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Field != "linkedRecord" {
			continue
		}
		row, err := i.c.Tx.Get(l.Target)
		if err != nil {
			return err
		}
		other, err := to()
		if err != nil {
			return err
		}
		if _, err := i.c.Following(l.Field).Change(row, func(o schema.Object) {
			*i.c.API.TypeNamed(row.Type).RefOf(o, l.Field) = other
		}); err != nil {
			return err
		}
	}
	return nil
}

// linkable are the types of records that all records which lead to another may lead to.
var linkable = []string{"HostRecord", "AliasRecord", "GenericRecord", dns.ExternalHostType}
