package dns

import (
	"iter"
	"slices"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"

	"github.com/miekg/dns"
)

// aliasJobs gives the making of aliases, those first whose targets are no alias that is still to be made.
func (i *zoneImport) aliasJobs(records []dns.RR) iter.Seq[func() error] {
	return func(yield func(func() error) bool) {
		waiting := map[string]bool{}
		for _, rr := range records {
			waiting[dns.CanonicalName(rr.Header().Name)] = true
		}
		for len(records) > 0 {
			var later []dns.RR
			for _, rr := range records {
				alias, ok := rr.(*dns.CNAME)
				if !ok {
					continue
				}
				if waiting[dns.CanonicalName(alias.Target)] {
					later = append(later, rr)
					continue
				}
				if !yield(func() error { return i.makeAlias(alias) }) {
					return
				}
				delete(waiting, dns.CanonicalName(rr.Header().Name))
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

func (i *zoneImport) makeAlias(alias *dns.CNAME) error {
	if alias.Target == root {
		return i.refused(alias, problem.Invalid("linkedRecord", "an alias of the root: an AliasRecord leads to a name"))
	}
	link, err := i.target(alias.Target)
	if err != nil {
		return i.refused(alias, err)
	}
	o := &AliasRecord{LinkedRecord: link}
	o.Type = "AliasRecord"
	return i.create(alias, o, alias.Header().Ttl)
}

// target finds the record that a name leads to, or makes it an external host.
func (i *zoneImport) target(name string) (schema.Ref, error) {
	name = textOf(name)
	same, err := sameName(i.c.Tx, i.zone.Configuration, i.view.ID, "resourceRecords", name)
	if err != nil {
		return schema.Ref{}, err
	}
	for _, r := range same {
		if slices.Contains(linkable, r.Type) {
			return schema.Ref{ID: r.ID}, nil
		}
	}
	return externalHost(i.c, i.view, name)
}

// textOf gives a name that the DNS library wrote as names are written here.
func textOf(name string) string {
	text, err := naming.ASCII(naming.Clean(name))
	if err != nil { // it is no name, and whatever checks it says so
		return name
	}
	return text
}

// externalHost finds or makes the record of an external host in a view, and the zone for it.
func externalHost(c *resource.Change, view *store.Resource, name string) (schema.Ref, error) {
	zone, err := externalHosts(c.Tx, view.ID)
	if err != nil {
		return schema.Ref{}, err
	}
	n := c.FollowingAsked("name")
	if zone == nil { // it was deleted by an undo
		if zone, err = makeExternalHosts(c, view.ID, view.Configuration); err != nil {
			return schema.Ref{}, err
		}
	}
	found, err := c.Tx.ByKey(view.Configuration, naming.Key(name))
	if err != nil {
		return schema.Ref{}, err
	}
	for _, r := range found {
		if r.Parent == zone.ID {
			return schema.Ref{ID: r.ID}, nil
		}
	}
	h := &ExternalHostRecord{}
	h.Type, h.Name, h.Parent, h.Config = externalHostType, name, zone.ID, view.Configuration
	t, _ := c.API.Type(h.Type)
	row, err := n.Create(t, h)
	if err != nil {
		return schema.Ref{}, err
	}
	return schema.Ref{ID: row.ID}, nil
}

// adopt has records lead to one that is new, which have led to an external host of its name: that is none any more.
func (i *zoneImport) adopt(row *store.Resource) error {
	if !slices.Contains(linkable, row.Type) {
		return nil
	}
	same, err := sameName(i.c.Tx, i.zone.Configuration, i.view.ID, "resourceRecords", row.Key)
	if err != nil {
		return err
	}
	for _, r := range same {
		if r.Type != externalHostType {
			continue
		}
		if err := i.leadTo(r.ID, func() (schema.Ref, error) { return schema.Ref{ID: row.ID}, nil }); err != nil {
			return err
		}
		if err := i.c.Following().Delete(r); err != nil {
			return err
		}
	}
	return nil
}

// leadTo has the records that lead to one lead to another.
func (i *zoneImport) leadTo(from int64, to func() (schema.Ref, error)) error {
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
var linkable = []string{"HostRecord", "AliasRecord", "GenericRecord", externalHostType}

const externalHostType = "ExternalHostRecord"
