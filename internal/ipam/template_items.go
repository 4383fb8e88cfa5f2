package ipam

import (
	"encoding/json"
	"fmt"
	"slices"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// Items of a template in its own body, as release 9.6 has them.

// maxTemplateItems is how many items a body may give.
const maxTemplateItems = 1000

// keepItems makes the items that a body gives all that a template has: those that it names by their ids are changed as it says, others are
// made, and the rest is deleted but for the gateway, which every template has: an item of its type is the gateway, named or not.
func (x *IPv4Template) keepItems(c *resource.Change) error {
	if x.TemplateItems == nil {
		return nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(x.TemplateItems, &raw); err != nil || len(raw) > maxTemplateItems {
		return problem.Invalid("templateItems", "must be a list of at most %d objects", maxTemplateItems)
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
		case slices.Contains(named[:i], id):
			err = problem.Invalid("id", "item %d is there twice", id)
		}
		if err != nil {
			return problem.At(itemAt(i), err)
		}
		seen[named[i]] = true
	}
	for id, row := range there {
		if !seen[id] {
			if err := c.Following().Delete(row); err != nil {
				return err
			}
		}
	}
	for i, members := range given {
		if err := x.keepItem(c, there[named[i]], members); err != nil {
			return problem.At(itemAt(i), err)
		}
	}
	return nil
}

// itemAt is the place of an item in a body.
func itemAt(i int) string { return fmt.Sprintf("templateItems[%d]", i) }

// keepItem changes an item that is there as members say, or makes one.
func (x *IPv4Template) keepItem(c *resource.Change, row *store.Resource, members map[string]json.RawMessage) error {
	n := c.Following()
	n.Sent = members
	var err error
	if row != nil {
		_, err = c.API.Rewrite(n, row, false)
	} else {
		templates := c.API.Collection("templates")
		_, err = c.API.MakeIn(n, resource.Target{Collection: templates, Sub: templates.Sub("templateItems"), ID: x.ID})
	}
	return err
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
