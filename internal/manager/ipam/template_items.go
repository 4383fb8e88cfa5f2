package ipam

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Items of a template in its own body, as release 9.6 has them.

// maxTemplateItems is how many items a body may give: each is compared with those that are there.
const maxTemplateItems = 250

// templateItems are the items of a template, and those of a body that are to be all that it has.
type templateItems struct {
	// there are the items that the template has, by their ids; gateway is the one that every template has, 0 where it has gone.
	there   map[int64]*store.Resource
	gateway int64
	// given are the items of the body; named says which of those that are there each of them is, 0 where it is a new one.
	given []map[string]json.RawMessage
	named []int64
}

// keepItems makes the items that a body gives all that a template has: those that it names by their ids are changed as it says, others are
// made, and the rest is deleted but for the gateway: an item of its type is the gateway, named or not.
func (x *IPv4Template) keepItems(c *resource.Change) error {
	if _, given := c.Sent["templateItems"]; !given {
		return nil
	}
	items := templateItems{there: map[int64]*store.Resource{}}
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("templateItems"), store.HasParent(x.ID)}},
		func(r *store.Resource) error {
			if items.there[r.ID] = r.Clone(); r.Type == gatewayItem {
				items.gateway = r.ID
			}
			return nil
		}); err != nil {
		return err
	}
	if err := items.read(x.TemplateItems); err != nil {
		return err
	}
	if err := items.nameAlike(c.API); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(items.there)) {
		if id != items.gateway && !slices.Contains(items.named, id) {
			if err := c.Following().Delete(items.there[id]); err != nil {
				return err
			}
		}
	}
	for i, members := range items.given {
		ignored, err := x.keepItem(c, items.there[items.named[i]], members)
		if err != nil {
			return problem.At(itemAt(i), err)
		}
		for _, name := range ignored {
			c.Ignored = append(c.Ignored, itemAt(i)+"."+name)
		}
	}
	return nil
}

// read reads the items of a body; null is none.
func (l *templateItems) read(text json.RawMessage) error {
	var raw []json.RawMessage
	if text != nil {
		if err := json.Unmarshal(text, &raw); err != nil || len(raw) > maxTemplateItems {
			return problem.Invalid("templateItems", "must be a list of at most %d objects", maxTemplateItems)
		}
	}
	l.given, l.named = make([]map[string]json.RawMessage, len(raw)), make([]int64, len(raw))
	for i := range raw {
		if json.Unmarshal(raw[i], &l.given[i]) != nil || l.given[i] == nil {
			return problem.Field("JsonDeserializationError", "templateItems", "entry %d must be an object", i)
		}
		id, err := itemNamed(l.given[i], l.gateway)
		switch {
		case err != nil || id == 0:
		case l.there[id] == nil:
			err = problem.Invalid("id", "the template has no item %d", id)
		case slices.Contains(l.named[:i], id) && id == l.gateway:
			err = problem.Invalid("type", "a template has one gateway, and the list has two")
		case slices.Contains(l.named[:i], id):
			err = problem.Invalid("id", "item %d is there twice", id)
		}
		if err != nil {
			return problem.At(itemAt(i), err)
		}
		l.named[i] = id
	}
	return nil
}

// nameAlike names items that say what one is that is there, and that no other item is about: a body that is sent again changes nothing.
func (l *templateItems) nameAlike(a *resource.API) error {
	left := map[int64]schema.Object{}
	for id, row := range l.there {
		o, err := a.Object(row)
		if err != nil {
			return err
		}
		if left[id] = o; slices.Contains(l.named, id) {
			delete(left, id)
		}
	}
	for i, members := range l.given {
		if l.named[i] != 0 {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(left)) {
			if saysOf(a.TypeNamed(l.there[id].Type), left[id], members) {
				l.named[i] = id
				delete(left, id)
				break
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
