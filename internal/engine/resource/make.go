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

// ScopeOf is what the change depends on and changes.
func (a *API) ScopeOf(t Target, creates bool, c *Change) store.Scope {
	if t.Sub == nil && t.Collection.Post { // its siblings lie outside of all configurations
		return store.Scope{}
	}
	if t.Sub != nil && (t.Sub.Joined != nil || t.Sub.Make != nil) { // what is linked may change, and lie outside of them
		return store.Scope{}
	}
	return store.Within(t.ID, creates && t.Sub != nil && t.Sub.Local && a.staysLocal(t, c))
}

// staysLocal reports whether a POST gives no field and no option by which it reaches further than what lies right below its
// parent.
func (a *API) staysLocal(t Target, c *Change) bool {
	for _, kind := range a.PostTypes(t.Sub) {
		for _, f := range kind.Fields {
			if _, given := c.Sent[f.Name]; given && f.Elsewhere() {
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

// TargetTypes are the types that the resource of a change may be of.
func (a *API) TargetTypes(t Target) []*schema.Type {
	if t.Sub != nil {
		return a.ItemTypes(t.Sub)
	}
	if c := t.Collection; c.At != "" && len(c.Types) == 0 { // there are none: they would be of the types that others of its path are of
		return a.byName[c.At].Types
	}
	return t.Collection.Types
}

// MakeIn makes a resource in a collection or below a parent.
func (a *API) MakeIn(c *Change, at Target) (*store.Resource, error) {
	types := a.TypesMadeIn(at)
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
	c.Given, c.Parent = given, parent
	return c.Create(t, o)
}

// TypesMadeIn gives the types that POST makes there.
func (a *API) TypesMadeIn(t Target) []*schema.Type {
	if t.Sub != nil {
		return a.PostTypes(t.Sub)
	}
	return slices.DeleteFunc(slices.Clone(t.Collection.Types), func(x *schema.Type) bool { // those that say what they lie below
		return x.Parents != nil && !slices.Contains(x.Parents, "") && !slices.Contains(x.Parents, t.Collection.Name)
	})
}

// setColumns fills the references that the row itself has, so that rules and answers see them.
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

// fitting gives the only type that a body fits: it has every member that any type has, and the required ones with proper values. Where
// several fit, it gives the preferred one of them, and nil where that is none.
func fitting(types []*schema.Type, preferred string, members map[string]json.RawMessage) (found *schema.Type) {
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

// pickType finds the type of a new resource: named in the body, the only one that the body fits, or the default.
func pickType(types []*schema.Type, preferred string, members map[string]json.RawMessage) (*schema.Type, []*problem.Problem) {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name
	}
	raw, ok := members["type"]
	if !ok || string(raw) == "null" {
		first := slices.DeleteFunc(slices.Clone(types), func(t *schema.Type) bool { return t.Later })
		if len(types) == 1 || len(first) == 1 { // what there was before a later release had more needs no type
			return append(first, types...)[0], nil
		}
		if t := fitting(first, preferred, members); t != nil {
			return t, nil
		}
		// Required fields that every type asks for are named in the same answer.
		missing := []string{"type"}
		for _, p := range types[0].Missing(members, false) {
			for _, name := range p.Fields {
				if !slices.ContainsFunc(types, func(t *schema.Type) bool { f := t.ByName[name]; return f == nil || !f.OnPost }) {
					missing = append(missing, name)
				}
			}
		}
		problems := schema.MissingFields(missing)
		problems[0].Message += " (type is one of " + strings.Join(names, ", ") + ")"
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
	return nil, []*problem.Problem{problem.Field("InvalidResourceType", "type", "%q cannot be made here; these can: %s", name,
		strings.Join(names, ", "))}
}

// reset sets what a PUT may write to its default, so that a field left out becomes unset. Fields
// that are never null keep what they have.
func reset(t *schema.Type, o schema.Object) {
	v := reflect.ValueOf(o).Elem()
	for _, f := range t.Fields {
		if f.ReadOnly || f.CreateOnly || f.Column != "" || !f.Nullable || f.Name == "type" || f.Kind == schema.References {
			continue
		}
		v.FieldByIndex(f.Index).SetZero()
	}
}

// Rewrite replaces a resource by what was sent, whole, or changes it.
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
		for _, f := range t.Fields { // what PUT leaves out is set to null, so it is given
			if !f.ReadOnly && !f.CreateOnly && f.Kind != schema.References {
				given[f.Name] = true
			}
		}
	}
	c.Type, c.Old, c.New, c.Row, c.Given, c.Whole = t, old, fresh, row, given, whole
	after, err := c.update()
	if err != nil {
		return nil, err
	}
	for _, f := range t.Fields { // what can be set at the beginning alone is ignored, and named where it was to be another one
		if raw, ok := c.Sent[f.Name]; ok && f.CreateOnly && t.Differs(fresh, f, raw) && !slices.Contains(c.Ignored, f.Name) {
			c.Ignored = append(c.Ignored, f.Name)
		}
	}
	return after, nil
}

// Act does what POST to a collection of transactions asks for, and gives the number of the transaction.
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

// ignore notes the members of the body that are no fields of a type.
func (c *Change) ignore(t *schema.Type) {
	for name := range c.Sent {
		// _links and the like come back as they were shown
		if t.ByName[name] == nil && !strings.HasPrefix(name, "_") && !slices.Contains(c.Ignored, name) {
			c.Ignored = append(c.Ignored, name)
		}
	}
}
