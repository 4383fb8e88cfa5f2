package workflow

import (
	"bytes"
	"encoding/json"
	"errors"

	"portolan/internal/resource"
	"portolan/internal/store"
)

// named is what a field of fieldUpdates leads to. ID is nil where the request would make it.
type named struct {
	ID      *int64 `json:"id"`
	Type    string `json:"type,omitempty"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
}

// nameReferences words what the fields lead to that are different: by type, name and address. Their numbers alone tell little, and what
// would be made has none.
func nameReferences(tx *store.Tx, came resource.Outcome, updates []byte) ([]byte, error) {
	made, leading := map[int64]*store.Resource{}, map[string]bool{"up": true}
	for _, one := range came.Changes {
		for _, image := range [][]byte{one.Before, one.After} {
			r, err := store.DecodeImage(image)
			if err != nil {
				return nil, err
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
	name := func(value json.RawMessage) (json.RawMessage, error) {
		all, single := references(value)
		for i := range all {
			row := made[*all[i].ID]
			if row == nil {
				there, err := tx.Get(*all[i].ID)
				if errors.Is(err, store.ErrNotFound) {
					continue
				}
				if err != nil {
					return nil, err
				}
				row = there
			} else {
				all[i].ID = nil
			}
			all[i].Type, all[i].Name = row.Type, row.Name
			if row.Collection == "addresses" {
				all[i].Address = store.KeyAddr(row.Low).String()
			}
		}
		return encoded(value, all, single)
	}
	var fields []fieldUpdate
	if err := json.Unmarshal(updates, &fields); err != nil {
		return nil, err
	}
	for i, f := range fields {
		if !leading[f.Name] {
			continue
		}
		var err error
		if fields[i].Value, err = name(f.Value); err != nil {
			return nil, err
		}
		if fields[i].PreviousValue, err = name(f.PreviousValue); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}

// references reads a value that leads to resources: one, or a list of them. Of any other value it gives nothing.
func references(value json.RawMessage) (all []named, single bool) {
	strict := func(into any) bool {
		d := json.NewDecoder(bytes.NewReader(value))
		d.DisallowUnknownFields()
		return d.Decode(into) == nil
	}
	var one named
	if strict(&one) {
		all, single = []named{one}, true
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

// encoded gives references as they were read; a value without any stays as it is.
func encoded(value json.RawMessage, all []named, single bool) (json.RawMessage, error) {
	switch {
	case len(all) == 0:
		return value, nil
	case single:
		return json.Marshal(all[0])
	}
	return json.Marshal(all)
}

// numbers gives a value with the numbers alone of what it leads to.
func numbers(value json.RawMessage) (string, error) {
	all, single := references(value)
	for i := range all {
		all[i] = named{ID: all[i].ID}
	}
	text, err := encoded(value, all, single)
	return string(text), err
}
