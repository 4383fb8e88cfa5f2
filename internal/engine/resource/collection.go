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

// Collection is a declared collection: its types, and the subcollections of its resources.
type Collection struct {
	Name  string
	Types []*schema.Type
	// Parents are the collections whose resources may be the parent of a resource of this collection, including the parents that its
	// types declare (the tag parents). "" allows a resource without a parent. The collection's own name allows the root resource as the
	// parent, unless the collection has a subcollection of that name.
	Parents []string
	// Local: a POST below a parent reads and changes only the direct children of that parent (store.ConfigurationScope), unless the request
	// sets a field or an option that reaches further (Field.Elsewhere, RequestHeader.Elsewhere).
	Local bool
	// Options are the request headers for resources of the collection.
	Options []RequestHeader
	// Space is the resources' use of the address space that they span.
	Space SpaceUse
	// Vacant returns the resources that the free space of a parent could hold; nil for collections without them.
	Vacant func(tx *store.Tx, above *store.Resource) (*Vacancy, error)
	// Map returns the utilization map of a resource, divided into this number of equal cells; nil for collections without address space.
	// The map is limited to part, a prefix that overlaps the resource; the zero Prefix means the whole resource.
	Map func(tx *store.Tx, above *store.Resource, part netip.Prefix, cells int) (*SpaceMap, error)
	// Counts are the numbers that are kept for each resource; the zero value for collections without counts.
	Counts Counts
	// Reports are further answers below the path of each resource (Registry.Report).
	Reports []Report
	// Unpublished: the collection is not part of the published API; it has every method.
	Unpublished bool
	// Secret: the resources have data outside of their rows, such as passwords.
	Secret bool
	// Act executes a POST to the collection with the decoded object of the request; the answer is the transaction that it created. nil
	// for collections whose POST creates a resource.
	Act func(c *Change, o schema.Object) error
	// Estimate returns how many resources a POST below a resource would change, from stored counts and the members of the request. A dry
	// run of a large change is answered with this estimate. Members that cannot be read count as nothing. nil where such a change is
	// never large.
	Estimate func(tx *store.Tx, above int64, members map[string]json.RawMessage) (store.Tally, error)
	// Place returns the direct parent of a new resource with these members, searched in a configuration or in a resource of one. It
	// reports a parent that it does not find as a problem. nil where the members do not determine the parent.
	Place func(c *Change, t *schema.Type, within *store.Resource, members map[string]json.RawMessage) (above *store.Resource, err error)
	// Default is the type of a new resource that names no type and fits several; empty: the request must name the type.
	Default string
	// PlacedBy is the name of a member that Place reads in addition to the fields; empty: none.
	PlacedBy string
	// Content describes the resources that have bytes in addition to their fields.
	Content Contents
	// Called is the name of the subcollection through which resources without a path of their own are reached; empty: Name.
	Called string
	// At is the name in the collection's own path, where that is the name of another collection that has no path; empty: Name.
	At string
	// From is the source of the rows; empty: Resources.
	From store.Source
	// Aliases are names that replace an id in a path, such as sessions/current.
	Aliases map[string]func(Caller) (int64, error)
	// Virtual returns a resource without a row for GET of an alias, such as sessions/current of a bearer token. nil for collections
	// without such resources.
	Virtual func(Caller) schema.Object
	// Guard is the additional access rule of the collection.
	Guard Guard
	// SignIn makes a POST to the collection a sign-in: it runs before the transaction and returns the caller of the rest of the request.
	// The answers to such requests are not stored for an Idempotency-Key, and the body may be empty.
	SignIn func(ctx context.Context, a *API, s SignIn) (Caller, error)
	// Beforehand does the work that takes too long for a transaction, before a request creates or changes a resource. The rules find its
	// result in Change.Prepared. nil for collections without such work.
	Beforehand func(ctx context.Context, a *API, members map[string]json.RawMessage) (any, error)
	// Numerous: the number of resources has no practical bound.
	Numerous bool
	// CacheHeads keeps the parents and names of all resources in memory: links and access rights of resources below read them for each row.
	CacheHeads bool
	// Workflow returns the name of a type's changes in approval rules, such as IPV4_NETWORK; empty where changes of the type never need
	// an approval. nil: no type needs one.
	Workflow func(typeName string) string
	// Around are the collections of the resources above those of this collection. NewAPI computes them.
	Around store.Surroundings
	// NoUp: the resources have a parent, but no link to it, because they are not in a hierarchy.
	NoUp bool
	// Hidden excludes the collection's resources from the list of all resources.
	Hidden bool
	// NoSearch: search skips the resources, because they define possible values, not objects of the network.
	NoSearch bool
	// Joins: each resource joins two others. The API shows the other resource of the pair, not the joining one. Joining resources are
	// hidden, and undone like all others.
	Joins bool
	// Unlogged: the resources are not part of the network; the history does not record their changes.
	Unlogged bool
	// Scope: the resources are scopes. Resources in one scope never refer to resources in another one (store.Scope).
	Scope bool
	// History: the resources are the transactions of the history.
	History bool
	// Complete adds values to rows that are about to be shown, which are not stored in them. It may set new values of Body and Refs, and
	// of Name if the rows come from a source of their own; it must not write into the old ones. The rows have no span, key or links. nil
	// for collections without such values.
	Complete func(tx *store.Tx, rows []*store.Resource) error
	// Conditions compare fields whose values Complete adds, by the name of the field. Such a field has filters and no order. nil for
	// collections without them.
	Conditions map[string]func(n *schema.Node) (store.Expr, error)
	// Fleeting: the values that Complete adds may change without any change in the database.
	Fleeting bool

	// NewAPI computes the following fields from the published facts.

	// Post: POST to the collection itself creates resources.
	Post bool
	// ReadOnly: a resource accepts neither PUT, PATCH nor DELETE. NoPut, NoDelete: the resource does not accept that method.
	ReadOnly, NoPut, NoDelete bool
	// Inner: the resources are reached only through the resource above, such as a transaction's operations.
	Inner bool
	// Subs are the subcollections, in the order of the published links.
	Subs []Sub
}

// PathBelow returns the path element behind the resource above, for resources that have no path of their own.
func (c *Collection) PathBelow() string { return cmp.Or(c.Called, c.Name) }

// Path returns the name of the collection in its own path.
func (c *Collection) Path() string { return cmp.Or(c.At, c.Name) }

// IsLogged reports whether changes of the collection's resources are in the history.
func (c *Collection) IsLogged() bool { return c.From == store.Resources && !c.Unlogged && !c.History }

// Clearable reports whether one request can delete all resources of the collection that match a filter.
func (c *Collection) Clearable() bool {
	return c.IsLogged() && !c.ReadOnly && !c.NoDelete && !c.Inner && c.SignIn == nil && c.Act == nil && !c.Joins && c.Guard.isUnrestricted()
}

// SpaceUse is a resource's use of address space.
type SpaceUse int

// The uses of space, from the outermost resources to the innermost.
const (
	// NoSpace: the resource has no space.
	NoSpace SpaceUse = iota
	// HoldsSpace: the resource takes space from its parent, and its children take space from it.
	HoldsSpace
	// TakesSpace: the resource takes space from its parent.
	TakesSpace
	// SpansSpace: the resource spans space that other resources take, and takes none itself.
	SpansSpace
)

// SignIn are the inputs of a sign-in request.
type SignIn struct {
	// Members are the members of the body. SignIn may change them; the rules see the changed values.
	Members map[string]json.RawMessage
	// Name and Password are the Basic credentials of the request, if Basic is true.
	Name, Password string
	Basic          bool
	// Remote is the client's address.
	Remote string
	// Console says that the token is sent as a cookie.
	Console bool
}

// Relation is the relation between the resources of a subcollection and the resource above.
type Relation int

// The relations.
const (
	// Unbuilt is published and not implemented: 501.
	Unbuilt Relation = iota
	// Children are the resources whose parent is the resource above.
	Children
	// Linked are the targets of the field Sub.Field of the resource above.
	Linked
	// Linking are the resources whose field Sub.Field refers to the resource above.
	Linking
	// History are the transactions that changed the resource above.
	History
	// Computed are the resources that Sub.Find returns.
	Computed
)

// Sub is a subcollection.
type Sub struct {
	Name     string
	Relation Relation
	// Items are the collections of its resources; empty: Name; "*": any.
	Items []string
	Field string
	// FieldOf maps types to their linking fields (Linking). Types without an entry link by Field.
	FieldOf map[string]string
	// Post: POST creates (Children) or links (Linked, Linking).
	Post bool
	// Clear: DELETE of the subcollection deletes the children that match a filter.
	Clear bool
	// Types are the types that POST accepts; empty: all of the items' types.
	Types []string
	// Item: GET of one resource through the subcollection. Drop: DELETE of one, which deletes a child or removes a link.
	Item, Drop bool
	// Change: PUT and PATCH of one resource through the subcollection, NoPut: PATCH only.
	Change, NoPut bool
	// Ours: the subcollection is not part of the published API, and resources have no link to it.
	Ours bool
	// Later: only a later release publishes the subcollection, and resources have no link to it.
	Later bool
	// NeedsApproval: a POST creates a request for approval; the change itself is applied after the approval.
	NeedsApproval bool
	// Open: the link is not a field of its source; any resource may have it.
	Open bool
	// Local says that a POST may be local (Collection.Local).
	Local bool
	// Joined is called with the source and the target of each link that POST created.
	Joined func(c *Change, source, target *store.Resource) error
	// Join and Remove create and remove a joining resource, in subcollections whose items are joined to the resource above; nil
	// elsewhere.
	Join   func(c *Change, above *store.Resource) (id int64, err error)
	Remove func(c *Change, above *store.Resource, item int64) error
	// Find returns the ids of the resources of a computed subcollection.
	Find func(tx *store.Tx, a *API, above *store.Resource) ([]int64, error)
	// Where returns a condition on the resources of a computed subcollection; nil if Find returns their ids.
	Where func(tx *store.Tx, a *API, above *store.Resource) (store.Expr, error)
	// From is the source of the found rows; empty: resources.
	From store.Source
	// Vacant returns the resources that the free space of the resource above could hold; nil without such.
	Vacant func(tx *store.Tx, above *store.Resource) (*Vacancy, error)
}

// FieldIn returns the field that links a resource of a type.
func (s *Sub) FieldIn(typeName string) string {
	if name := s.FieldOf[typeName]; name != "" {
		return name
	}
	return s.Field
}

// Fields returns the fields that link, each once, sorted.
func (s *Sub) Fields() []string {
	if len(s.FieldOf) == 0 {
		return []string{s.Field}
	}
	return slices.Compact(slices.Sorted(maps.Values(s.FieldOf)))
}

// Manager describes the manager itself.
type Manager struct {
	// Hostname is the name of its machine, Address the address that serves its APIs.
	Hostname, Address string
}

// API is the declared address API.
type API struct {
	Store *store.Store
	// Descriptions are the doc comments of the declarations, by Type and Type.field.
	Descriptions map[string]string
	// UserFields checks user-defined fields; nil where nothing does.
	UserFields UserFields
	// Manager describes the manager itself.
	Manager *Manager
	// Provisions are the values that packages receive at the start.
	Provisions *Provisions
	// Demand is the check that every change has to pass; nil without one.
	Demand Demand
	// Sealer encrypts and decrypts secrets.
	Sealer Sealer
	// May decides what callers may do (authz.May); nil permits everything to all callers.
	May Decide
	// Effective returns the rights on a resource of the caller or, if user is not 0, of that user; nil without access control.
	Effective func(tx *store.Tx, caller Caller, row *store.Resource, user int64) (Effective, error)
	// Standing returns the rights of a caller on resources of a type below a resource, or, if below is false, on the resource itself; nil
	// without access control.
	Standing func(tx *store.Tx, caller Caller, at *store.Resource, below bool, typeName string) (Standing, error)
	// Workflow stores requests for approval; nil without a workflow.
	Workflow Workflow
	// Respan updates the free space for rows that an undo creates, deletes or changes. It returns the first row whose space is taken.
	Respan func(tx *store.Tx, moves []Respan) (blocked *store.Resource, err error)
	// StaleName returns the parent of a row that an undo has written if the parent was renamed since, so that the absolute name is wrong.
	StaleName func(tx *store.Tx, row *store.Resource) (parent *store.Resource, err error)

	collections []*Collection
	// History is the collection of transactions, Scope the collection whose resources are scopes; nil if none is declared.
	History, Scope *Collection
	Facts          Facts
	Headers        []RequestHeader // the headers that rules read
	byName         map[string]*Collection
	// byPathName maps the name in a collection's own path to the collection, where the two names differ.
	byPathName map[string]*Collection
	types      map[string]*schema.Type
	// rules are the rules that packages declare for types of other packages, by type.
	rules map[string][]Rule
	seeds []func(c *Change) error
}

// NewAPI combines the declarations of the registry, checks that they are consistent, and returns the API. It panics on an inconsistent
// declaration.
func NewAPI(s *store.Store, r *Registry) *API {
	a := &API{Store: s, collections: r.mergeCollections(), Facts: r.Facts, byName: map[string]*Collection{},
		byPathName: map[string]*Collection{}, types: map[string]*schema.Type{},
		rules: map[string][]Rule{}}
	for _, c := range a.collections {
		if c.From == "" {
			c.From = store.Resources
		}
		a.byName[c.Name] = c
		if c.At != "" {
			a.byPathName[c.At] = c
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
	a.seeds, a.Manager, a.Provisions, a.Respan, a.StaleName = r.seeds, r.Manager, r.Provisions(), r.respan, r.staleName
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
		if c.Around = a.ancestorCollections(c); s != nil {
			s.WatchBelow(c.Around)
		}
	}
	for _, c := range a.collections {
		for i := range c.Subs {
			s := &c.Subs[i]
			s.Clear = s.Relation == Children && s.Join == nil && !s.Ours && !slices.ContainsFunc(s.Items, func(name string) bool {
				return !a.byName[name].Clearable()
			})
		}
	}
	if s != nil {
		s.ShowInline(a.inlineMembers())
	}
	return a
}

// ancestorCollections returns the collections of all resources above those of a collection, at any height. The result is empty if one of
// these collections is Numerous, because searching all of its resources would take too long.
func (a *API) ancestorCollections(c *Collection) (r store.Surroundings) {
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
	// inner are the collections that are not a parent collection of any other of them.
	inner := slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return !slices.ContainsFunc(all, func(below string) bool { return slices.Contains(a.byName[below].Parents, name) })
	})
	if r.Collections = all; !slices.ContainsFunc(c.Parents, func(name string) bool { return slices.Contains(inner, name) }) {
		r.Collections, r.Leaves = inner, true
	}
	return r
}

// CanContain reports whether resources of the collection named above may contain resources of c, at any depth.
func (a *API) CanContain(c *Collection, above string) bool {
	seen := map[string]bool{}
	for waiting := slices.Clone(c.Parents); len(waiting) > 0; waiting = waiting[1:] {
		name := waiting[0]
		if name == above {
			return true
		}
		if parent := a.byName[name]; parent != nil && !seen[name] {
			seen[name] = true
			waiting = append(waiting, parent.Parents...)
		}
	}
	return false
}

// inlineMembers returns the body members that are shown where references are inlined, by type.
func (a *API) inlineMembers() map[string]string {
	members := map[string]string{}
	for name, t := range a.types {
		if t.Inline != nil {
			members[name] = t.Inline.Name
		}
	}
	return members
}

// CollectionOf returns the collection of a declared type.
func (a *API) CollectionOf(t *schema.Type) *Collection { return a.byName[t.Collection] }

// TypeNamed returns a declared type by its name, nil if it does not exist.
func (a *API) TypeNamed(name string) *schema.Type { return a.types[name] }

// Type returns a declared type by its name.
func (a *API) Type(name string) (*schema.Type, bool) {
	t, ok := a.types[name]
	return t, ok
}

// CollectionByPath returns the collection with this name in its own path, nil if it does not exist.
func (a *API) CollectionByPath(name string) *Collection {
	if c := a.byPathName[name]; c != nil {
		return c
	}
	if c := a.byName[name]; c != nil && c.At == "" {
		return c
	}
	return nil
}

// Collection returns a declared collection by its name, nil if it does not exist.
func (a *API) Collection(name string) *Collection { return a.byName[name] }

// IsUndoable reports whether changes of the collection's resources can be undone. They cannot if a resource has data outside of its row.
func (c *Collection) IsUndoable() bool {
	return c.From == store.Resources && c.Guard.isUnrestricted() && (!c.Hidden || c.Joins) && !c.Secret
}

// Collections returns the declared collections, sorted by name.
func (a *API) Collections() []*Collection { return a.collections }

// Sub returns a subcollection by its name, nil if it does not exist.
func (c *Collection) Sub(name string) *Sub {
	for i := range c.Subs {
		if c.Subs[i].Name == name {
			return &c.Subs[i]
		}
	}
	return nil
}

// ItemTypes returns the types of a subcollection's resources.
func (a *API) ItemTypes(s *Sub) (types []*schema.Type) {
	for _, item := range s.Items {
		if item == "*" {
			return a.AllTypes()
		}
		types = append(types, a.byName[item].Types...)
	}
	return types
}

// AllTypes returns the types whose resources have rows.
func (a *API) AllTypes() (types []*schema.Type) {
	for _, c := range a.collections {
		if c.From == store.Resources {
			types = append(types, c.Types...)
		}
	}
	return types
}

// PostTypes returns the types that POST to a subcollection accepts.
func (a *API) PostTypes(s *Sub) []*schema.Type {
	all := a.ItemTypes(s)
	if len(s.Types) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(t *schema.Type) bool { return !slices.Contains(s.Types, t.Name) })
}

// RootID is the id of the root resource, the target of a configuration's up link.
const RootID = 1
