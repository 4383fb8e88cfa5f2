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

// Registry collects the declarations of all packages: collections with their types, and the links that are not fields. NewAPI derives the
// relations between the collections from them and from the published facts.
type Registry struct {
	// Facts are the published facts.
	Facts Facts
	// Manager describes the manager itself, once it has started.
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
	staleName   func(tx *store.Tx, row *store.Resource) (parent *store.Resource, err error)
	// descriptions are the doc comments of the declarations.
	descriptions map[string]string
}

// Extension declares what a package stores in the database in addition to the rows of resources.
func (r *Registry) Extension(e *store.Extension) { r.extensions = append(r.extensions, e) }

// Layout returns the database layout of all declarations.
func (r *Registry) Layout() *store.Layout {
	l := &store.Layout{Extensions: r.extensions}
	for _, c := range r.mergeCollections() {
		if c.Unlogged {
			l.Unlogged = append(l.Unlogged, c.Name)
		}
		if c.Scope {
			l.Scopes = c.Name
		}
		if c.Space == HoldsSpace || c.Space == SpansSpace {
			l.Spaced = append(l.Spaced, store.Spaced{Collection: c.Name, Below: c.Parents})
		}
		for _, t := range c.Types {
			for _, f := range t.Fields {
				i := store.Index{Collection: c.Name, Field: f.Name, Number: f.Kind == schema.Integer}
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

// Facts are the published facts about the collections.
type Facts interface {
	// Subs returns the subcollections of a collection, in the order of its links.
	Subs(collection string) []published.Sub
	// Inner reports whether resources of a collection have no path of their own.
	Inner(collection string) bool
	// Methods returns the published methods of a path, given as its elements below the base path.
	Methods(parts []string) []string
}

// Collection declares a collection with its types, each by a sample. A package may add types, parents, options and reports to a
// collection that another package declares; everything else is declared once.
func (r *Registry) Collection(c Collection, samples ...schema.Object) {
	for _, sample := range samples {
		c.Types = append(c.Types, schema.Declare(sample))
	}
	r.collections = append(r.collections, &c)
}

// Report declares a report of each resource of a collection, which any package may have declared.
func (r *Registry) Report(collection string, rep Report) {
	r.collections = append(r.collections, &Collection{Name: collection, Reports: []Report{rep}})
}

// mergeCollections returns the collections with all their declarations, sorted by name, with their types sorted by name.
func (r *Registry) mergeCollections() (all []*Collection) {
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

// SelectCollections returns the names of the collections that satisfy the condition holds, sorted.
func (r *Registry) SelectCollections(holds func(*Collection) bool) (names []string) {
	for _, c := range r.mergeCollections() {
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

// partial reports whether a declaration has nothing but a name, types, parents, options and reports.
func (c *Collection) partial() bool {
	rest := *c
	rest.Name, rest.Types, rest.Parents, rest.Options, rest.Reports = "", nil, nil, nil, nil
	return reflect.ValueOf(rest).IsZero()
}

// Rule is the rule of a package for resources of types that another package declares. It runs after the rule of the type.
type Rule struct {
	Types []string
	// AfterWrite runs after a resource of the types was written (AfterWriter), BeforeDelete before one is deleted (BeforeDeleter).
	AfterWrite, BeforeDelete func(c *Change) error
}

// Rule declares a rule.
func (r *Registry) Rule(rule Rule) { r.rules = append(r.rules, rule) }

// UserFields checks and describes the user-defined fields of resources of all types.
type UserFields interface {
	// Open is called with the store and the API before any other method.
	Open(s *store.Store, a *API)
	// Check checks the user-defined fields of a resource that is about to be written.
	Check(c *Change) error
	// Missing returns the fields that resources of a type show without setting them, nil if there are none.
	Missing(tx *store.Tx, a *API, typeName string) (map[string]*string, error)
	// Defaults returns the values that resources show in a field that they do not set, by type. Types without a default are omitted.
	Defaults(name string) (map[string]string, error)
	// Indexes returns the indexes of fields that should exist. Found records the indexes that do exist. Indexed reports whether a field
	// of the resources of a collection has one.
	Indexes(tx *store.Tx, a *API) ([]store.Index, error)
	StoreIndexes(there map[store.Index]bool)
	Indexed(collection, name string) bool
}

// UserFields declares the checks of user-defined fields.
func (r *Registry) UserFields(u UserFields) { r.userFields = u }

// Demand is a check of every request that changes data.
type Demand interface {
	// Open is called with the store before any other method.
	Open(s *store.Store)
	// Ask refuses a change of a collection, for example because of its comment.
	Ask(tx *store.Tx, a *API, collection, comment string) error
}

// DeclareCheck declares the check of every change.
func (r *Registry) DeclareCheck(d Demand) { r.demand = d }

// Seed declares data that every manager has from its first start. seed runs at each start and creates the missing data.
func (r *Registry) Seed(seed func(c *Change) error) { r.seeds = append(r.seeds, seed) }

// Seed creates the data that every manager has.
func (a *API) Seed(tx *store.Tx) error {
	for _, seed := range a.seeds {
		if err := seed(&Change{Tx: tx, API: a, SetFields: map[string]bool{}, Extra: map[string]string{}}); err != nil {
			return err
		}
	}
	return nil
}

// Describe adds descriptions of types and fields, by Type and Type.field.
func (r *Registry) Describe(descriptions map[string]string) {
	maps.Copy(r.describeRelations(), descriptions)
}

func (r *Registry) describeRelations() map[string]string {
	if r.descriptions == nil {
		r.descriptions = map[string]string{}
	}
	return r.descriptions
}

// Header declares a request header for resources of every type.
func (r *Registry) Header(h RequestHeader) { r.headers = append(r.headers, h) }

// Links are links that are not fields; a published subcollection of that name lists them.
type Links struct {
	// Name is the name of the subcollection, and of the stored links.
	Name string
	// From are the collections of the sources; empty: those with such a subcollection.
	From []string
	// To is the collection of the targets.
	To string
	// Back is the subcollection of a target that lists the sources; empty if there is none.
	Back string
	// Joined is called with the source and the target of each link that POST created.
	Joined func(c *Change, source, target *store.Resource) error
}

// Links declares links.
func (r *Registry) Links(l Links) { r.links = append(r.links, l) }

// ComputedSub is a subcollection whose resources are computed for each request.
type ComputedSub struct {
	// Below is the collection of the resources that have the subcollection, Type the only type of it that does (empty: all types). Name
	// is the name of the subcollection.
	Below, Type, Name string
	// Items are the collections of the resources of a subcollection that is not published; nil if it is published.
	Items []string
	// From is the source of the rows, for resources that do not exist any more; empty for resources.
	From store.Source
	// NeedsApproval: a POST creates a request for approval, if POST is published (Sub.Asks).
	NeedsApproval bool
	// Find returns the ids of the resources. Where returns a condition on them in place of Find, if they are too many for a list of ids.
	Find  func(tx *store.Tx, a *API, above *store.Resource) ([]int64, error)
	Where func(tx *store.Tx, a *API, above *store.Resource) (store.Expr, error)
}

// JoinedSub is a published subcollection whose items are joined to the resource above by hidden resources. The items have a source of
// their own: the parent of a row is the resource above, its id that of the joined resource.
type JoinedSub struct {
	// Name is the name of the subcollection, and of the collection with the source.
	Name string
	// Join joins the resource that a request names to the resource above, and returns the id of the joined resource. Remove undoes the
	// join.
	Join   func(c *Change, above *store.Resource) (id int64, err error)
	Remove func(c *Change, above *store.Resource, item int64) error
}

// DeclareJoined declares a joined subcollection.
func (r *Registry) DeclareJoined(s JoinedSub) { r.joined = append(r.joined, s) }

// FurtherSub is a subcollection that resources do not link to, because it is published only elsewhere. It lists resources that are
// created below a resource, or that refer to it.
type FurtherSub struct {
	// Below is the collection of the resources that have the subcollection, Name the name of the subcollection, Item the collection of
	// its resources.
	Below, Name, Item string
	// Types are the types that POST creates. They are empty if Field is set: the field of the items that refers to the resource above.
	Types []string
	Field string
}

// DeclareUnlinked declares a subcollection that resources do not link to.
func (r *Registry) DeclareUnlinked(s FurtherSub) { r.further = append(r.further, s) }

// Computed declares a computed subcollection.
func (r *Registry) Computed(c ComputedSub) { r.computed = append(r.computed, c) }

// complete sets the methods and subcollections of a collection from the published facts.
func (a *API) complete(c *Collection, r *Registry) {
	all, one := r.Facts.Methods([]string{c.Path()}), r.Facts.Methods([]string{c.Path(), "1"})
	if c.Unpublished {
		all, one = []string{methodGet}, []string{methodGet, methodPut, methodPatch, methodDelete}
		if slices.Contains(c.Parents, "") { // others are created below their parents
			all = append(all, methodPost)
		}
	}
	c.Post, c.Inner = slices.Contains(all, methodPost), !c.Unpublished && c.At == "" && r.Facts.Inner(c.Name)
	c.NoPut, c.NoDelete = !slices.Contains(one, methodPut), !slices.Contains(one, methodDelete)
	c.ReadOnly = c.NoPut && c.NoDelete && !slices.Contains(one, methodPatch)
	for _, p := range r.Facts.Subs(c.Path()) {
		s := a.buildRelation(c, p, r)
		s.Name, s.Later = p.Name, p.Later
		if s.Relation != Unbuilt {
			s.Post, s.Item, s.Drop = p.Post, p.Item, p.Delete
			s.Change, s.NoPut = p.Put || p.Patch, !p.Put
			if s.Relation == Computed { // computed resources can neither be created nor unlinked
				s.NeedsApproval = s.NeedsApproval && p.Post
				s.Post, s.Drop = s.NeedsApproval, false
			}
			if s.Relation == Linked || s.Relation == Linking { // resources that can be linked can be read and unlinked
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
				Find: r.finder(c.Name, one.Name), Where: one.Where})
		}
	}
}

// buildRelation returns how the resources of a subcollection relate to the resource above: by a field of one of them, by links, or as its
// children. The relation is Unbuilt if no declaration determines it.
func (a *API) buildRelation(c *Collection, p published.Sub, r *Registry) Sub {
	for _, j := range r.joined {
		if j.Name == p.Name {
			return Sub{Relation: Children, Items: []string{j.Name}, Types: []string{a.byName[j.Name].Types[0].Name}, Join: j.Join,
				Remove: j.Remove}
		}
	}
	if find := r.finder(c.Name, p.Name); find != nil {
		i := slices.IndexFunc(r.computed, func(one ComputedSub) bool { return one.Below == c.Name && one.Name == p.Name })
		return Sub{Relation: Computed, Items: a.itemCollections(p), From: r.computed[i].From, NeedsApproval: r.computed[i].NeedsApproval,
			Find: find, Where: r.computed[i].Where}
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

// finder returns the function that finds the resources of a computed subcollection, by the type of the resource above; nil if none is
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

// relateByLinks returns the relation by links that are not fields; ok is false if none is declared.
func (a *API) relateByLinks(c *Collection, p published.Sub, r *Registry) (Sub, bool) {
	for _, l := range r.links {
		switch {
		case l.Name == p.Name && (len(l.From) == 0 && (l.To == "*" || !a.mayBeBelow(a.byName[l.To], c.Name)) || slices.Contains(l.From, c.Name)):
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

// relateBack returns the relation by a field that refers to this collection and names the subcollection (Field.Back). It searches the
// types that are published for the subcollection, or all types if it has none of these.
func (a *API) relateBack(c *Collection, p published.Sub) (Sub, bool) {
	var field string
	var all, listed []string
	byName, by := false, map[string]string{}
	for _, t := range a.AllTypes() {
		for _, f := range t.Fields {
			if !slices.Contains(f.Back, p.Name) {
				continue
			}
			named := slices.ContainsFunc(c.Types, func(to *schema.Type) bool { return slices.Contains(f.Refs, to.Name) })
			if !named && (len(f.Refs) > 0 || byName) {
				continue
			}
			if named && !byName { // a field that refers only to these types takes precedence over one that refers to any type
				byName, all, listed = true, nil, nil
				clear(by)
			}
			if other := by[t.Name]; other != "" && other != f.Name {
				panic(fmt.Sprintf("%s/%s: both %s and %s of %s name this subcollection", c.Name, p.Name, other, f.Name, t.Name))
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

// relateChildren returns the relation by types whose parents may be in this collection.
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

// mayBeBelow reports whether a resource of a collection may be the child of a resource of the collection parent.
func (a *API) mayBeBelow(c *Collection, parent string) bool {
	return slices.ContainsFunc(c.Types, func(t *schema.Type) bool { return slices.Contains(a.ParentsOf(t), parent) })
}

// itemCollections returns the collections of a subcollection's resources; "*" where they may be in any.
func (a *API) itemCollections(p published.Sub) []string {
	if len(p.Types) == 0 {
		return []string{"*"}
	}
	return a.collectionsOf(p.Types)
}

// collectionsOf returns the collections of the declared types among these, sorted.
func (a *API) collectionsOf(types []string) []string {
	names := map[string]bool{}
	for _, name := range types {
		if t := a.types[name]; t != nil {
			names[t.Collection] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// ParentsOf returns the collections whose resources may be the parent of a resource of the type; "" allows a resource without a parent.
func (a *API) ParentsOf(t *schema.Type) []string {
	if t.Parents != nil {
		return t.Parents
	}
	return a.CollectionOf(t).Parents
}
