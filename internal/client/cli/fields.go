package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// Members parses FIELD=VALUE settings of a type into members. The names are the columns of an import table: a dot selects a part of a
// field, such as userDefinedFields.rack=A7. Lists are indexed or separated by commas, objects and lists may be JSON. A reference is the key
// or the path of its target. An empty value clears the field.
func Members(t *schema.Type, settings []string) (map[string]json.RawMessage, error) {
	row := schema.NewTableRow(t)
	members := map[string]json.RawMessage{}
	for _, whole := range []bool{true, false} { // whole fields are set before parts of them
		for _, text := range settings {
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				return nil, wrongf("%q is not of the form FIELD=VALUE", text)
			}
			column, err := schema.ParseColumn(name)
			if err != nil {
				return nil, UsageError{err}
			}
			f := t.ByName[column.Member()]
			switch {
			case f == nil:
				return nil, noField(t, column.Member())
			case f.ReadOnly && column.Member() != "type":
				return nil, wrongf("%s: read-only", name)
			case column.IsWhole() != whole:
			case whole && isReference(f) && !strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "["):
				if members[name], err = references(f, value); err != nil {
					return nil, err
				}
			default:
				if value == "" {
					value = "null"
				} else if whole && f.Kind == schema.Strings && !strings.HasPrefix(value, "[") {
					list, err := json.Marshal(strings.Split(value, ","))
					if err != nil {
						return nil, err
					}
					value = string(list)
				}
				if err := row.SetCell(column, value); err != nil {
					return nil, UsageError{err}
				}
			}
		}
	}
	rest, err := row.Members()
	if err != nil {
		return nil, UsageError{err}
	}
	for name, raw := range rest {
		if members[name] != nil {
			return nil, wrongf("%s: set both as a whole and in part", name)
		}
		members[name] = raw
	}
	return members, nil
}

func isReference(f *schema.Field) bool {
	return f.Kind == schema.Reference || f.Kind == schema.References
}

// references returns a text as a reference, or as a list of references that commas separate.
func references(f *schema.Field, value string) (json.RawMessage, error) {
	switch {
	case f.Kind == schema.References && value == "":
		return json.RawMessage("[]"), nil
	case f.Kind == schema.References:
		return json.Marshal(strings.Split(value, ","))
	case value == "":
		return json.RawMessage("null"), nil
	}
	return json.Marshal(value)
}

// noField returns the error for a field that the type does not have.
func noField(t *schema.Type, name string) error {
	var names []string
	for _, f := range t.Fields {
		if !f.ReadOnly && !f.Hidden {
			names = append(names, f.Name)
		}
	}
	if near := FindNearest(name, names); near != "" {
		return wrongf("%s has no field %q; did you mean %s?", t.Name, name, near)
	}
	slices.Sort(names)
	return wrongf("%s has no field %q; must be one of %s", t.Name, name, strings.Join(names, ", "))
}

// TypeFor returns the type of a new resource: the type that the word names, such as IPv4Network or network, or the type in the setting
// type=NAME. If the word names a collection of several types, the type must have all the fields that are set. The values select between
// IPv4 and IPv6.
func TypeFor(a *resource.API, word string, settings []string) (*schema.Type, error) {
	for _, text := range append([]string{"type=" + word}, settings...) {
		if name, value, _ := strings.Cut(text, "="); name == "type" {
			for _, t := range a.AllTypes() {
				if strings.EqualFold(t.Name, value) {
					return t, nil
				}
			}
			if text != "type="+word {
				return nil, wrongf("type %q does not exist", value)
			}
		}
	}
	for _, t := range a.AllTypes() { // host, alias, mx
		if strings.EqualFold(t.Name, word+"Record") || t.Name == recordsOf[strings.ToLower(word)] {
			return t, nil
		}
	}
	c, err := CollectionNamed(a, word)
	if err != nil {
		return nil, err
	}
	types := slices.DeleteFunc(slices.Clone(c.Types), func(t *schema.Type) bool {
		return t.NotMade || t.Later || !hasFields(t, c, settings)
	})
	switch len(types) {
	case 0:
		return nil, wrongf("no type of %s has all of these fields", c.Name)
	case 1:
		return types[0], nil
	}
	var names []string
	for _, t := range types {
		names = append(names, t.Name)
	}
	return nil, wrongf("%s can have several types: choose one, such as portolan create %s; types: %s", c.Name, names[0],
		strings.Join(names, ", "))
}

// recordsOf maps DNS record types to the types of the API with other names.
var recordsOf = map[string]string{"a": "HostRecord", "aaaa": "HostRecord", "cname": "AliasRecord"}

// hasFields reports whether a type has all the fields that are set and the key is of the type's address family.
func hasFields(t *schema.Type, c *resource.Collection, settings []string) bool {
	for _, text := range settings {
		name, value, _ := strings.Cut(text, "=")
		name, _, _ = strings.Cut(name, ".")
		name, _, _ = strings.Cut(name, "[")
		if t.ByName[name] == nil {
			return false
		}
		six := strings.Contains(value, ":")
		if name == c.KeyField() && (strings.HasPrefix(t.Name, "IPv4") && six || strings.HasPrefix(t.Name, "IPv6") && !six) {
			return false
		}
	}
	return true
}

// Condition returns the filter for a field with a value. A reference is compared by the key of its target. Enum values match in any case.
func Condition(a *resource.API, types []*schema.Type, name, value string) string {
	field, _, _ := strings.Cut(name, ".")
	for _, t := range types {
		f := t.ByName[field]
		if f == nil || field != name {
			continue
		}
		for _, one := range f.Enum {
			if strings.EqualFold(one, value) {
				value = one
			}
		}
		if f.Kind == schema.Reference {
			by := f.Identify
			for of := range collectionsOf(a, f) {
				if by == "" {
					by = of.KeyField()
				}
			}
			if by == "" {
				by = "name"
			}
			name += "." + by
			break
		}
	}
	return name + ":" + Quoted(value)
}

// fieldText returns a value as a table or a difference shows it.
func fieldText(raw json.RawMessage) string {
	var value any
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil || value == nil {
		return ""
	}
	return valueText(value)
}

func valueText(value any) string {
	switch x := value.(type) {
	case nil:
		return ""
	case string:
		return x
	case float64:
		text, err := json.Marshal(x)
		if err != nil {
			return fmt.Sprint(x)
		}
		return string(text)
	case []any:
		var parts []string
		for _, one := range x {
			parts = append(parts, valueText(one))
		}
		return strings.Join(parts, ",")
	case map[string]any:
		for _, name := range []string{"absoluteName", "address", "range", "name", "code", "id"} {
			if text := valueText(x[name]); text != "" {
				return text
			}
		}
		var parts []string
		for name, one := range x {
			if text := valueText(one); text != "" {
				parts = append(parts, name+"="+text)
			}
		}
		slices.Sort(parts)
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(value)
}
