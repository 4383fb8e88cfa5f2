package resource

import (
	"encoding/json"
	"slices"
	"strings"

	"portolan/internal/problem"
	"portolan/internal/store"
)

// Tagged gives the tag that a path names, such as tags/import, or a name alone; nil where the path is empty. The error is a problem of the
// field tag where the caller sees no such tag.
func (a *API) Tagged(tx *store.Tx, caller Caller, path string) (*store.Resource, error) {
	if path == "" {
		return nil, nil
	}
	return a.Named(tx, caller, "tag", a.Collection("tags"), strings.TrimPrefix(path, "tags/"), 0)
}

// Mark gives a resource a tag, as far as the caller may, and reports whether it did not have it.
func (a *API) Mark(c *Change, row, tag *store.Resource) (bool, error) {
	targets, err := c.Tx.Links(row.ID, "tags")
	if err != nil || slices.Contains(targets, tag.ID) {
		return false, err
	}
	collection := a.Collection(row.Collection)
	at := Target{Collection: collection, ID: row.ID, Sub: collection.Sub("tags"), List: true}
	if at.Sub == nil {
		return false, problem.Invalid("tag", "a %s has no tags", row.Type)
	}
	if a.May != nil {
		if _, err := a.May(c.Caller, ActionMake, Subject{Collection: collection, Sub: at.Sub, ID: row.ID}); err != nil {
			return false, err
		}
	}
	id, err := json.Marshal(tag.ID)
	if err != nil {
		return false, err
	}
	n := *c
	n.Sent, n.Prepared, n.Extra = map[string]json.RawMessage{"id": id}, nil, map[string]string{}
	_, err = a.Link(&n, at)
	return err == nil, err
}

// KeyOf is what people call a resource of the collection by: the value of its key field, or its name.
func (c *Collection) KeyOf(row *store.Resource) string {
	if field := c.KeyField(); field != "name" {
		var members map[string]json.RawMessage
		var text string
		if json.Unmarshal(row.Body, &members) == nil && json.Unmarshal(members[field], &text) == nil {
			return text
		}
	}
	return row.Name
}
