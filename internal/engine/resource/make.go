package resource

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// ScopeOf returns the scope of the data that the change reads and writes.
func (a *API) ScopeOf(t Target, creates bool, c *Change) store.Scope {
	if t.Sub == nil && t.Collection.Post { // the resource's siblings are outside of all configurations
		return store.Scope{}
	}
	// The linked resource may change, and may be outside of all configurations.
	if t.Sub != nil && (t.Sub.Joined != nil || t.Sub.Join != nil) {
		return store.Scope{}
	}
	return store.ConfigurationScope(t.ID, creates && t.Sub != nil && t.Sub.Local && a.staysLocal(t, c))
}

// staysLocal reports whether a POST sets only fields and options that reach no further than the direct children of its parent.
func (a *API) staysLocal(t Target, c *Change) bool {
	for _, kind := range a.PostTypes(t.Sub) {
		for _, f := range kind.Fields {
			if _, given := c.Sent[f.Name]; given && f.AffectsOthers() {
				return false
			}
		}
	}
	for _, h := range a.Headers {
		if _, given := c.Options.values[h.Name]; given && h.Elsewhere {
			return false
		}
	}
	return true
}

// TargetTypes returns the types that the resource of a change may have.
func (a *API) TargetTypes(t Target) []*schema.Type {
	if t.Sub != nil {
		return a.ItemTypes(t.Sub)
	}
	// The collection has no types of its own: its resources would have the types of the other collection with this path.
	if c := t.Collection; c.At != "" && len(c.Types) == 0 {
		return a.byName[c.At].Types
	}
	return t.Collection.Types
}

// CreateIn creates a resource in a collection or below a parent.
func (a *API) CreateIn(c *Change, at Target) (*store.Resource, error) {
	types := a.ListCreatableTypes(at)
	var parent *store.Resource
	if at.Sub != nil {
		var err error
		if parent, err = a.find(c.Tx, at.Collection, at.ID, c.Caller); err != nil {
			return nil, err
		}
	}
	t, problems := pickType(types, c.API.CollectionOf(types[0]).Default, c.Sent)
	if t == nil {
		return nil, problem.Join(problems)
	}
	c.ignore(t)
	o := t.New()
	h := schema.HeadOf(o)
	switch {
	case parent == nil && slices.Contains(a.CollectionOf(t).Parents, ""):
	case parent == nil:
		h.Parent = RootID
	default:
		h.Parent, h.Config = parent.ID, parent.Configuration
		if a.byName[parent.Collection].Scope {
			h.Config = parent.ID
		}
	}
	problems = append(problems, t.Missing(c.Sent, false)...)
	given, more := t.Decode(o, c.Sent, true)
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, problem.Join(problems)
	}
	setColumns(t, o)
	c.SetFields, c.Parent = given, parent
	return c.Create(t, o)
}

// ListCreatableTypes returns the types that POST to the target creates.
func (a *API) ListCreatableTypes(t Target) []*schema.Type {
	if t.Sub != nil {
		return a.PostTypes(t.Sub)
	}
	// Types that declare other parents are not created here.
	return slices.DeleteFunc(slices.Clone(t.Collection.Types), func(x *schema.Type) bool {
		return x.Parents != nil && !slices.Contains(x.Parents, "") && !slices.Contains(x.Parents, t.Collection.Name)
	})
}

// setColumns sets the reference fields that are columns of the row, so that rules and answers see them.
func setColumns(t *schema.Type, o schema.Object) {
	v := reflect.ValueOf(o).Elem()
	for _, f := range t.Fields {
		switch f.Column {
		case "parent":
			v.FieldByIndex(f.Index).Set(reflect.ValueOf(schema.Ref{ID: schema.HeadOf(o).Parent}))
		case "configuration":
			v.FieldByIndex(f.Index).Set(reflect.ValueOf(schema.Ref{ID: schema.HeadOf(o).Config}))
		}
	}
}

// findFittingType returns the only type that fits a body: the type has every member of the body that any type has, and the body has its
// required members with valid values. If several types fit, findFittingType returns the preferred one, or nil if that does not fit.
func findFittingType(types []*schema.Type, preferred string, members map[string]json.RawMessage) (found *schema.Type) {
	all := 0
	for _, t := range types {
		fits := len(t.Missing(members, false)) == 0
		for name := range members {
			f := t.ByName[name]
			known := f != nil && (f.OnPost || !f.ReadOnly)
			fits = fits && (known || !slices.ContainsFunc(types, func(o *schema.Type) bool { return o.ByName[name] != nil }))
		}
		if _, problems := t.Decode(t.New(), members, true); !fits || len(problems) > 0 {
			continue
		}
		if all++; found == nil || t.Name == preferred {
			found = t
		}
	}
	if all > 1 && found.Name != preferred {
		return nil
	}
	return found
}

// pickType returns the type of a new resource: the type that the body names, the only type that fits the body, or the default.
func pickType(types []*schema.Type, preferred string, members map[string]json.RawMessage) (*schema.Type, []*problem.Problem) {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name
	}
	raw, ok := members["type"]
	if !ok || string(raw) == "null" {
		first := slices.DeleteFunc(slices.Clone(types), func(t *schema.Type) bool { return t.Later })
		if len(types) == 1 || len(first) == 1 { // a type that existed before a later release added others need not be named
			return append(first, types...)[0], nil
		}
		if t := findFittingType(first, preferred, members); t != nil {
			return t, nil
		}
		// The answer also names the fields that are required by every type.
		missing := []string{"type"}
		for _, p := range types[0].Missing(members, false) {
			for _, name := range p.Fields {
				if !slices.ContainsFunc(types, func(t *schema.Type) bool { f := t.ByName[name]; return f == nil || !f.OnPost }) {
					missing = append(missing, name)
				}
			}
		}
		problems := schema.MissingFields(missing)
		problems[0].Message += " (type must be one of " + strings.Join(names, ", ") + ")"
		return nil, problems
	}
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return nil, []*problem.Problem{problem.Invalid("type", "must be a string")}
	}
	for _, t := range types {
		if t.Name == name {
			return t, nil
		}
	}
	return nil, []*problem.Problem{problem.Field("InvalidResourceType", "type", "%q cannot be created here; the type must be one of %s", name,
		strings.Join(names, ", "))}
}

// reset sets the fields that a PUT may write to their defaults, so that a field that the request omits becomes unset. Fields that are
// never null keep their values.
func reset(t *schema.Type, o schema.Object) {
	v := reflect.ValueOf(o).Elem()
	for _, f := range t.Fields {
		if f.ReadOnly || f.CreateOnly || f.Column != "" || !f.Nullable || f.Name == "type" || f.Kind == schema.References {
			continue
		}
		v.FieldByIndex(f.Index).SetZero()
	}
}

// Rewrite replaces a resource by the sent members (whole, PUT), or changes only these members (PATCH).
func (a *API) Rewrite(c *Change, row *store.Resource, whole bool) (*store.Resource, error) {
	t := a.types[row.Type]
	c.ignore(t)
	if raw, ok := c.Sent["type"]; ok && string(raw) != "null" {
		var name string
		if json.Unmarshal(raw, &name) != nil || name != t.Name {
			return nil, problem.Invalid("type", "the type of a resource cannot be changed; it is %s", t.Name)
		}
	}
	old, err := t.Object(row)
	if err != nil {
		return nil, err
	}
	fresh, err := t.Object(row)
	if err != nil {
		return nil, err
	}
	var problems []*problem.Problem
	members := c.Sent
	if whole {
		problems = t.Missing(c.Sent, true)
		reset(t, fresh)
	} else if members, err = mergePatch(t, old, c.Sent); err != nil {
		return nil, err
	}
	given, more := t.DecodeOver(fresh, old, members, false)
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, problem.Join(problems)
	}
	if whole {
		for _, f := range t.Fields { // PUT sets an omitted field to null, so the field counts as given
			if !f.ReadOnly && !f.CreateOnly && f.Kind != schema.References {
				given[f.Name] = true
			}
		}
	}
	c.Type, c.Old, c.New, c.Row, c.SetFields, c.Whole = t, old, fresh, row, given, whole
	after, err := c.update()
	if err != nil {
		return nil, err
	}
	// Fields that can be set only on creation are ignored. They are reported if the request has another value.
	for _, f := range t.Fields {
		if raw, ok := c.Sent[f.Name]; ok && f.CreateOnly && t.DiffersFrom(fresh, f, raw) && !slices.Contains(c.Ignored, f.Name) {
			c.Ignored = append(c.Ignored, f.Name)
		}
	}
	return after, nil
}

// Act executes a POST to a collection with Collection.Act, and returns the number of the transaction.
func (a *API) Act(c *Change, on *Collection) (transaction int64, err error) {
	t := on.Types[0]
	c.ignore(t)
	o := t.New()
	problems := t.Missing(c.Sent, false)
	_, more := t.Decode(o, c.Sent, true)
	if err := problem.Join(append(problems, more...)); err != nil {
		return 0, err
	}
	if err := on.Act(c, o); err != nil {
		return 0, err
	}
	return c.Tx.Number()
}

// ignore records the members of the body that are not fields of a type.
func (c *Change) ignore(t *schema.Type) {
	for name := range c.Sent {
		// clients send _links and similar members back as they received them
		if t.ByName[name] == nil && !strings.HasPrefix(name, "_") && !slices.Contains(c.Ignored, name) {
			c.Ignored = append(c.Ignored, name)
		}
	}
}
