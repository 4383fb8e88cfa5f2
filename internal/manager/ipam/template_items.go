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

// Template items as part of the body of a template, as in release 9.6.

// maxTemplateItems is the maximum number of items in a body. It is limited because each item is compared with the existing ones.
const maxTemplateItems = 250

// templateItems contains the stored items of a template and the items of a request body that replace them.
type templateItems struct {
	// existing contains the stored items by id. gateway is the id of the gateway item, 0 if it was deleted.
	existing map[int64]*store.Resource
	gateway  int64
	// items are the items of the body. matched contains the id of the existing item for each of them, 0 for a new item.
	items   []map[string]json.RawMessage
	matched []int64
}

// replaceItems replaces the items of a template by those of the body. An item with an id changes the existing item, others are created.
// Existing items that are not in the body are deleted, except the gateway. An item of the gateway type always changes the gateway.
func (x *IPv4Template) replaceItems(c *resource.Change) error {
	if _, given := c.Sent["templateItems"]; !given {
		return nil
	}
	items := templateItems{existing: map[int64]*store.Resource{}}
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("templateItems"), store.HasParent(x.ID)}},
		func(r *store.Resource) error {
			if items.existing[r.ID] = r.Clone(); r.Type == gatewayItem {
				items.gateway = r.ID
			}
			return nil
		}); err != nil {
		return err
	}
	if err := items.read(x.TemplateItems); err != nil {
		return err
	}
	if err := items.matchUnchanged(c.API); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(items.existing)) {
		if id != items.gateway && !slices.Contains(items.matched, id) {
			if err := c.Following().Delete(items.existing[id]); err != nil {
				return err
			}
		}
	}
	for i, members := range items.items {
		ignored, err := x.saveItem(c, items.existing[items.matched[i]], members)
		if err != nil {
			return problem.AddPlace(itemPath(i), err)
		}
		for _, name := range ignored {
			c.Ignored = append(c.Ignored, itemPath(i)+"."+name)
		}
	}
	return nil
}

// read parses the items of a body. null is an empty list.
func (l *templateItems) read(text json.RawMessage) error {
	var raw []json.RawMessage
	if text != nil {
		if err := json.Unmarshal(text, &raw); err != nil || len(raw) > maxTemplateItems {
			return problem.Invalid("templateItems", "must be a list of at most %d objects", maxTemplateItems)
		}
	}
	l.items, l.matched = make([]map[string]json.RawMessage, len(raw)), make([]int64, len(raw))
	for i := range raw {
		if json.Unmarshal(raw[i], &l.items[i]) != nil || l.items[i] == nil {
			return problem.Field("JsonDeserializationError", "templateItems", "entry %d must be an object", i)
		}
		id, err := itemID(l.items[i], l.gateway)
		switch {
		case err != nil || id == 0:
		case l.existing[id] == nil:
			err = problem.Invalid("id", "item %d does not exist in the template", id)
		case slices.Contains(l.matched[:i], id) && id == l.gateway:
			err = problem.Invalid("type", "the list has two gateways: a template can have only one")
		case slices.Contains(l.matched[:i], id):
			err = problem.Invalid("id", "item %d is listed twice", id)
		}
		if err != nil {
			return problem.AddPlace(itemPath(i), err)
		}
		l.matched[i] = id
	}
	return nil
}

// matchUnchanged matches items without an id to equal existing items, so that a repeated request changes nothing.
func (l *templateItems) matchUnchanged(a *resource.API) error {
	left := map[int64]schema.Object{}
	for id, row := range l.existing {
		o, err := a.Object(row)
		if err != nil {
			return err
		}
		if left[id] = o; slices.Contains(l.matched, id) {
			delete(left, id)
		}
	}
	for i, members := range l.items {
		if l.matched[i] != 0 {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(left)) {
			if isUnchanged(a.TypeNamed(l.existing[id].Type), left[id], members) {
				l.matched[i] = id
				delete(left, id)
				break
			}
		}
	}
	return nil
}

// isUnchanged reports whether the members of a body equal the fields of an existing object of type t.
func isUnchanged(t *schema.Type, o schema.Object, members map[string]json.RawMessage) bool {
	var typeName string
	if json.Unmarshal(members["type"], &typeName) != nil || typeName != t.Name {
		return false
	}
	for name, raw := range members {
		f := t.ByName[name]
		if name == "type" || f == nil || f.ReadOnly {
			continue
		}
		if t.DiffersFrom(o, f, raw) {
			return false
		}
	}
	return true
}

// itemPath returns the path of an item in a body, for error messages.
func itemPath(i int) string { return fmt.Sprintf("templateItems[%d]", i) }

// saveItem changes an existing item, or creates one if row is nil. It returns the members of the body that are not fields of the item.
func (x *IPv4Template) saveItem(c *resource.Change, row *store.Resource, members map[string]json.RawMessage) (ignored []string, err error) {
	n := c.Following()
	n.Sent, n.Ignored = members, nil
	if row != nil {
		_, err = c.API.Rewrite(n, row, false)
	} else {
		templates := c.API.Collection("templates")
		_, err = c.API.CreateIn(n, resource.Target{Collection: templates, Sub: templates.Sub("templateItems"), ID: x.ID})
	}
	return n.Ignored, err
}

// itemID returns the id of the existing item that a body changes; 0 for a new item.
func itemID(members map[string]json.RawMessage, gateway int64) (id int64, err error) {
	var typeName string
	_ = json.Unmarshal(members["type"], &typeName) // creating the item reports an invalid type
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
