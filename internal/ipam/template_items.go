package ipam

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// Items of a template in its own body, as release 9.6 has them.

// maxTemplateItems is how many items a body may give.
const maxTemplateItems = 1000

// keepItems makes the items that a body gives all that a template has: those that it names by their ids are changed as it says, others are
// made, and the rest is deleted but for the gateway, which every template has: an item of its type is the gateway, named or not.
func (x *IPv4Template) keepItems(c *resource.Change) error {
	if _, given := c.Sent["templateItems"]; !given {
		return nil
	}
	var raw []json.RawMessage // null is none
	if x.TemplateItems != nil {
		if err := json.Unmarshal(x.TemplateItems, &raw); err != nil || len(raw) > maxTemplateItems {
			return problem.Invalid("templateItems", "must be a list of at most %d objects", maxTemplateItems)
		}
	}
	there := map[int64]*store.Resource{}
	var gateway int64
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("templateItems"), store.HasParent(x.ID)}},
		func(r *store.Resource) error {
			if there[r.ID] = r.Clone(); r.Type == gatewayItem {
				gateway = r.ID
			}
			return nil
		}); err != nil {
		return err
	}
	given := make([]map[string]json.RawMessage, len(raw))
	named := make([]int64, len(raw)) // 0: a new one
	seen := map[int64]bool{gateway: true}
	for i := range raw {
		if json.Unmarshal(raw[i], &given[i]) != nil || given[i] == nil {
			return problem.Field("JsonDeserializationError", "templateItems", "entry %d must be an object", i)
		}
		var err error
		named[i], err = itemNamed(given[i], gateway)
		switch id := named[i]; {
		case err != nil || id == 0:
		case there[id] == nil:
			err = problem.Invalid("id", "the template has no item %d", id)
		case slices.Contains(named[:i], id) && id == gateway:
			err = problem.Invalid("type", "a template has one gateway, and the list has two")
		case slices.Contains(named[:i], id):
			err = problem.Invalid("id", "item %d is there twice", id)
		}
		if err != nil {
			return problem.At(itemAt(i), err)
		}
		seen[named[i]] = true
	}
	if err := nameAlike(c, there, given, named, seen); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(there)) {
		if !seen[id] {
			if err := c.Following().Delete(there[id]); err != nil {
				return err
			}
		}
	}
	for i, members := range given {
		ignored, err := x.keepItem(c, there[named[i]], members)
		if err != nil {
			return problem.At(itemAt(i), err)
		}
		for _, name := range ignored {
			c.Ignored = append(c.Ignored, itemAt(i)+"."+name)
		}
	}
	return nil
}

// nameAlike names items that say what one that is there is, and no other item is about: so a body that is sent again changes nothing.
func nameAlike(c *resource.Change, there map[int64]*store.Resource, given []map[string]json.RawMessage, named []int64,
	seen map[int64]bool,
) error {
	for i, members := range given {
		for _, id := range slices.Sorted(maps.Keys(there)) {
			if named[i] != 0 || seen[id] {
				continue
			}
			o, err := c.API.Object(there[id])
			if err != nil {
				return err
			}
			if saysOf(c.API.TypeNamed(there[id].Type), o, members) {
				named[i], seen[id] = id, true
			}
		}
	}
	return nil
}

// saysOf reports whether members say of an object nothing but what it is.
func saysOf(t *schema.Type, o schema.Object, members map[string]json.RawMessage) bool {
	var typeName string
	if json.Unmarshal(members["type"], &typeName) != nil || typeName != t.Name {
		return false
	}
	for name, raw := range members {
		f := t.ByName[name]
		if name == "type" || f == nil || f.ReadOnly {
			continue
		}
		if t.Differs(o, f, raw) {
			return false
		}
	}
	return true
}

// itemAt is the place of an item in a body.
func itemAt(i int) string { return fmt.Sprintf("templateItems[%d]", i) }

// keepItem changes an item that is there as members say, or makes one. It gives the members that are no fields of it.
func (x *IPv4Template) keepItem(c *resource.Change, row *store.Resource, members map[string]json.RawMessage) (ignored []string, err error) {
	n := c.Following()
	n.Sent, n.Ignored = members, nil
	if row != nil {
		_, err = c.API.Rewrite(n, row, false)
	} else {
		templates := c.API.Collection("templates")
		_, err = c.API.MakeIn(n, resource.Target{Collection: templates, Sub: templates.Sub("templateItems"), ID: x.ID})
	}
	return n.Ignored, err
}

// itemNamed gives the id of the item that a body is about; 0 where it is about a new one.
func itemNamed(members map[string]json.RawMessage, gateway int64) (id int64, err error) {
	var typeName string
	_ = json.Unmarshal(members["type"], &typeName) // what is no text is refused with the item
	if raw, ok := members["id"]; ok && string(raw) != "null" {
		if json.Unmarshal(raw, &id) != nil || id < 1 {
			return 0, problem.Field("InvalidResourceId", "id", "must be a positive number")
		}
		return id, nil
	}
	if typeName == gatewayItem {
		return gateway, nil
	}
	return 0, nil
}
