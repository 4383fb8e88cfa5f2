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

// registerOperations declares the collection of what a transaction did, resource by resource.
func registerOperations(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "operations", Parents: []string{"transactions"}, From: operationRows, Hidden: true,
		Guard: resource.HistoryImages, Complete: completeOperations},
		&Operation{})
}

// Operation is one change of a transaction. Its name is what the resource is called, behind the change or, where it is gone, before it.
type Operation struct {
	schema.Head `head:"readOnly,computed"`
	// OperationType says what was done: ADD, CHANGE or DELETE.
	OperationType string `api:"operationType,readOnly"`
	// ResourceID is the resource that it was done to.
	ResourceID int64 `api:"resourceId,readOnly"`
	// ResourceType is that resource's type.
	ResourceType string `api:"resourceType,readOnly"`
	// FieldUpdates are the fields that are different, with their values after it and before it.
	FieldUpdates json.RawMessage `api:"fieldUpdates,readOnly,list"`
}

// FieldUpdate is one field that is different behind a change, or would be, with its values after it and before it; null where it has none.
type FieldUpdate struct {
	Name          string          `json:"name"`
	Value         json.RawMessage `json:"value"`
	PreviousValue json.RawMessage `json:"previousValue"`
}

// completeOperations turns the images before and after a change into the fields that are different, and says what the resource is called.
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
		text, err := json.Marshal(different(then, now))
		if err != nil {
			return err
		}
		if r.Body, err = store.Rewritten(r.Body, map[string][]byte{"fieldUpdates": text}); err != nil {
			return err
		}
		if len(now) == 0 {
			now = then
		}
		r.Name = calledIn(now)
	}
	return nil
}

// calledIn gives what people call a resource, by its fields: its place in address space or among names, and its own name.
func calledIn(fields map[string]string) string {
	text := func(name string) (text string) {
		_ = json.Unmarshal([]byte(fields[name]), &text) // what is no text names nothing
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

// FieldUpdates gives the fields that are different in two images of a resource, by their names in order; an image is nil where it was not
// there.
func FieldUpdates(before, after []byte) ([]FieldUpdate, error) {
	then, now, err := fieldsOfBoth(before, after)
	if err != nil {
		return nil, err
	}
	return different(then, now), nil
}

// fieldsOfBoth gives the fields of a resource by two images of it.
func fieldsOfBoth(before, after []byte) (then, now map[string]string, err error) {
	if then, err = fieldsOf(before); err == nil {
		now, err = fieldsOf(after)
	}
	return then, now, err
}

// different gives the fields that are not the same, by their names in order.
func different(then, now map[string]string) []FieldUpdate {
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
		if young, old := value(now, name), value(then, name); string(young) != string(old) {
			updates = append(updates, FieldUpdate{name, young, old})
		}
	}
	return updates
}

// fieldsOf gives the fields of a resource by its image in the history: its name, its own fields, and what
// it refers to.
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
