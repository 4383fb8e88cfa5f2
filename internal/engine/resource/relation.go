package resource

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"portolan/internal/engine/published"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Registry takes what the rooms declare: collections with their types, and what links them beyond their fields. How the
// collections hang together follows from that and from the published facts (NewAPI).
type Registry struct {
	// Facts are what is published.
	Facts Facts
	// Manager is what the manager knows of itself, once it has started.
	Manager     *Manager
	provisions  *Provisions
	collections []*Collection
	links       []Links
	headers     []RequestHeader
	computed    []ComputedSub
	further     []FurtherSub
	joined      []JoinedSub
	extensions  []*store.Extension
	rules       []Rule
	seeds       []func(c *Change) error
	userFields  UserFields
	demand      Demand
	respan      func(tx *store.Tx, moves []Respan) (blocked *store.Resource, err error)
	// descriptions are the doc comments of the declarations.
	descriptions map[string]string
}

// Extension declares what a room keeps in a database beside the rows of resources.
func (r *Registry) Extension(e *store.Extension) { r.extensions = append(r.extensions, e) }

// Layout is what all that was declared keeps in a database.
func (r *Registry) Layout() *store.Layout {
	l := &store.Layout{Extensions: r.extensions}
	for _, c := range r.merged() {
		if c.Unlogged {
			l.Unlogged = append(l.Unlogged, c.Name)
		}
		if c.Scope {
			l.Scopes = c.Name
		}
		if c.Space == HoldsSpace || c.Space == LiesOverSpace {
			l.Spaced = append(l.Spaced, store.Spaced{Collection: c.Name, Below: c.Parents})
		}
		for _, t := range c.Types {
			for _, f := range t.Fields {
				i := store.Index{Collection: c.Name, Field: f.Name}
				if f.Indexed && c.From == "" && !slices.Contains(l.Indexes, i) {
					l.Indexes = append(l.Indexes, i)
				}
				if f.Searched && !slices.Contains(l.Searched, i) {
					l.Searched = append(l.Searched, i)
				}
			}
		}
	}
	return l
}

// Facts are what is published of the collections.
type Facts interface {
	// Subs gives the subcollections of a collection, in the order of its links.
	Subs(collection string) []published.Sub
	// Inner reports whether resources of a collection have no path of their own.
	Inner(collection string) bool
	// Methods gives the published methods of a path, in parts below the base.
	Methods(parts []string) []string
}

// Collection declares a collection with its types, each by a sample. Of a collection that another room declares one may
// declare further types, parents and options: there is one declaration of everything else.
func (r *Registry) Collection(c Collection, samples ...schema.Object) {
	for _, sample := range samples {
		c.Types = append(c.Types, schema.Declare(sample))
	}
	r.collections = append(r.collections, &c)
}

// Report declares what is told of each resource of a collection that any room declares.
func (r *Registry) Report(collection string, rep Report) {
	r.collections = append(r.collections, &Collection{Name: collection, Reports: []Report{rep}})
}

// merged gives the collections, each with all that was declared of it, in the order of their names, as
// their types are.
func (r *Registry) merged() (all []*Collection) {
	byName := map[string]*Collection{}
	for _, c := range r.collections {
		whole := byName[c.Name]
		if whole == nil {
			whole = &Collection{Name: c.Name}
			byName[c.Name] = whole
			all = append(all, whole)
		}
		more := *c
		more.Types, more.Parents = slices.Concat(whole.Types, c.Types), slices.Concat(whole.Parents, c.Parents)
		more.Options, more.Reports = slices.Concat(whole.Options, c.Options), slices.Concat(whole.Reports, c.Reports)
		if !c.partial() {
			if !whole.partial() {
				panic("the collection " + c.Name + " is declared twice")
			}
			*whole = more
			continue
		}
		whole.Types, whole.Parents, whole.Options, whole.Reports = more.Types, more.Parents, more.Options, more.Reports
	}
	slices.SortFunc(all, func(x, y *Collection) int { return strings.Compare(x.Name, y.Name) })
	for _, c := range all {
		slices.SortFunc(c.Types, func(x, y *schema.Type) int { return strings.Compare(x.Name, y.Name) })
	}
	return all
}

// Having gives the collections of which something holds, in the order of their names.
func (r *Registry) Having(holds func(*Collection) bool) (names []string) {
	for _, c := range r.merged() {
		if holds(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// EachType calls fn for every declared type.
func (r *Registry) EachType(fn func(t *schema.Type)) {
	for _, c := range r.collections {
		for _, t := range c.Types {
			fn(t)
		}
	}
}

// partial reports whether nothing but a name, types, parents and options is declared.
func (c *Collection) partial() bool {
	rest := *c
	rest.Name, rest.Types, rest.Parents, rest.Options, rest.Reports = "", nil, nil, nil, nil
	return reflect.ValueOf(rest).IsZero()
}

// Rule is what a room has to do with resources of types that another room declares: it runs behind their own rule.
type Rule struct {
	Types []string
	// AfterWrite runs when a resource of the types was written (AfterWriter), BeforeDelete before one goes (BeforeDeleter).
	AfterWrite, BeforeDelete func(c *Change) error
}

// Rule declares a rule.
func (r *Registry) Rule(rule Rule) { r.rules = append(r.rules, rule) }

// UserFields says what is asked of the user-defined fields of resources, whatever their type.
type UserFields interface {
	// Open is called with the store and what it has, before anything else.
	Open(s *store.Store, a *API)
	// Check reads those of a resource that is about to be written.
	Check(c *Change) error
	// Missing gives the fields that resources of a type show though they do not set them; nil where there are none.
	Missing(tx *store.Tx, a *API, typeName string) (map[string]*string, error)
	// Defaults gives what resources show in a field that they do not set, by their types; those types are left out that show nothing.
	Defaults(name string) (map[string]string, error)
	// Indexes gives the indexes of fields that there shall be; Found notes which there are, and Indexed reports whether one of a field of
	// resources in a collection is among these.
	Indexes(tx *store.Tx, a *API) ([]store.Index, error)
	Found(there map[store.Index]bool)
	Indexed(collection, name string) bool
}

// UserFields declares what is asked of user-defined fields.
func (r *Registry) UserFields(u UserFields) { r.userFields = u }

// Demand is what is asked of every request that changes something.
type Demand interface {
	// Open is called with the store, before anything else.
	Open(s *store.Store)
	// Ask refuses a change of a collection, which came with a comment.
	Ask(tx *store.Tx, a *API, collection, comment string) error
}

// Demand declares what is asked of every change.
func (r *Registry) Demand(d Demand) { r.demand = d }

// Respan declares the function that updates free space when an undo creates, deletes or moves rows (API.Respan).
func (r *Registry) Respan(fn func(tx *store.Tx, moves []Respan) (blocked *store.Resource, err error)) {
	r.respan = fn
}

// Seed declares what every manager has from its first start on: seed makes what of it is missing, and is run at each start.
func (r *Registry) Seed(seed func(c *Change) error) { r.seeds = append(r.seeds, seed) }

// Seed makes what every manager has.
func (a *API) Seed(tx *store.Tx) error {
	for _, seed := range a.seeds {
		if err := seed(&Change{Tx: tx, API: a, Given: map[string]bool{}, Extra: map[string]string{}}); err != nil {
			return err
		}
	}
	return nil
}

// Describe takes descriptions of types and fields, by Type and Type.field.
func (r *Registry) Describe(descriptions map[string]string) { maps.Copy(r.described(), descriptions) }

func (r *Registry) described() map[string]string {
	if r.descriptions == nil {
		r.descriptions = map[string]string{}
	}
	return r.descriptions
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
	// Below is the collection below whose resources it hangs, Type the one type of it that has it, all where it is empty; Name
	// is its name there.
	Below, Type, Name string
	// Items are the collections of what a subcollection of ours holds; nil where it is published.
	Items []string
	// From is the source that what it holds comes from, where that is not there any more; empty for resources.
	From store.Source
	// Asks: a POST asks for what it names, where that is published (Sub.Asks).
	Asks bool
	// Find gives the ids of what it holds.
	Find func(tx *store.Tx, a *API, above *store.Resource) ([]int64, error)
}

// JoinedSub is a published subcollection whose resources are joined to the one above by others, which are not shown: what it holds comes
// from a source of its own, in which the parent is the resource above and the number that of the one it is joined to.
type JoinedSub struct {
	// Name is the name of the subcollection, and of the collection with the source.
	Name string
	// Make joins what a request names to the resource above, and gives its number. Remove takes it away.
	Make   func(c *Change, above *store.Resource) (id int64, err error)
	Remove func(c *Change, above *store.Resource, item int64) error
}

// Joined declares such a subcollection.
func (r *Registry) Joined(s JoinedSub) { r.joined = append(r.joined, s) }

// FurtherSub is a subcollection that resources do not link to, as it is published elsewhere alone: what is made below them, or what
// refers to them.
type FurtherSub struct {
	// Below is the collection below whose resources it hangs, Name its name there, Item the collection of what it holds.
	Below, Name, Item string
	// Types are the types that POST makes; none where Field is the field of what it holds that leads to the resource above.
	Types []string
	Field string
}

// Further declares a subcollection that is not linked to.
func (r *Registry) Further(s FurtherSub) { r.further = append(r.further, s) }

// Computed declares a computed subcollection.
func (r *Registry) Computed(c ComputedSub) { r.computed = append(r.computed, c) }

// complete sets what follows of a collection from the facts: its methods and its subcollections.
func (a *API) complete(c *Collection, r *Registry) {
	all, one := r.Facts.Methods([]string{c.Path()}), r.Facts.Methods([]string{c.Path(), "1"})
	if c.Ours {
		all, one = []string{methodGet, methodPost}, []string{methodGet, methodPut, methodPatch, methodDelete}
	}
	c.Post, c.Inner = slices.Contains(all, methodPost), !c.Ours && c.At == "" && r.Facts.Inner(c.Name)
	c.NoPut, c.NoDelete = !slices.Contains(one, methodPut), !slices.Contains(one, methodDelete)
	c.ReadOnly = c.NoPut && c.NoDelete && !slices.Contains(one, methodPatch)
	for _, p := range r.Facts.Subs(c.Path()) {
		s := a.relate(c, p, r)
		s.Name, s.Later = p.Name, p.Later
		if s.Relation != Unbuilt {
			s.Post, s.Item, s.Drop = p.Post, p.Item, p.Delete
			s.Change, s.NoPut = p.Put || p.Patch, !p.Put
			if s.Relation == Computed { // what is found out is neither made nor unlinked
				s.Asks = s.Asks && p.Post
				s.Post, s.Drop = s.Asks, false
			}
			if s.Relation == Linked || s.Relation == Linking { // what can be linked can be looked at, and unlinked
				s.Item, s.Drop = s.Item || s.Post, s.Drop || s.Post
			}
			if s.Post && s.Relation == Children {
				s.Types = slices.DeleteFunc(s.Types, func(name string) bool { return a.types[name].NotMade })
				s.Post = len(s.Types) > 0
			}
		}
		c.Subs = append(c.Subs, s)
	}
	for _, one := range r.further {
		if one.Below != c.Name {
			continue
		}
		s := Sub{Name: one.Name, Ours: true, Relation: Children, Items: []string{one.Item}, Types: one.Types, Post: true, Item: true}
		if one.Field != "" {
			s.Relation, s.Post, s.Field = Linking, false, one.Field
		}
		c.Subs = append(c.Subs, s)
	}
	for _, one := range r.computed {
		if one.Below == c.Name && one.Items != nil && c.Sub(one.Name) == nil {
			c.Subs = append(c.Subs, Sub{Name: one.Name, Ours: true, Relation: Computed, Items: one.Items, From: one.From,
				Find: r.finder(c.Name, one.Name)})
		}
	}
}

// relate finds how what a subcollection holds belongs to the resource above: by a field of one of them, by links, or as
// its children. Relation is Unbuilt where nothing that is declared says how.
func (a *API) relate(c *Collection, p published.Sub, r *Registry) Sub {
	for _, j := range r.joined {
		if j.Name == p.Name {
			return Sub{Relation: Children, Items: []string{j.Name}, Types: []string{a.byName[j.Name].Types[0].Name}, Make: j.Make, Remove: j.Remove}
		}
	}
	if find := r.finder(c.Name, p.Name); find != nil {
		i := slices.IndexFunc(r.computed, func(one ComputedSub) bool { return one.Below == c.Name && one.Name == p.Name })
		return Sub{Relation: Computed, Items: a.holds(p), From: r.computed[i].From, Asks: r.computed[i].Asks, Find: find}
	}
	var refs []string
	for _, t := range c.Types {
		if f := t.ByName[p.Name]; f != nil && f.Kind == schema.References {
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

// finder gives what finds the resources of a computed subcollection, by the type of the resource above; nil where none is
// declared.
func (r *Registry) finder(collection, name string) func(*store.Tx, *API, *store.Resource) ([]int64, error) {
	var found []ComputedSub
	for _, one := range r.computed {
		if one.Below == collection && one.Name == name {
			found = append(found, one)
		}
	}
	if found == nil {
		return nil
	}
	return func(tx *store.Tx, a *API, above *store.Resource) ([]int64, error) {
		for _, one := range found {
			if one.Type == "" || one.Type == above.Type {
				return one.Find(tx, a, above)
			}
		}
		return nil, nil
	}
}

// relateByLinks finds links that are no fields.
func (a *API) relateByLinks(c *Collection, p published.Sub, r *Registry) (Sub, bool) {
	for _, l := range r.links {
		switch {
		case l.Name == p.Name && (len(l.From) == 0 && (l.To == "*" || !a.under(a.byName[l.To], c.Name)) || slices.Contains(l.From, c.Name)):
			return Sub{Relation: Linked, Field: l.Name, Items: []string{l.To}, Open: true, Joined: l.Joined}, true
		case l.Back == p.Name && l.To == c.Name:
			from := l.From
			if len(from) == 0 {
				from = []string{"*"}
			}
			return Sub{Relation: Linking, Field: l.Name, Items: from, Open: true, Joined: l.Joined}, true
		}
	}
	return Sub{}, false
}

// relateBack finds the field that leads here and says so (Field.Back), in the types that are published there, or in
// any where those have none.
func (a *API) relateBack(c *Collection, p published.Sub) (Sub, bool) {
	var field string
	var all, listed []string
	byName, by := false, map[string]string{}
	for _, t := range a.AllTypes() {
		for _, f := range t.Fields {
			named := slices.ContainsFunc(c.Types, func(to *schema.Type) bool { return slices.Contains(f.Refs, to.Name) })
			if !slices.Contains(f.Back, p.Name) || !named && (len(f.Refs) > 0 || byName) {
				continue
			}
			if named && !byName { // what leads to these types alone goes before what leads to any
				byName, all, listed = true, nil, nil
				clear(by)
			}
			if other := by[t.Name]; other != "" && other != f.Name {
				panic(fmt.Sprintf("%s/%s: both %s and %s of %s lead there", c.Name, p.Name, other, f.Name, t.Name))
			}
			field = f.Name
			by[t.Name] = f.Name
			all = append(all, t.Name)
			if slices.Contains(p.Types, t.Name) {
				listed = append(listed, t.Name)
			}
		}
	}
	if listed == nil {
		listed = all
	}
	return Sub{Relation: Linking, Field: field, FieldOf: by, Items: a.collectionsOf(listed), Types: listed}, field != ""
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
		if child.Vacant != nil {
			s.Vacant = child.Vacant
		}
		s.Local = s.Local || child.Local
		for _, t := range child.Types {
			if slices.Contains(a.ParentsOf(t), c.Name) {
				s.Relation = Children
				s.Types = append(s.Types, t.Name)
			}
		}
	}
	return s
}

// under reports whether one of the types of a collection may lie below a resource of a collection.
func (a *API) under(c *Collection, parent string) bool {
	return slices.ContainsFunc(c.Types, func(t *schema.Type) bool { return slices.Contains(a.ParentsOf(t), parent) })
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
			names[t.Collection] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// ParentsOf gives the collections whose resources may be the parent of one of the type; "" says that one may have no parent.
func (a *API) ParentsOf(t *schema.Type) []string {
	if t.Parents != nil {
		return t.Parents
	}
	return a.CollectionOf(t).Parents
}
