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

// aliasJobs returns the jobs that create aliases. An alias whose target is another new alias is created after it.
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
				if !yield(func() error { return i.skip(rr, "its target is an alias that points back to it") }) {
					return
				}
			}
			return
		}
	}
}

func (i *zoneImport) createAlias(alias *wire.CNAME) error {
	if alias.Target == dns.RootName {
		return i.skipRefused(alias, problem.Invalid("linkedRecord", "an AliasRecord cannot point to the root"))
	}
	link, err := i.findTarget(alias.Target)
	if err != nil {
		return i.skipRefused(alias, err)
	}
	o := &dns.AliasRecord{LinkedRecord: link}
	o.Type = "AliasRecord"
	return i.create(alias, o, alias.Header().Ttl)
}

// findTarget returns the record with a name, or creates an external host for the name.
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

// cleanName converts a name from the form of the DNS library to the form of this package.
func cleanName(name string) string {
	text, err := naming.ASCII(naming.Clean(name))
	if err != nil { // invalid names are rejected later
		return name
	}
	return text
}

// replaceExternalHost redirects links from an external host to a new record of the same name, and deletes the external host.
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

// relink redirects the links from one record to another.
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

// linkable are the record types that all linking records can link to.
var linkable = []string{"HostRecord", "AliasRecord", "GenericRecord", dns.ExternalHostType}
