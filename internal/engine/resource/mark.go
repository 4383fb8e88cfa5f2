package resource

import (
	"encoding/json"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// Tagged returns the tag of a path such as tags/import or tags/100123, or of a name. It returns nil for an empty path. The error names
// the field tag if the caller sees no such tag.
func (a *API) Tagged(tx *store.Tx, caller Caller, path string) (*store.Resource, error) {
	if path == "" {
		return nil, nil
	}
	return a.NamedOrNumbered(tx, caller, "tag", a.Collection("tags"), strings.TrimPrefix(path, "tags/"), 0)
}

// Mark adds a tag to a resource, within the rights of the caller. marked is false if the resource has the tag already.
func (a *API) Mark(c *Change, row, tag *store.Resource) (marked bool, err error) {
	targets, err := c.Tx.Links(row.ID, "tags")
	if err != nil || slices.Contains(targets, tag.ID) {
		return false, err
	}
	collection := a.Collection(row.Collection)
	at := Target{Collection: collection, ID: row.ID, Sub: collection.Sub("tags"), List: true}
	if at.Sub == nil {
		return false, problem.Invalid("tag", "resources of type %s cannot have tags", row.Type)
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

// KeyOf returns the value of the key field of a resource, such as its range; without a key field it returns the name.
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

// maxUnmarked is the maximum number of resources without a tag that ListUnmarked lists.
const maxUnmarked = 10

// ListUnmarked lists the resources below row that do not have the tag, as far as the caller sees them: a deletion of row by its tag would
// delete them as well. It returns an empty text if there are none.
func (a *API) ListUnmarked(c *Change, row, tag *store.Resource) (text string, err error) {
	var ids []int64
	if err := c.Tx.Each(func(scan func(...any) error) error {
		ids = append(ids, 0)
		return scan(&ids[len(ids)-1])
	}, "WITH RECURSIVE below (id) AS (SELECT id FROM resource WHERE parent = ? UNION ALL SELECT r.id FROM below b "+
		"JOIN resource r ON r.parent = b.id) SELECT b.id FROM below b WHERE NOT EXISTS (SELECT 1 FROM reference f WHERE f.source = b.id "+
		"AND f.target = ? AND f.field = 'tags') LIMIT ?", row.ID, tag.ID, maxUnmarked+1); err != nil {
		return "", err
	}
	var names []string
	for _, id := range ids {
		one, err := a.Visible(c.Tx, id, c.Caller)
		if problem.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		names = append(names, one.Type+" "+a.Collection(one.Collection).KeyOf(one))
	}
	if len(names) > maxUnmarked {
		names = append(names[:maxUnmarked], "others")
	}
	return strings.Join(names, ", "), nil
}
