package workflow

import (
	"bytes"
	"encoding/json"
	"errors"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/audit"
)

// named is what a field of fieldUpdates leads to. ID is nil where the request would make it.
type reference struct {
	ID      *int64 `json:"id"`
	Type    string `json:"type,omitempty"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
}

// nameReferences words what the fields lead to that are different: by type, name and address. Their numbers alone tell little, and what
// would be made has none. What who asks does not see is left out; where the resource is changed meanwhile, such a request does not fit any
// more (fits).
func nameReferences(c *resource.Change, came resource.Outcome, fields []audit.FieldUpdate) error {
	made, leading, err := plannedResources(came)
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
		case len(all) == 0: // it leads nowhere
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

// foreseen gives what a change would make, by the numbers that it had when it was tried, and which fields of its resource lead to others.
func plannedResources(came resource.Outcome) (made map[int64]*store.Resource, leading map[string]bool, err error) {
	made, leading = map[int64]*store.Resource{}, map[string]bool{"up": true}
	for _, one := range came.Changes {
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
				leading[ref.Field] = leading[ref.Field] || one.Resource == came.Row.ID
			}
		}
	}
	return made, leading, nil
}

// named fills in what a number leads to; false where the caller does not see it, or it is not there.
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

// references reads a value that leads to resources: one, or a list of them. Of any other value it gives nothing.
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

// numbers gives a value with the numbers alone of what it leads to.
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
