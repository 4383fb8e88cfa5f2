package resource

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"portolan/internal/published"
	"portolan/internal/store"
)

// Registry takes what the rooms declare: collections with their types, and what links them beyond their fields. How the
// collections hang together follows from that and from the published facts (NewAPI).
type Registry struct {
	// Facts are what is published.
	Facts       Facts
	collections []*Collection
	links       []Links
	headers     []RequestHeader
	computed    []ComputedSub
	extensions  []*store.Extension
}

// Extension declares what a room keeps in a database beside the rows of resources.
func (r *Registry) Extension(e *store.Extension) { r.extensions = append(r.extensions, e) }

// Layout is what all that was declared keeps in a database.
func (r *Registry) Layout() *store.Layout {
	l := &store.Layout{Extensions: append([]*store.Extension{idempotencyExtension()}, r.extensions...)}
	for _, c := range r.collections {
		if c.Unlogged {
			l.Unlogged = append(l.Unlogged, c.Name)
		}
		if c.Scope {
			l.Scopes = c.Name
		}
	}
	return l
}

// Facts are what is published of the collections.
type Facts interface {
	// Subs gives the subcollections of a collection, in the order of its links.
	Subs(collection string) []published.Sub
	// Methods gives the published methods of a path, in parts below the base.
	Methods(parts []string) []string
}

// Collection declares a collection with its types, each by a sample.
func (r *Registry) Collection(c Collection, samples ...Object) {
	for _, sample := range samples {
		c.Types = append(c.Types, Declare(sample))
	}
	r.collections = append(r.collections, &c)
}

// Header declares a header that is taken with resources of every type.
func (r *Registry) Header(h RequestHeader) { r.headers = append(r.headers, h) }

// Links are links that are no fields: a published subcollection of that name holds them.
type Links struct {
	// Name is the name of the subcollection, and of the links where they are kept.
	Name string
	// From are the collections that they lead from; empty: those that have such a subcollection.
	From []string
	// To is the collection that they lead to.
	To string
	// Back is the subcollection of what they lead to that holds where they come from; empty where there is none.
	Back string
	// Joined is told of a link that POST has made.
	Joined func(c *Change, source, target *store.Resource) error
}

// Links declares links.
func (r *Registry) Links(l Links) { r.links = append(r.links, l) }

// ComputedSub is a subcollection whose resources are found out each time.
type ComputedSub struct {
	// Of is the collection below whose resources it hangs, Name its name there.
	Of, Name string
	// Find gives the ids of what it holds.
	Find func(tx *store.Tx, a *API, above *store.Resource) ([]int64, error)
}

// Computed declares a computed subcollection.
func (r *Registry) Computed(c ComputedSub) { r.computed = append(r.computed, c) }

// complete sets what follows of a collection from the facts: its methods and its subcollections.
func (a *API) complete(c *Collection, r *Registry) {
	all, one := r.Facts.Methods([]string{c.Name}), r.Facts.Methods([]string{c.Name, "1"})
	c.Post, c.Inner = slices.Contains(all, http.MethodPost), len(all) == 0
	c.NoPut, c.NoDelete = !slices.Contains(one, http.MethodPut), !slices.Contains(one, http.MethodDelete)
	c.ReadOnly = c.NoPut && c.NoDelete && !slices.Contains(one, http.MethodPatch)
	for _, p := range r.Facts.Subs(c.Name) {
		s := a.relate(c, p, r)
		s.Name = p.Name
		if s.Relation != Unbuilt {
			s.Post, s.Item, s.Drop = p.Post, p.Item, p.Delete
			if s.Relation == Linked || s.Relation == Linking { // what can be linked can be looked at, and unlinked
				s.Item, s.Drop = s.Item || s.Post, s.Drop || s.Post
			}
			if s.Post && s.Relation == Children {
				s.Types = slices.DeleteFunc(s.Types, func(name string) bool { return a.types[name].notMade })
				s.Post = len(s.Types) > 0
			}
		}
		c.Subs = append(c.Subs, s)
	}
}

// relate finds how what a subcollection holds belongs to the resource above: by a field of one of them, by links, or as
// its children. Relation is Unbuilt where nothing that is declared says how.
func (a *API) relate(c *Collection, p published.Sub, r *Registry) Sub {
	for _, one := range r.computed {
		if one.Of == c.Name && one.Name == p.Name {
			return Sub{Relation: Computed, Items: a.holds(p), Find: one.Find}
		}
	}
	var refs []string
	for _, t := range c.Types {
		if f := t.byName[p.Name]; f != nil && f.Kind == References {
			refs = append(refs, f.Refs...)
		}
	}
	if refs != nil {
		return Sub{Relation: Linked, Field: p.Name, Items: a.collectionsOf(refs)}
	}
	if s, ok := a.relateByLinks(c, p, r); ok {
		return s
	}
	if s, ok := a.relateBack(c, p); ok {
		return s
	}
	return a.relateChildren(c, p)
}

// relateByLinks finds links that are no fields.
func (a *API) relateByLinks(c *Collection, p published.Sub, r *Registry) (Sub, bool) {
	for _, l := range r.links {
		switch {
		case l.Name == p.Name && (len(l.From) == 0 && !a.byName[l.To].under(c.Name) || slices.Contains(l.From, c.Name)):
			return Sub{Relation: Linked, Field: l.Name, Items: []string{l.To}, Open: true, Joined: l.Joined}, true
		case l.Back == p.Name && l.To == c.Name:
			from := l.From
			if len(from) == 0 {
				from = []string{"*"}
			}
			return Sub{Relation: Linking, Field: l.Name, Items: from, Open: true}, true
		}
	}
	return Sub{}, false
}

// relateBack finds the field that leads here and says so (Field.Back), in the types that are published there, or in
// any where those have none.
func (a *API) relateBack(c *Collection, p published.Sub) (Sub, bool) {
	var field string
	var all, listed []string
	for _, t := range a.allTypes() {
		for _, f := range t.Fields {
			if !slices.Contains(f.Back, p.Name) || !slices.ContainsFunc(c.Types, func(to *Type) bool { return slices.Contains(f.Refs, to.Name) }) {
				continue
			}
			if field != "" && field != f.Name {
				panic(fmt.Sprintf("%s/%s: both %s and %s lead there", c.Name, p.Name, field, f.Name))
			}
			field = f.Name
			all = append(all, t.Name)
			if slices.Contains(p.Types, t.Name) {
				listed = append(listed, t.Name)
			}
		}
	}
	if listed == nil {
		listed = all
	}
	return Sub{Relation: Linking, Field: field, Items: a.collectionsOf(listed), Types: listed}, field != ""
}

// relateChildren finds types that may lie below.
func (a *API) relateChildren(c *Collection, p published.Sub) Sub {
	items := a.collectionsOf(p.Types)
	s := Sub{Items: items}
	for _, item := range items {
		child := a.byName[item]
		if child.History {
			return Sub{Relation: History, Items: items}
		}
		if child.Vacant != nil || child.Narrow != nil {
			s.Vacant, s.Narrow = child.Vacant, child.Narrow
		}
		for _, t := range child.Types {
			if slices.Contains(t.ParentCollections(), c.Name) {
				s.Relation = Children
				s.Types = append(s.Types, t.Name)
			}
		}
	}
	return s
}

// under reports whether one of its types may lie below a resource of a collection.
func (c *Collection) under(parent string) bool {
	return slices.ContainsFunc(c.Types, func(t *Type) bool { return slices.Contains(t.ParentCollections(), parent) })
}

// holds gives the collections that a subcollection's resources are of; "*" where they may be of any.
func (a *API) holds(p published.Sub) []string {
	if len(p.Types) == 0 {
		return []string{"*"}
	}
	return a.collectionsOf(p.Types)
}

// collectionsOf gives the collections of those types that are declared, in order.
func (a *API) collectionsOf(types []string) []string {
	names := map[string]bool{}
	for _, name := range types {
		if t := a.types[name]; t != nil {
			names[t.Collection.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// ParentCollections gives the collections whose resources may be the parent of one of the type; "" says that one may
// have no parent.
func (t *Type) ParentCollections() []string {
	if t.parents != nil {
		return t.parents
	}
	return t.Collection.Parents
}
