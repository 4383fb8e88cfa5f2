package audit

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerOperations declares the collection of the operations of a transaction: one for each changed resource.
func registerOperations(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "operations", Parents: []string{"transactions"}, From: operationRows, Hidden: true,
		Guard: resource.HistoryImages, Complete: completeOperations},
		&Operation{})
}

// Operation is the change of one resource in a transaction. Its name is that of the resource after the change or, for a deletion, before
// it.
type Operation struct {
	schema.Head `head:"readOnly,computed"`
	// OperationType is the kind of the change: ADD, CHANGE or DELETE.
	OperationType string `api:"operationType,readOnly"`
	// ResourceID is the resource that was changed.
	ResourceID int64 `api:"resourceId,readOnly"`
	// ResourceType is the type of that resource.
	ResourceType string `api:"resourceType,readOnly"`
	// FieldUpdates are the fields that differ, with their values after and before the change.
	FieldUpdates json.RawMessage `api:"fieldUpdates,readOnly,list"`
}

// FieldUpdate is a field that a change sets to another value, with its values after and before the change; null where it has none.
type FieldUpdate struct {
	Name          string          `json:"name"`
	Value         json.RawMessage `json:"value"`
	PreviousValue json.RawMessage `json:"previousValue"`
}

// completeOperations replaces the images before and after a change by the fields that differ, and sets the name of the operation.
func completeOperations(_ *store.Tx, rows []*store.Resource) error {
	for _, r := range rows {
		var row struct {
			FieldUpdates [2]json.RawMessage `json:"fieldUpdates"`
		}
		if err := json.Unmarshal(r.Body, &row); err != nil {
			return err
		}
		then, now, err := fieldsOfBoth(row.FieldUpdates[0], row.FieldUpdates[1])
		if err != nil {
			return err
		}
		text, err := json.Marshal(diffFields(then, now))
		if err != nil {
			return err
		}
		if r.Body, err = store.Rewritten(r.Body, map[string][]byte{"fieldUpdates": text}); err != nil {
			return err
		}
		if len(now) == 0 {
			now = then
		}
		r.Name = displayName(now)
	}
	return nil
}

// displayName returns the display name of a resource from its fields: its absolute name, range or address, followed by its own name.
func displayName(fields map[string]string) string {
	text := func(name string) (text string) {
		_ = json.Unmarshal([]byte(fields[name]), &text) // a value that is not a string leaves text empty
		return text
	}
	name := text("name")
	switch place := cmp.Or(text("absoluteName"), text("range"), text("address")); {
	case place == "" || strings.HasPrefix(name, place):
		return name
	case name == "" || strings.HasPrefix(place, name):
		return place
	default:
		return place + " " + name
	}
}

// FieldUpdates returns the fields that differ between two images of a resource, sorted by name. An image is nil where the resource does not
// exist.
func FieldUpdates(before, after []byte) ([]FieldUpdate, error) {
	then, now, err := fieldsOfBoth(before, after)
	if err != nil {
		return nil, err
	}
	return diffFields(then, now), nil
}

// fieldsOfBoth returns the fields of a resource in two images of it.
func fieldsOfBoth(before, after []byte) (then, now map[string]string, err error) {
	if then, err = fieldsOf(before); err == nil {
		now, err = fieldsOf(after)
	}
	return then, now, err
}

// diffFields returns the fields that differ, sorted by name.
func diffFields(then, now map[string]string) []FieldUpdate {
	names := maps.Clone(then)
	maps.Copy(names, now)
	updates := []FieldUpdate{}
	value := func(from map[string]string, name string) json.RawMessage {
		if text, ok := from[name]; ok {
			return json.RawMessage(text)
		}
		return json.RawMessage("null")
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if newValue, oldValue := value(now, name), value(then, name); string(newValue) != string(oldValue) {
			updates = append(updates, FieldUpdate{name, newValue, oldValue})
		}
	}
	return updates
}

// fieldsOf returns the fields of a resource from its image in the history: its name, its own fields, its parent (as "up") and its
// references.
func fieldsOf(image []byte) (map[string]string, error) {
	fields := map[string]string{}
	var row struct {
		Name   *string         `json:"name"`
		Parent int64           `json:"parent"`
		Refs   []store.Ref     `json:"refs"`
		Links  []store.Ref     `json:"links"`
		Body   json.RawMessage `json:"body"`
	}
	if len(image) == 0 || string(image) == "null" {
		return fields, nil
	}
	if err := json.Unmarshal(image, &row); err != nil {
		return nil, err
	}
	set := func(name string, v any) error {
		text, err := json.Marshal(v)
		fields[name] = string(text)
		return err
	}
	if err := set("name", row.Name); err != nil {
		return nil, err
	}
	type reference struct {
		ID int64 `json:"id"`
	}
	if err := set("up", reference{row.Parent}); err != nil {
		return nil, err
	}
	for _, ref := range row.Refs {
		if err := set(ref.Field, reference{ref.Target}); err != nil {
			return nil, err
		}
	}
	links := map[string][]reference{}
	for _, link := range row.Links {
		links[link.Field] = append(links[link.Field], reference{link.Target})
	}
	for field, targets := range links {
		if err := set(field, targets); err != nil {
			return nil, err
		}
	}
	return fields, store.Members(schema.Hide(row.Body), func(name, raw []byte) error {
		if !strings.HasPrefix(string(name), "_") {
			fields[string(name)] = string(raw)
		}
		return nil
	})
}
