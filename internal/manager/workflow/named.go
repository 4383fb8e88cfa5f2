package workflow

import (
	"bytes"
	"encoding/json"
	"errors"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/audit"
)

// reference is a target of a field in fieldUpdates. ID is nil if the request would create the target.
type reference struct {
	ID      *int64 `json:"id"`
	Type    string `json:"type,omitempty"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
}

// nameReferences adds type, name and address to the targets of changed fields: ids alone mean little to users, and new resources have none.
// Targets that the requester cannot see are left out. If the resource changes later, such a request no longer fits (checkFits).
func nameReferences(c *resource.Change, outcome resource.Outcome, fields []audit.FieldUpdate) error {
	made, leading, err := plannedResources(outcome)
	if err != nil {
		return err
	}
	name := func(value *json.RawMessage) (err error) {
		all, single := readReferences(*value)
		seen := all[:0]
		for _, one := range all {
			known, err := one.fillIn(c, made)
			if err != nil {
				return err
			}
			if known {
				seen = append(seen, one)
			}
		}
		switch {
		case len(all) == 0: // not a reference
		case !single:
			*value, err = json.Marshal(seen)
		case len(seen) == 0:
			*value = json.RawMessage("null")
		default:
			*value, err = json.Marshal(seen[0])
		}
		return err
	}
	for i := range fields {
		if leading[fields[i].Name] {
			if err := errors.Join(name(&fields[i].Value), name(&fields[i].PreviousValue)); err != nil {
				return err
			}
		}
	}
	return nil
}

// plannedResources returns the resources that a change would create, by their ids in the trial, and the names of its resource's reference
// fields.
func plannedResources(outcome resource.Outcome) (made map[int64]*store.Resource, leading map[string]bool, err error) {
	made, leading = map[int64]*store.Resource{}, map[string]bool{"up": true}
	for _, one := range outcome.Changes {
		for _, image := range [][]byte{one.Before, one.After} {
			r, err := store.DecodeImage(image)
			if err != nil {
				return nil, nil, err
			}
			if r == nil {
				continue
			}
			if one.Before == nil || made[one.Resource] != nil {
				made[one.Resource] = r
			}
			for _, ref := range append(r.Refs, r.Links...) {
				leading[ref.Field] = leading[ref.Field] || one.Resource == outcome.Row.ID
			}
		}
	}
	return made, leading, nil
}

// fillIn sets the type, name and address of a target. It returns false if the target does not exist or the caller cannot see it.
func (n *reference) fillIn(c *resource.Change, made map[int64]*store.Resource) (known bool, err error) {
	row := made[*n.ID]
	if row != nil {
		n.ID = nil
	} else {
		row, err = c.Tx.Get(*n.ID)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if seen, err := c.Sees(row.Head()); err != nil || !seen {
			return false, err
		}
	}
	n.Type, n.Name = row.Type, row.Name
	if row.Collection == "addresses" {
		n.Address = store.KeyAddr(row.Low).String()
	}
	return true, nil
}

// readReferences parses a value with references: a single one or a list. For any other value it returns nil.
func readReferences(value json.RawMessage) (all []reference, single bool) {
	strict := func(into any) bool {
		d := json.NewDecoder(bytes.NewReader(value))
		d.DisallowUnknownFields()
		return d.Decode(into) == nil
	}
	var one reference
	if strict(&one) {
		all, single = []reference{one}, true
	} else if !strict(&all) {
		return nil, false
	}
	for _, r := range all {
		if r.ID == nil {
			return nil, false
		}
	}
	return all, single
}

// idsOnly returns a value with only the ids of its references.
func idsOnly(value json.RawMessage) (string, error) {
	all, single := readReferences(value)
	if len(all) == 0 {
		return string(value), nil
	}
	for i := range all {
		all[i] = reference{ID: all[i].ID}
	}
	if single {
		text, err := json.Marshal(all[0])
		return string(text), err
	}
	text, err := json.Marshal(all)
	return string(text), err
}
