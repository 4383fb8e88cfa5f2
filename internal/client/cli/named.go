package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"portolan/client"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// maxNamed is the maximum number of references per collection whose names are requested.
const maxNamed = 100

// nameReferences adds current names to references in changes of the history, for display. References to resources that were deleted or are
// not visible keep their ID alone.
func (m *Manager) nameReferences(ctx context.Context, changes []client.Change) error {
	asked := map[*resource.Collection]map[int64]bool{}
	visitReferences(m.API, changes, func(c *resource.Collection, id int64) string {
		if asked[c] == nil {
			asked[c] = map[int64]bool{}
		}
		if len(asked[c]) < maxNamed {
			asked[c][id] = true
		}
		return ""
	})
	names := map[int64]string{}
	for c, all := range asked {
		var numbers []string
		for id := range all {
			numbers = append(numbers, fmt.Sprint(id))
		}
		q := client.Query{Filter: "id:in(" + strings.Join(numbers, ",") + ")", Fields: "id," + c.KeyField(), Limit: maxNamed}
		if err := m.All(ctx, c.Name, q, func(raw json.RawMessage) error {
			var one map[string]json.RawMessage
			if err := json.Unmarshal(raw, &one); err != nil {
				return err
			}
			var id int64
			if err := json.Unmarshal(one["id"], &id); err != nil {
				return err
			}
			names[id] = fieldText(one[c.KeyField()])
			return nil
		}); err != nil {
			if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Status == http.StatusForbidden { // the references keep their IDs
				continue
			}
			return err
		}
	}
	visitReferences(m.API, changes, func(_ *resource.Collection, id int64) string { return names[id] })
	return nil
}

// visitReferences calls fn with each resource that the changes refer to and each collection that it may belong to. It stores the name that
// fn returns next to the ID.
func visitReferences(a *resource.API, changes []client.Change, fn func(c *resource.Collection, id int64) string) {
	for _, change := range changes {
		t := a.TypeNamed(change.ResourceType)
		if t == nil {
			continue
		}
		for i := range change.FieldUpdates {
			u := &change.FieldUpdates[i]
			of := referredTo(a, t, u.Name)
			if len(of) == 0 {
				continue
			}
			u.Value, u.PreviousValue = withNames(u.Value, of, fn), withNames(u.PreviousValue, of, fn)
		}
	}
}

// referredTo returns the collections that a field of a change can refer to. The field up refers to the parent.
func referredTo(a *resource.API, t *schema.Type, field string) map[*resource.Collection]bool {
	if field == "up" {
		all := map[*resource.Collection]bool{}
		for _, parent := range a.ParentsOf(t) {
			if c := a.Collection(parent); c != nil {
				all[c] = true
			}
		}
		return all
	}
	if f := t.ByName[field]; f != nil && isReference(f) {
		return collectionsOf(a, f)
	}
	return nil
}

// withNames returns a reference, or a list of references, with the names that fn returns.
func withNames(raw json.RawMessage, of map[*resource.Collection]bool, fn func(c *resource.Collection, id int64) string) json.RawMessage {
	type reference struct {
		ID   int64  `json:"id"`
		Name string `json:"name,omitempty"`
	}
	name := func(r *reference) {
		for c := range of {
			if r.ID != 0 && r.Name == "" {
				r.Name = fn(c, r.ID)
			}
		}
	}
	var one reference
	var list []reference
	var text any
	switch {
	case json.Unmarshal(raw, &one) == nil && one.ID != 0:
		name(&one)
		text = one
	case json.Unmarshal(raw, &list) == nil && len(list) > 0:
		for i := range list {
			name(&list[i])
		}
		text = list
	default:
		return raw
	}
	if out, err := json.Marshal(text); err == nil {
		return out
	}
	return raw
}
