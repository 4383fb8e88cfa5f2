package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// keyOf returns the path of a resource as collection/key. It requests the key of a resource that was not read yet, once.
func (e *export) keyOf(c *resource.Collection, id int64) (string, error) {
	if key := e.keys[id]; key != "" {
		return key, nil
	}
	var one map[string]json.RawMessage
	if err := e.Get(e.ctx, fmt.Sprint(c.Name, "/", id, "?fields=id,", c.KeyField()), &one); err != nil {
		return "", err
	}
	e.keys[id] = fmt.Sprint(c.Name, "/", cmp.Or(fieldText(one[c.KeyField()]), fmt.Sprint(id)))
	return e.keys[id], nil
}

// keyContainsParent reports whether the key of a resource contains its parent. This is false for types with a computed absolute name, such
// as ENUMZone.
func keyContainsParent(c *resource.Collection, t *schema.Type) bool {
	key := t.ByName[c.KeyField()]
	return key == nil || !key.ReadOnly
}

// value returns the value of a field for the document, or nil to omit the field.
func (e *export) value(t *schema.Type, c *resource.Collection, f *schema.Field, members map[string]json.RawMessage) (value json.RawMessage,
	err error) {
	raw := members[f.Name]
	if isEmbeddedList(f) {
		var embedded map[string]json.RawMessage
		if members["_embedded"] != nil && json.Unmarshal(members["_embedded"], &embedded) == nil {
			raw = embedded[f.Name]
		}
	}
	text := string(raw)
	key := t.ByName[c.KeyField()]
	inKey := f.Name == "name" && key != nil && key.DNS && keyContainsParent(c, t) // the absolute name contains the name
	placed := f.Name == c.PlacedBy && keyContainsParent(c, t)
	switch {
	case f.Name == "id" || f.Name == "type" || inKey || f.Hidden || f.Transient || f.Also != "" || f.Column != "" && !placed:
		return nil, nil
	case e.includeEmpty && !f.ReadOnly && !f.WriteOnly && len(raw) > 0 && !isReference(f) && (text != "null" || f.Nullable),
		e.includeEmpty && !f.ReadOnly && f.Kind == schema.Reference && text == "null" && f.Nullable:
		return raw, nil
	case f.Chosen && text == "null":
		return raw, nil
	case f.ReadOnly && !placed, len(raw) == 0, text == "null", text == "{}", text == "[]", text == `""`:
		return nil, nil
	case f.WriteOnly && !isEmbeddedList(f):
		return nil, nil
	case f.Kind == schema.Bool && !f.Nullable && f.Default == "" && text == "false":
		return nil, nil
	case f.Default != "" && (text == f.Default || text == jsonText(f.Default)):
		return nil, nil
	case f.Kind == schema.Reference:
		return e.referenceText(f, raw)
	case f.Kind == schema.References:
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, err
		}
		named := []json.RawMessage{}
		for _, item := range items {
			one, err := e.referenceItem(t, f, item)
			if err != nil {
				return nil, err
			}
			if one != nil {
				named = append(named, one)
			}
		}
		return json.Marshal(named)
	case f.Kind == schema.SecretText || f.Kind == schema.Nested && text == "{}":
		return nil, nil
	}
	return raw, nil
}

// referenceItem returns an entry of a list of references: a key, or the resource itself if it can be created only with the resource that
// refers to it.
func (e *export) referenceItem(t *schema.Type, f *schema.Field, raw json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	of := e.API.TypeNamed(fieldText(members["type"]))
	if of == nil || !of.NotMade || !slices.Contains(e.API.ParentsOf(of), t.Collection) {
		return e.referenceText(f, raw)
	}
	created := map[string]json.RawMessage{"type": members["type"]}
	for _, inner := range of.Fields {
		value, err := e.value(of, e.API.CollectionOf(of), inner, members)
		if err != nil {
			return nil, err
		}
		if value != nil {
			created[inner.Name] = value
		}
	}
	return json.Marshal(created)
}

// referenceText returns a reference as text: the key of its target, or the path if the field can refer to several collections.
func (e *export) referenceText(f *schema.Field, raw json.RawMessage) (json.RawMessage, error) {
	var to map[string]json.RawMessage
	if err := json.Unmarshal(raw, &to); err != nil {
		return nil, err
	}
	of := e.API.TypeNamed(fieldText(to["type"]))
	if of == nil {
		e.notes["left out, as this program is older than the manager: "+fieldText(to["type"])]++
		return nil, nil
	}
	c := e.API.CollectionOf(of)
	if f.Identify != "" && fieldText(to[f.Identify]) != "" {
		return json.Marshal(fieldText(to[f.Identify]))
	}
	key := fieldText(to[c.KeyField()])
	if key == "" {
		var id int64
		if err := json.Unmarshal(to["id"], &id); err != nil {
			return nil, err
		}
		path, err := e.keyOf(c, id)
		if err != nil {
			return nil, err
		}
		_, key, _ = strings.Cut(path, "/")
	}
	if f.Column != "" || f.ReadOnly || len(collectionsOf(e.API, f)) == 1 || c.KeyField() == "address" && f.Kind == schema.References {
		return json.Marshal(key)
	}
	return json.Marshal(c.Name + "/" + key)
}

// collectionsOf returns the collections that a field can refer to.
func collectionsOf(a *resource.API, f *schema.Field) map[*resource.Collection]bool {
	all := map[*resource.Collection]bool{}
	for _, name := range f.Refs {
		if t := a.TypeNamed(name); t != nil {
			all[a.CollectionOf(t)] = true
		}
	}
	return all
}
