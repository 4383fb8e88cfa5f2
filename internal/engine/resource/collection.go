package resource

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Collection is a declared collection: its types, and what hangs below its resources.
type Collection struct {
	Name  string
	Types []*schema.Type
	// Parents are the collections whose resources may be the parent of one of these, with those that its types name
	// themselves (the tag parents). "" says that one may have no parent; its own name, where it has no subcollection of that
	// name, that the root resource is the parent.
	Parents []string
	// Local: a POST below its parent depends on, and changes, nothing but what lies right below the parent (store.Within),
	// unless it gives a field or an option that reaches further (Field.Elsewhere, RequestHeader.Elsewhere).
	Local bool
	// Options are what requests for resources of the collection may ask beside their fields.
	Options []RequestHeader
	// Space says what the resources do with the address space that they span.
	Space SpaceUse
	// Vacant gives what lies in the free space of a parent; nil where nothing is said of it.
	Vacant func(tx *store.Tx, above *store.Resource) (*Vacancy, error)
	// Map returns the usage and the resources of equal parts of a resource; nil for collections without address space. cells is the
	// number of parts. part limits the map to a prefix that overlaps the resource; the zero Prefix stands for all of it.
	Map func(tx *store.Tx, above *store.Resource, part netip.Prefix, cells int) (*SpaceMap, error)
	// Counts says how many of something lie below a resource; the zero Counts where nobody asks.
	Counts Counts
	// Reports are what else is told of a resource below its path (Registry.Report).
	Reports []Report
	// Ours: the collection is not published; it has every method.
	Ours bool
	// Secret: something is kept of its resources outside of their rows, such as passwords.
	Secret bool
	// Act, where there is one, is what POST to the collection does, with the object that the request
	// gave; the answer is the transaction that it made.
	Act func(c *Change, o schema.Object) error
	// Estimate says, by the numbers that are kept, how much a POST below a resource would change, with the members that it sends: what
	// it says of much is answered to who only tries it. nil where it never is much; what cannot be read is none.
	Estimate func(tx *store.Tx, above int64, members map[string]json.RawMessage) (store.Tally, error)
	// Place finds the resource that one with these members belongs right below, within a configuration or something that lies in one; nil
	// where nothing but the resource above says where it belongs. It words what it does not find as a problem.
	Place func(c *Change, t *schema.Type, within *store.Resource, members map[string]json.RawMessage) (above *store.Resource, err error)
	// Default is the type of a new resource that names none and fits several; empty: it has to name one.
	Default string
	// PlacedBy is a member, by name, that Place looks at beside the fields; empty: none.
	PlacedBy string
	// Content says which of the resources have bytes beside their fields.
	Content Contents
	// Called is what the subcollection is called that resources are reached through which have no path of their own; empty: Name.
	Called string
	// At is what its own path is called, where that is the name of another collection, which has none; empty: Name.
	At string
	// From is the source of the rows; Resources where empty.
	From store.Source
	// Aliases are names that stand for an id, such as sessions/current.
	Aliases map[string]func(Caller) (int64, error)
	// Unkept returns a resource without a row for GET of an alias, such as sessions/current of a bearer token. nil for collections without.
	Unkept func(Caller) schema.Object
	// Guard says what of a caller decides about the collection, beyond what holds for all.
	Guard Guard
	// SignIn makes a POST to the collection a sign-in: before its transaction begins it gives the caller that the rest is
	// done for. The answers to such requests are not kept for an Idempotency-Key, and their body may be empty.
	SignIn func(ctx context.Context, a *API, s SignIn) (Caller, error)
	// Beforehand, where there is one, does for a request that makes or changes a resource what takes too long for
	// a transaction; the rules find what it gives in Change.Prepared.
	Beforehand func(ctx context.Context, a *API, members map[string]json.RawMessage) (any, error)
	// Numerous: there may be as many of its resources as of anything.
	Numerous bool
	// Workflow says of a type what its changes are called where others have to approve them, such as IPV4_NETWORK; empty where none of
	// them ever has to be. nil: of no type.
	Workflow func(typeName string) string
	// Around are the collections of what its resources lie in. NewAPI finds them.
	Around store.Surroundings
	// NoUp: the resources have a parent and are in no hierarchy that a link would show.
	NoUp bool
	// Hidden keeps the collection's resources out of the list of everything.
	Hidden bool
	// NoSearch: the resources say what there can be, not what there is, and search does not look among them.
	NoSearch bool
	// Joins: the resources join two others, and are shown as what they join, and not themselves. They are hidden, and undone like all others.
	Joins bool
	// Unlogged: the resources are no part of the network; their changes stay out of the history.
	Unlogged bool
	// Scope: what lies in one of the resources never refers to what lies in another one (store.Scope).
	Scope bool
	// History: the resources are the transactions of the history.
	History bool
	// Complete, where there is one, puts into resources that are about to be shown what is not kept in their rows. It may set the rows' Body
	// and Refs anew, and, where they come from a source of their own, their Name; it must not write into the old ones. The rows are without
	// span, key and links.
	Complete func(tx *store.Tx, rows []*store.Resource) error
	// Fleeting: what Complete puts into rows may change while nothing in the database does.
	Fleeting bool

	// What follows is found by NewAPI from the published facts.

	// Post: resources are created by POST to the collection itself.
	Post bool
	// ReadOnly: neither PUT, PATCH nor DELETE of one. NoPut, NoDelete: those methods are not offered.
	ReadOnly, NoPut, NoDelete bool
	// Inner: the resources are reached through the one above alone, such as a transaction's operations.
	Inner bool
	// Subs are the subcollections, in the order of the published links.
	Subs []Sub
}

// PathBelow is what follows the resource above in the path of a resource that has no path of its own.
func (c *Collection) PathBelow() string { return cmp.Or(c.Called, c.Name) }

// Path is what the collection's own path is called.
func (c *Collection) Path() string { return cmp.Or(c.At, c.Name) }

// Logged reports whether changes of the collection's resources are in the history.
func (c *Collection) Logged() bool { return c.From == store.Resources && !c.Unlogged && !c.History }

// Clearable reports whether those of the collection that a filter finds can be deleted at once.
func (c *Collection) Clearable() bool {
	return c.Logged() && !c.ReadOnly && !c.NoDelete && !c.Inner && c.SignIn == nil && c.Act == nil && !c.Joins && c.Guard.ordinary()
}

// SpaceUse says what a resource does with address space.
type SpaceUse int

// What resources do with space, in the order in which they lie in each other.
const (
	// NoSpace: it has none.
	NoSpace SpaceUse = iota
	// HoldsSpace: it takes space from what it lies in, and others take it from there.
	HoldsSpace
	// TakesSpace: it takes space from what it lies in.
	TakesSpace
	// LiesOverSpace: it spans what others take, and takes nothing.
	LiesOverSpace
)

// SignIn is what a sign-in is asked with.
type SignIn struct {
	// Members are those of the body; the rules see what is changed in them.
	Members map[string]json.RawMessage
	// Name and Password are the Basic credentials of the request, where Basic says that there are some.
	Name, Password string
	Basic          bool
	// Remote is the address that it comes from.
	Remote string
	// Console says that the token goes into a cookie.
	Console bool
}

// Relation says how the resources of a subcollection belong to the resource above.
type Relation int

// The relations.
const (
	// Unbuilt is published and not built: 501.
	Unbuilt Relation = iota
	// Children are the resources whose parent it is.
	Children
	// Linked are the targets of its field Sub.Field.
	Linked
	// Linking are the resources whose field Sub.Field leads to it.
	Linking
	// History are the transactions that changed it.
	History
	// Computed are the resources that Sub.Find gives.
	Computed
)

// Sub is a subcollection.
type Sub struct {
	Name     string
	Relation Relation
	// Items are the collections of what it holds; empty: Name; "*": any.
	Items []string
	Field string
	// FieldOf are the fields by the types that they lead from (Linking), where these have one.
	FieldOf map[string]string
	// Post: POST creates (Children) or links (Linked, Linking).
	Post bool
	// Clear: DELETE of the subcollection deletes those of the children that a filter finds.
	Clear bool
	// Types are the types POST takes; empty: all of the items' types.
	Types []string
	// Item: GET of one through the subcollection. Drop: DELETE of one, which deletes a child and
	// unlinks a link.
	Item, Drop bool
	// Change: PUT and PATCH of one through the subcollection, NoPut: PATCH alone.
	Change, NoPut bool
	// Ours: it is not published, and no link of a resource leads to it.
	Ours bool
	// Later: a later release alone has it, and no link of a resource leads to it.
	Later bool
	// Asks: a POST is a change that is asked for, and nothing is made before others approve it.
	Asks bool
	// Open: the link is no field of what it leads from; any resource may have it.
	Open bool
	// Local says that a POST may be local (Collection.Local).
	Local bool
	// Joined is told of a link that POST has made, from its source to its target.
	Joined func(c *Change, source, target *store.Resource) error
	// Make and Remove make and unlink what a subcollection holds whose resources join others; nil elsewhere.
	Make   func(c *Change, above *store.Resource) (id int64, err error)
	Remove func(c *Change, above *store.Resource, item int64) error
	// Find gives the ids of what a computed subcollection holds.
	Find func(tx *store.Tx, a *API, above *store.Resource) ([]int64, error)
	// From is the source of what is found; empty for resources.
	From store.Source
	// Vacant gives what lies in the free space of the resource above; nil where nothing is said of it.
	Vacant func(tx *store.Tx, above *store.Resource) (*Vacancy, error)
}

// FieldIn gives the field that links a resource of a type.
func (s *Sub) FieldIn(typeName string) string {
	if name := s.FieldOf[typeName]; name != "" {
		return name
	}
	return s.Field
}

// Fields gives the fields that link, each once, in order.
func (s *Sub) Fields() []string {
	if len(s.FieldOf) == 0 {
		return []string{s.Field}
	}
	return slices.Compact(slices.Sorted(maps.Values(s.FieldOf)))
}

// Manager is what the manager knows of itself.
type Manager struct {
	// Hostname is the name of its machine, Address where its APIs are served.
	Hostname, Address string
}

// API is the declared address API.
type API struct {
	Store *store.Store
	// Descriptions are the doc comments of the declarations, by Type and Type.field.
	Descriptions map[string]string
	// UserFields says what is asked of user-defined fields; nil where nothing is.
	UserFields UserFields
	// Manager is what the manager knows of itself.
	Manager *Manager
	// Provisions hold what packages are told at the start.
	Provisions *Provisions
	// Demand is what is asked of every change; nil where nothing is.
	Demand Demand
	// Sealer keeps secrets.
	Sealer Sealer
	// May decides what callers may do (authz.May); nil lets everybody do everything.
	May Decide
	// Effective gives what a caller may do with a resource, or the user of a number, where that is not 0; nil where nobody is asked.
	Effective func(tx *store.Tx, caller Caller, row *store.Resource, user int64) (Effective, error)
	// MayDeploy refuses a deployment of a type at a resource that the user of a number may not ask for; 0 is nobody's token. nil: all may.
	MayDeploy func(tx *store.Tx, user int64, typeName string, at *store.Resource) error
	// Standing gives what a caller may do with resources of a type that lie below a resource, or with that itself; nil where all may all.
	Standing func(tx *store.Tx, caller Caller, at *store.Resource, below bool, typeName string) (Standing, error)
	// Workflow keeps changes that are asked for; nil where none are.
	Workflow Workflow
	// Probe asks whether an address answers; nil where nobody can be asked.
	Probe func(ctx context.Context, a netip.Addr) (answers bool, err error)

	// Respan changes what is free when rows come back, go or change by an undo. It gives the
	// first one that finds its space taken.
	Respan func(tx *store.Tx, moves []Respan) (blocked *store.Resource, err error)

	collections []*Collection
	// history is the collection of transactions, scope the one whose resources are scopes; nil where there is none.
	History, Scope *Collection
	Facts          Facts
	Headers        []RequestHeader // that rules look at
	byName         map[string]*Collection
	// at are the collections whose own path is called otherwise than they are, by what it is called.
	at    map[string]*Collection
	types map[string]*schema.Type
	// rules are those that rooms have for types of others, by type.
	rules map[string][]Rule
	seeds []func(c *Change) error
}

// NewAPI puts what was declared together and checks that it fits.
func NewAPI(s *store.Store, r *Registry) *API {
	a := &API{Store: s, collections: r.merged(), Facts: r.Facts, byName: map[string]*Collection{}, at: map[string]*Collection{},
		types: map[string]*schema.Type{},
		rules: map[string][]Rule{}}
	for _, c := range a.collections {
		if c.From == "" {
			c.From = store.Resources
		}
		a.byName[c.Name] = c
		if c.At != "" {
			a.at[c.At] = c
		}
		if c.History {
			a.History = c
		}
		if c.Scope {
			a.Scope = c
		}
		for _, t := range c.Types {
			t.Collection = c.Name
			if a.types[t.Name] != nil {
				panic("the type " + t.Name + " is declared twice")
			}
			a.types[t.Name] = t
			for _, parent := range t.Parents {
				if !slices.Contains(c.Parents, parent) {
					c.Parents = append(c.Parents, parent)
				}
			}
		}
	}
	for _, rule := range r.rules {
		for _, name := range rule.Types {
			a.rules[name] = append(a.rules[name], rule)
		}
	}
	a.seeds, a.Manager, a.Provisions, a.Respan = r.seeds, r.Manager, r.Provisions(), r.respan
	if a.Demand = r.demand; a.Demand != nil {
		a.Demand.Open(s)
	}
	if a.UserFields = r.userFields; a.UserFields != nil {
		a.UserFields.Open(s, a)
	}
	a.Descriptions = maps.Clone(schema.Descriptions)
	maps.Copy(a.Descriptions, r.descriptions)
	a.declareOptions(r)
	for _, c := range a.collections {
		a.complete(c, r)
	}
	for _, c := range a.collections {
		if c.Around = a.around(c); s != nil {
			s.WatchBelow(c.Around)
		}
	}
	for _, c := range a.collections {
		for i := range c.Subs {
			s := &c.Subs[i]
			s.Clear = s.Relation == Children && s.Make == nil && !s.Ours && !slices.ContainsFunc(s.Items, func(name string) bool {
				return !a.byName[name].Clearable()
			})
		}
	}
	if s != nil {
		s.ShowInline(a.inlineMembers())
	}
	return a
}

// around gives the collections of what resources of a collection lie in, at any height; none where there may be as many of those as of
// anything, so that nobody looks through all of them.
func (a *API) around(c *Collection) (r store.Surroundings) {
	r.Of = c.Name
	all := []string{}
	for waiting := c.Parents; len(waiting) > 0; {
		name := waiting[0]
		waiting = waiting[1:]
		above := a.byName[name]
		if above == nil || slices.Contains(all, name) {
			continue
		}
		if above.Numerous {
			return store.Surroundings{}
		}
		all = append(all, name)
		waiting = append(slices.Clone(waiting), above.Parents...)
	}
	slices.Sort(all)
	inner := slices.DeleteFunc(slices.Clone(all), func(name string) bool { // in which none of the others lies
		return !slices.ContainsFunc(all, func(below string) bool { return slices.Contains(a.byName[below].Parents, name) })
	})
	if r.Collections = all; !slices.ContainsFunc(c.Parents, func(name string) bool { return slices.Contains(inner, name) }) {
		r.Collections, r.Leaves = inner, true
	}
	return r
}

// inlineMembers gives the members of bodies that are shown where references are inlined, by type.
func (a *API) inlineMembers() map[string]string {
	members := map[string]string{}
	for name, t := range a.types {
		if t.Inline != nil {
			members[name] = t.Inline.Name
		}
	}
	return members
}

// CollectionOf gives the collection of a declared type.
func (a *API) CollectionOf(t *schema.Type) *Collection { return a.byName[t.Collection] }

// TypeNamed gives a declared type by its name; nil where there is none.
func (a *API) TypeNamed(name string) *schema.Type { return a.types[name] }

// Type gives a declared type by its name.
func (a *API) Type(name string) (*schema.Type, bool) {
	t, ok := a.types[name]
	return t, ok
}

// AtPath gives the collection whose own path is called so; nil where there is none.
func (a *API) AtPath(name string) *Collection {
	if c := a.at[name]; c != nil {
		return c
	}
	if c := a.byName[name]; c != nil && c.At == "" {
		return c
	}
	return nil
}

// Collection gives a declared collection by its name; nil where there is none.
func (a *API) Collection(name string) *Collection { return a.byName[name] }

// Undoable tells whether changes in the collection can be taken back: not where there is more to a
// resource than its row.
func (c *Collection) Undoable() bool {
	return c.From == store.Resources && c.Guard.ordinary() && (!c.Hidden || c.Joins) && !c.Secret
}

// Collections gives the declared collections in their order.
func (a *API) Collections() []*Collection { return a.collections }

// Sub gives a subcollection by its name.
func (c *Collection) Sub(name string) *Sub {
	for i := range c.Subs {
		if c.Subs[i].Name == name {
			return &c.Subs[i]
		}
	}
	return nil
}

// ItemTypes gives the types a subcollection holds.
func (a *API) ItemTypes(s *Sub) (types []*schema.Type) {
	for _, item := range s.Items {
		if item == "*" {
			return a.AllTypes()
		}
		types = append(types, a.byName[item].Types...)
	}
	return types
}

// AllTypes gives the types whose resources have rows.
func (a *API) AllTypes() (types []*schema.Type) {
	for _, c := range a.collections {
		if c.From == store.Resources {
			types = append(types, c.Types...)
		}
	}
	return types
}

// PostTypes gives the types that POST to a subcollection takes.
func (a *API) PostTypes(s *Sub) []*schema.Type {
	all := a.ItemTypes(s)
	if len(s.Types) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(t *schema.Type) bool { return !slices.Contains(s.Types, t.Name) })
}

// RootID is the id of the root resource, which a configuration's up link names.
const RootID = 1
