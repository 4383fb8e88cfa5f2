package resource

import (
	"net/netip"
	"slices"
	"strconv"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// KeyField returns the field that identifies resources of the collection to users: the range, the address, the absolute name, the look-up
// key, a code, or otherwise the name.
func (c *Collection) KeyField() string {
	for _, holds := range []func(f *schema.Field) bool{
		func(f *schema.Field) bool { return f.Kind == schema.Span && f.Name == "range" },
		func(f *schema.Field) bool { return f.Kind == schema.Address && f.Span },
		func(f *schema.Field) bool { return f.DNS },
		func(f *schema.Field) bool { return f.KeyPrefix != "" },
		func(f *schema.Field) bool { return f.Name == "code" && f.Indexed },
	} {
		for _, t := range c.Types {
			if i := slices.IndexFunc(t.Fields, holds); i >= 0 {
				return t.Fields[i].Name
			}
		}
	}
	return "name"
}

// Named returns the one resource of a collection that has this key (KeyField), in a configuration, or in any if that is 0. If the key is
// a code, the name identifies the resource as well, as references show names. The errors for none and for several resources name field.
func (a *API) Named(tx *store.Tx, caller Caller, field string, c *Collection, text string, configuration int64) (*store.Resource, error) {
	q, _ := a.ListQuery(Target{Collection: c, List: true}, caller)
	where := store.All{q.Where}
	key := c.keyExpr(text)
	if key == nil {
		return nil, notFoundInlined(field, "%q is not a valid %s for %s", text, c.KeyField(), c.Name)
	}
	if configuration != 0 && !c.Scope && len(c.Types) > 0 && c.Types[0].ByName["configuration"] != nil {
		where = append(where, compare(store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, "eq", configuration))
	}
	by := c.KeyField()
	rows, err := tx.ListSome(append(where, key), 2)
	if err == nil && len(rows) == 0 && c.hasCodeKey() {
		by = "name"
		rows, err = tx.ListSome(append(where, compare(nameColumn, "eq", text)), 2)
	}
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, notFoundInlined(field, "the %[2]s %[3]q does not exist in %[1]s", c.Name, c.KeyField(), text)
	case len(rows) > 1 && by != c.KeyField():
		return nil, problem.Field("ConflictingResourceFieldValues", field,
			"several %s have the name %q; give the %s of one of them", c.Name, text,
			c.KeyField())
	case len(rows) > 1:
		return nil, problem.Field("ConflictingResourceFieldValues", field,
			"several %s have the %s %q; give the number of one of them", c.Name, by,
			text)
	}
	return rows[0], nil
}

// maxNamedAlike is the maximum number of resources with the same key that NamedBelow checks.
const maxNamedAlike = 1000

// NamedBelow returns the resource of a collection that has this key and is below another resource, at any depth. The error names field.
func (a *API) NamedBelow(tx *store.Tx, caller Caller, field string, c *Collection, text string, above *store.Resource) (*store.Resource,
	error) {
	q, _ := a.ListQuery(Target{Collection: c, List: true}, caller)
	key := c.keyExpr(text)
	if key == nil {
		return nil, notFoundInlined(field, "%q is not a valid %s for %s", text, c.KeyField(), c.Name)
	}
	rows, err := tx.ListSome(store.All{q.Where, key}, maxNamedAlike)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		for id := row.Parent; id > RootID; {
			if id == above.ID {
				return row, nil
			}
			head, err := tx.Head(id)
			if err != nil {
				return nil, err
			}
			id = head.Parent
		}
	}
	return nil, notFoundInlined(field, "the %[4]s %[5]q does not exist in %[1]s of %[2]s %[3]d", c.Name, above.Type, above.ID, c.KeyField(),
		text)
}

// NamedOrNumbered is Named for a text that may also be an id. A resource with that key takes precedence.
func (a *API) NamedOrNumbered(tx *store.Tx, caller Caller, field string, c *Collection, text string, configuration int64) (*store.Resource,
	error) {
	id, wrong := strconv.ParseInt(text, 10, 64)
	row, err := a.Named(tx, caller, field, c, text, configuration)
	if wrong != nil || !problem.IsNotFound(err) {
		return row, err
	}
	row, err = a.find(tx, c, id, caller)
	if problem.IsNotFound(err) {
		return nil, notFoundInlined(field, "resource %d does not exist in %s", id, c.Name)
	}
	return row, err
}

// keyExpr returns the condition that a resource has a key; nil if the text cannot be a key.
func (c *Collection) keyExpr(text string) store.Expr {
	f := c.keyField()
	switch {
	case f == nil || f.Name == "name":
		return compare(nameColumn, "eq", text)
	case f.Kind == schema.Span, f.Kind == schema.Address:
		r, err := space.Parse(text)
		if a, wrong := netip.ParseAddr(text); wrong == nil && a.Zone() == "" {
			r, err = space.Range{Low: a.Unmap(), High: a.Unmap()}, nil
		}
		if err != nil {
			return nil
		}
		return store.All{compare(lowColumn, "eq", store.AddrKey(r.Low)), compare(highColumn, "eq", store.AddrKey(r.High))}
	case f.DNS:
		return compare(keyColumn, "eq", naming.Key(text))
	case f.KeyPrefix != "":
		kept, err := f.Normalize(text)
		if err != nil {
			return nil
		}
		return compare(keyColumn, "eq", f.KeyPrefix+kept)
	}
	return compare(store.Field{Kind: store.Text, Path: []string{f.Name}, Indexed: f.Indexed}, "eq", text)
}

// HardwareKey reports whether a text is a hardware address, in a collection whose key is one.
func (c *Collection) HardwareKey(text string) bool {
	f := c.keyField()
	if f == nil || !f.Hardware {
		return false
	}
	_, err := f.Normalize(text)
	return err == nil
}

// keyField returns the field that KeyField names; nil if no type of the collection has it.
func (c *Collection) keyField() *schema.Field {
	for _, t := range c.Types {
		if f := t.ByName[c.KeyField()]; f != nil {
			return f
		}
	}
	return nil
}

// hasCodeKey reports whether the key is a code that differs from the name, such as that of a location.
func (c *Collection) hasCodeKey() bool {
	f := c.keyField()
	return f != nil && f.Name != "name" && f.Kind == schema.Text && !f.DNS && f.KeyPrefix == ""
}

// SameTarget reports whether two texts identify the same target of a reference, in any notation (schema.Field.Same).
func (a *API) SameTarget(f *schema.Field, one, other string) bool {
	return slices.ContainsFunc(f.Refs, func(name string) bool {
		t := a.TypeNamed(name)
		return t != nil && t.ByName[f.Identify] != nil && t.ByName[f.Identify].Same(one, other)
	})
}

// FormatReference returns the identifying text of a reference in the notation of its target (schema.Field.Kept).
func (a *API) FormatReference(f *schema.Field, text string) string {
	for _, name := range f.Refs {
		t := a.TypeNamed(name)
		if t == nil || t.ByName[f.Identify] == nil {
			continue
		}
		if kept, err := t.ByName[f.Identify].Normalize(text); err == nil {
			return kept
		}
	}
	return text
}
