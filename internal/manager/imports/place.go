package imports

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// target is the parent of the resources of rows.
type target struct {
	// list is the collection of the new resources. If it is nil, each row finds its own parent: within a resource, or within its
	// configuration if within is empty.
	list   *resource.Target
	within resource.Target
}

// badPlace returns the error for an invalid path.
func badPlace(path, format string, args ...any) error {
	return problem.Invalid("into", strconv.Quote(path)+" "+format, args...)
}

// placeOf parses the path of the parent; an empty path means that each row names it.
func placeOf(a *resource.API, path string) (at target, err error) {
	if path == "" {
		return at, nil
	}
	parts := strings.Split(strings.Trim(strings.TrimPrefix(path, published.Base), "/"), "/")
	c := a.Collection(parts[0])
	if c == nil || len(parts) > 3 {
		return at, badPlace(path, "is not a path such as networks/100123/addresses or configurations/100007")
	}
	t := resource.Target{Collection: c, List: true}
	if len(parts) == 1 {
		if !c.Post || c.SignIn != nil || c.Act != nil {
			return at, badPlace(path, "is not a collection without a parent resource")
		}
		return target{list: &t}, nil
	}
	if t.ID, err = strconv.ParseInt(parts[1], 10, 64); err != nil || t.ID < 1 {
		return at, badPlace(path, "has no resource id after %s", c.Name)
	}
	if len(parts) == 2 {
		t.List = false
		return target{within: t}, nil
	}
	if t.Sub = c.Sub(parts[2]); t.Sub == nil || !t.Sub.Post || t.Sub.Relation != resource.Children {
		return at, badPlace(path, "cannot contain resources")
	}
	return target{list: &t}, nil
}

// checkExists returns an error if a parent does not exist.
func (at target) checkExists(c *resource.Change) error {
	t := at.within
	if at.list != nil {
		t = *at.list
	}
	if t.ID == 0 {
		return nil
	}
	_, err := c.API.Locate(c.Tx, resource.Target{Collection: t.Collection, ID: t.ID}, c.Caller)
	if problem.IsNotFound(err) {
		return resource.NotFoundInlined("into", "resource %d does not exist in %s", t.ID, t.Collection.Name)
	}
	return err
}

// find returns the resource of a row if it exists, and otherwise the parent of the new resource. object is the decoded row, or nil.
func (p *executor) find(t *schema.Type, object schema.Object, members map[string]json.RawMessage) (there *store.Resource,
	at resource.Target, err error) {
	c := p.API.CollectionOf(t)
	var id int64
	if raw, ok := members["id"]; ok && string(raw) != "null" && p.action != createOnly {
		if json.Unmarshal(raw, &id) != nil || id < 1 {
			return nil, at, problem.Invalid("id", "%s is not a resource id", raw)
		}
		row, err := p.API.Locate(p.Tx, resource.Target{Collection: c, ID: id}, p.Caller)
		inside := err == nil && row.Type == t.Name
		if inside {
			inside, err = p.isInTarget(row)
		}
		if inside || err != nil && !problem.IsNotFound(err) {
			return row, at, err
		}
		if p.action == updateOnly {
			return nil, at, problem.NotFound("id: %s %d does not exist there", t.Name, id)
		}
	}
	if at, err = p.placeIn(t, c, members); err != nil {
		return nil, at, err
	}
	there, err = p.findExisting(t, object, c, at, members)
	if there != nil && err == nil { // if the user who started it can see it
		there, err = p.API.Locate(p.Tx, resource.Target{Collection: c, ID: there.ID}, p.Caller)
		if problem.IsNotFound(err) {
			there, err = nil, nil
		}
	}
	return there, at, err
}

// isInTarget reports whether a resource is inside the target of the import. Other resources must not be changed.
func (p *executor) isInTarget(row *store.Resource) (bool, error) {
	within := p.at.within.ID
	if p.at.list != nil {
		if p.at.list.Sub != nil {
			return row.Parent == p.at.list.ID, nil
		}
		return true, nil
	}
	if within == 0 || row.Configuration == within || row.ID == within {
		return true, nil
	}
	return p.isBelow(row, within)
}

// isBelow reports whether a resource is below another one, at any depth.
func (p *executor) isBelow(row *store.Resource, other int64) (bool, error) {
	for at := row.Parent; at != 0 && at != resource.RootID; {
		if at == other {
			return true, nil
		}
		above, err := p.Tx.Head(at)
		if err != nil {
			return false, err
		}
		at = above.Parent
	}
	return false, nil
}

// placeIn finds the parent of the new resource of a row.
func (p *executor) placeIn(t *schema.Type, c *resource.Collection, members map[string]json.RawMessage) (at resource.Target,
	err error) {
	if p.at.list != nil {
		return *p.at.list, nil
	}
	if c.SignIn != nil || c.Act != nil || c.ReadOnly && p.at.within.ID == 0 {
		return at, problem.Field("InvalidResourceType", "type", "a %s cannot be imported", t.Name)
	}
	var within *store.Resource
	switch {
	case p.at.within.ID != 0:
		within, err = p.API.Locate(p.Tx, p.at.within, p.Caller)
	case c.Post && slices.Contains(p.API.ListCreatableTypes(resource.Target{Collection: c, List: true}), t):
		return resource.Target{Collection: c, List: true}, nil
	default:
		if within, err = p.parentFromLink(members); within == nil && err == nil {
			if c.Place == nil && len(p.API.ParentsOf(t)) > 1 {
				return at, problem.Field("ConflictingResourceFieldValues", "type", "a %s can have several kinds of parents: choose one with %s",
					t.Name, p.placeHint())
			}
			within, err = p.configurationOf(members)
		}
	}
	if err != nil {
		return at, err
	}
	above := p.API.Collection(within.Collection)
	if c.Place != nil {
		if within, err = c.Place(p.Change, t, within, members); err != nil {
			return at, err
		}
		above = p.API.Collection(within.Collection)
	}
	for i := range above.Subs {
		sub := &above.Subs[i]
		if sub.Post && sub.Relation == resource.Children && slices.Contains(p.API.PostTypes(sub), t) {
			return resource.Target{Collection: above, ID: within.ID, Sub: sub, List: true}, nil
		}
	}
	return at, problem.Field("InvalidResourceType", "type",
		"a %s cannot be created in a %s: choose the parent with %s", t.Name, within.Type, p.placeHint())
}

// placeHint describes, for an error message, how to name the parent.
func (j *job) placeHint() string {
	if j.declared {
		return "its member in (portolan create --in), such as servers/ns1,"
	}
	return "the field into of the import"
}

// parentFromLink returns the resource of the link "up" of a row, as the API shows it; nil if there is none.
func (p *executor) parentFromLink(members map[string]json.RawMessage) (*store.Resource, error) {
	var links struct {
		Up struct {
			Href string `json:"href"`
		} `json:"up"`
	}
	raw, ok := members["_links"]
	if !ok {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &links); err != nil {
		return nil, problem.Invalid("_links", "must have the format of the API")
	}
	if links.Up.Href == "" {
		return nil, nil
	}
	at, err := placeOf(p.API, links.Up.Href)
	if err != nil || at.within.ID == 0 {
		return nil, nil //nolint:nilerr // such as the link to the root resource, which is in no collection
	}
	row, err := p.API.Locate(p.Tx, at.within, p.Caller)
	if problem.IsNotFound(err) {
		return nil, resource.NotFoundInlined("_links", "up: %s does not exist: set the field into of the import to the parent resource",
			links.Up.Href)
	}
	return row, err
}

// configurationOf returns the configuration that a row names by number or name, or the only one that exists.
func (p *executor) configurationOf(members map[string]json.RawMessage) (*store.Resource, error) {
	scope := p.API.Scope
	var one struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	if raw, ok := members["configuration"]; ok && json.Unmarshal(raw, &one.Name) != nil && json.Unmarshal(raw, &one) != nil {
		return nil, problem.Invalid("configuration", "must be an object with an id or a name, or a name")
	}
	if one.ID != 0 {
		row, err := p.API.Locate(p.Tx, resource.Target{Collection: scope, ID: one.ID}, p.Caller)
		if _, ok := problem.As(err); !ok && (err != nil || one.Name == "" || row.Name == one.Name) {
			return row, err
		}
	}
	if one.Name != "" {
		found, err := p.Tx.ByName(scope.Name, 0, one.Name)
		if err != nil {
			return nil, err
		}
		if len(found) == 1 {
			row, err := p.API.Locate(p.Tx, resource.Target{Collection: scope, ID: found[0].ID}, p.Caller)
			if !problem.IsNotFound(err) { // a hidden configuration is treated as missing
				return row, err
			}
		}
		return nil, resource.NotFoundInlined("configuration", "configuration %q does not exist", one.Name)
	}
	if one.ID != 0 {
		return nil, resource.NotFoundInlined("configuration", "configuration %d does not exist", one.ID)
	}
	q, _ := p.API.ListQuery(resource.Target{Collection: scope, List: true}, p.Caller)
	q.Limit = 2
	var all []*store.Resource
	if err := p.Tx.List(q, func(r *store.Resource) error {
		all = append(all, r.Clone())
		return nil
	}); err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, problem.Missing("configuration")
	}
	return all[0], nil
}

// findExisting returns the resource below a parent that has the name, the range or the absolute name of a row, if the type identifies
// resources by it. Otherwise it compares all members. It returns nil if there is none.
func (p *executor) findExisting(t *schema.Type, object schema.Object, c *resource.Collection, at resource.Target,
	members map[string]json.RawMessage) (*store.Resource, error) {
	parent := at.ID
	if at.Sub == nil && !slices.Contains(p.API.ParentsOf(t), "") {
		parent = resource.RootID
	}
	o := t.New()
	_, ok := o.(schema.Spanned)
	var found []*store.Resource
	var err error
	switch {
	case ok:
		if object == nil {
			if _, problems := t.Decode(o, members, true); len(problems) > 0 { // creating it reports the error
				return nil, nil
			}
			object = o
		}
		spanned, _ := object.(schema.Spanned)
		low, high := spanned.Span()
		if !low.IsValid() || !high.IsValid() { // a size; the manager finds free space for it
			return nil, nil
		}
		from, to := store.AddrKey(low), store.AddrKey(high)
		found, err = p.Tx.BeginningAt(parent, c.Name, from)
		found = slices.DeleteFunc(found, func(r *store.Resource) bool { return !bytes.Equal(r.High, to) })
	case t.Unique == "siblings", t.Unique == "all":
		var name string
		if json.Unmarshal(members["name"], &name) != nil || name == "" {
			return nil, nil //nolint:nilerr // as above
		}
		if t.Unique == "all" {
			parent = 0
		}
		found, err = p.Tx.ByName(c.Name, parent, name)
	case slices.ContainsFunc(t.Fields, func(f *schema.Field) bool { return f.KeyPrefix != "" }):
		var above *store.Resource
		if above, err = p.Tx.Get(parent); err != nil {
			return nil, err
		}
		if members["absoluteName"] == nil && members["name"] != nil && t.ByName["absoluteName"] != nil {
			if members, err = withWholeName(t, above, members); err != nil || members == nil {
				return nil, err
			}
		}
		if _, problems := t.Decode(o, members, true); len(problems) > 0 { // as above
			return nil, nil
		}
		configuration := above.Configuration
		if at.Collection.Scope {
			configuration = at.ID
		}
		found, err = p.Tx.ResourcesByKey(configuration, t.KeyOf(o))
	case p.action == createOrUpdate && (t.ByName["absoluteName"] == nil || p.declared && members["absoluteName"] == nil):
		return p.findNameless(t, c, at, members)
	default:
		return p.findByWholeName(t, object, at, members)
	}
	if err != nil || len(found) != 1 || found[0].Type != t.Name {
		return nil, err
	}
	return found[0], nil
}

// namelessSiblings is the number of resources without names that are compared below one parent.
const namelessSiblings = 1000

// findNameless returns the resource of a row without a name of its own, such as a role or an option. This is one that equals the row, or
// else the only one with the same name and the same enumeration values. It returns nil if there is none.
func (p *executor) findNameless(t *schema.Type, c *resource.Collection, at resource.Target,
	members map[string]json.RawMessage) (*store.Resource, error) {
	rows, err := p.Tx.ListSome(store.All{store.InCollection(c.Name), store.HasParent(at.ID),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: t.Name}}, namelessSiblings)
	if err != nil {
		return nil, err
	}
	if n := len(rows); n == namelessSiblings && !p.declared { // a row of a table creates another one
		return nil, nil
	} else if n == namelessSiblings {
		return nil, problem.BadRequest("RequestTooLarge", "at least %d %s exist there: too many to find such resources again", n,
			c.Name)
	}
	var named []*store.Resource
	for _, row := range rows {
		if p.isTaken != nil && p.isTaken(row.ID) {
			continue
		}
		shown, err := p.shownMembers(row)
		if err != nil {
			return nil, err
		}
		sent := maps.Clone(members)
		if err := p.dropSameLinks(t, sent, row); err != nil {
			return nil, err
		}
		whole, kind := true, p.declared || members["name"] != nil
		for name, value := range sent {
			f := t.ByName[name]
			if f == nil || f.WriteOnly && f.Kind != schema.References || f.ReadOnly || f.Column != "" ||
				equalToSent(p.asShown(f, value, shown[name]), shown[name]) || sameNamed(f, value, shown) {
				continue
			}
			whole = false
			kind = kind && name != "name" && (len(f.Enum) == 0 || f.Inherit)
		}
		if whole {
			return row, nil
		}
		if kind {
			named = append(named, row)
		}
	}
	if len(named) != 1 {
		return nil, nil
	}
	return named[0], nil
}

// withWholeName adds the absolute name to the members of a resource whose row gives its name in a zone or view. It returns nil if the row
// has no usable name.
func withWholeName(t *schema.Type, above *store.Resource, members map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	var name string
	if raw := members["name"]; t.ByName["absoluteName"] == nil || len(raw) > 0 && json.Unmarshal(raw, &name) != nil ||
		name == "" && (above.Key == "" || t.Unique != "") { // a record at the apex is identified by all its members
		return nil, nil //nolint:nilerr // creating it reports the error
	}
	switch {
	case name == "":
		name = above.Key
	case above.Key != "":
		name += "." + above.Key
	}
	whole, err := json.Marshal(name)
	named := maps.Clone(members)
	named["absoluteName"] = whole
	return named, err
}

// named returns the decoded resource of a row with its absolute name; nil if the row has no usable name or another error.
func named(t *schema.Type, above *store.Resource, members map[string]json.RawMessage) schema.Object {
	if members["absoluteName"] == nil {
		var err error
		if members, err = withWholeName(t, above, members); err != nil || members == nil {
			return nil
		}
	}
	o := t.New()
	if _, problems := t.Decode(o, members, true); len(problems) > 0 { // creating it reports the error
		return nil
	}
	return o
}

// findByWholeName returns the resource below a parent that has the absolute name of a row. If several may have it, all other members must
// match, except for the TTL.
func (p *executor) findByWholeName(t *schema.Type, object schema.Object, at resource.Target,
	members map[string]json.RawMessage) (*store.Resource, error) {
	if t.ByName["absoluteName"] == nil || at.ID == 0 {
		return nil, nil
	}
	parent, err := p.Tx.Get(at.ID)
	if err != nil {
		return nil, err
	}
	o := object
	if o == nil {
		if o = named(t, parent, members); o == nil {
			return nil, nil
		}
	}
	found, err := p.Tx.ResourcesByKey(parent.Configuration, t.KeyOf(o))
	if err != nil {
		return nil, err
	}
	all := found
	found = nil
	for _, row := range all { // a zone may be inside another one that was created with it
		below, err := p.isBelow(row, at.ID)
		if err != nil {
			return nil, err
		}
		if below && row.Type == t.Name {
			found = append(found, row)
		}
	}
	if t.Unique == "wholeName" && len(found) == 1 {
		return found[0], nil
	}
	var other *store.Resource // differs only in the TTL
	for _, row := range found {
		shown, err := p.shownMembers(row)
		if err != nil {
			return nil, err
		}
		same, data := true, true
		for name, value := range members {
			f := t.ByName[name]
			one := f == nil || f.WriteOnly || f.ReadOnly || f.Column != "" || name == "name" || string(value) == "null" ||
				equalToSent(p.asShown(f, value, shown[name]), shown[name])
			same, data = same && one, data && (one || name == "ttl")
		}
		if same {
			return row, nil
		}
		if data {
			other = row
		}
	}
	return other, nil
}
