package userfields

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// The checks of definitions on the values of every resource, and the values that resources show by default.

// userFields caches the definitions, by the types that have the fields.
type userFields struct {
	store *store.Store
	api   *resource.API
	cache *store.Cache[struct{}, map[string][]*UserDefinedFieldDefinition]
	// indexes are the indexes in the database, as last set by StoreIndexes; nil before the first call.
	indexes atomic.Pointer[map[store.Index]bool]
}

// Open sets the store and the API, and creates the cache of definitions.
func (u *userFields) Open(s *store.Store, a *resource.API) {
	u.store, u.api = s, a
	u.cache = store.NewCache[struct{}](s, store.CacheOptions[map[string][]*UserDefinedFieldDefinition]{
		Topics: []string{"userDefinedFieldDefinitions"}, Late: true, Max: 1})
}

// complete fills in resourceTypes: the types that have the field of a definition.
func (u *userFields) complete(_ *store.Tx, rows []*store.Resource) error {
	for _, r := range rows {
		o, err := u.api.Object(r)
		if err != nil {
			return err
		}
		x, ok := o.(*UserDefinedFieldDefinition)
		if !ok {
			continue
		}
		types, err := json.Marshal(concreteTypes(u.api, x.ResourceType))
		if err != nil {
			return err
		}
		if r.Body, err = store.Rewritten(r.Body, map[string][]byte{"resourceTypes": types}); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf returns the definitions of the fields of a type.
func (u *userFields) fieldsOf(tx *store.Tx, a *resource.API, typeName string) ([]*UserDefinedFieldDefinition, error) {
	all, err := u.definitions(tx, a)
	return all[typeName], err
}

// definitions returns all definitions, by the types that have the fields.
func (u *userFields) definitions(tx *store.Tx, a *resource.API) (map[string][]*UserDefinedFieldDefinition, error) {
	if all, ok := u.cache.Get(tx, struct{}{}); ok {
		return all, nil
	}
	all := map[string][]*UserDefinedFieldDefinition{}
	if err := tx.List(store.Query{From: store.Resources, Where: store.InCollection("userDefinedFieldDefinitions")},
		func(r *store.Resource) error {
			o, err := a.Object(r)
			if err != nil {
				return err
			}
			x, _ := o.(*UserDefinedFieldDefinition)
			for _, name := range concreteTypes(a, x.ResourceType) {
				all[name] = append(all[name], x)
			}
			return nil
		}); err != nil {
		return nil, err
	}
	u.cache.Put(tx, struct{}{}, all)
	return all, nil
}

// Check checks the values in a request, sets defaults in a new resource, and rejects a request that lacks a required field.
func (u *userFields) Check(c *resource.Change) error {
	if !c.IsCreation() && !c.SetFields["userDefinedFields"] {
		return nil
	}
	all, err := u.definitions(c.Tx, c.API)
	if err == nil {
		err = u.checkValueLengths(all, c)
	}
	defined := all[c.Type.Name]
	if err != nil || defined == nil {
		return err
	}
	h := schema.HeadOf(c.New)
	values := map[string]string{}
	for name, value := range h.UserDefinedFields {
		values[name] = value
	}
	for _, x := range defined {
		value, given := values[x.Name]
		switch {
		case given:
			if values[x.Name], err = x.parseValue(value); err != nil {
				return err
			}
		case c.IsCreation() && x.DefaultValue != "":
			values[x.Name] = x.DefaultValue
		case x.Required != nil && *x.Required && c.IsRequested():
			return problem.Missing("userDefinedFields." + x.Name)
		}
	}
	if len(values) > 0 {
		h.UserDefinedFields = values
	}
	return nil
}

// Missing returns the fields that resources of a type show even if they do not set them, with their defaults; nil for null.
func (u *userFields) Missing(tx *store.Tx, a *resource.API, typeName string) (map[string]*string, error) {
	defined, err := u.fieldsOf(tx, a, typeName)
	if err != nil || defined == nil {
		return nil, err
	}
	fields := map[string]*string{}
	for _, x := range defined {
		fields[x.Name] = nil
		if x.DefaultValue != "" {
			fields[x.Name] = &x.DefaultValue
		}
	}
	return fields, nil
}

// defaultsTime is the timeout for reading the definitions for a filter.
const defaultsTime = 5 * time.Second

// Defaults returns the current defaults of a field, by the types that have one.
func (u *userFields) Defaults(name string) (map[string]string, error) {
	all, ok := u.cache.Now(struct{}{})
	if !ok {
		ctx, end := context.WithTimeout(context.Background(), defaultsTime)
		defer end()
		if err := u.store.View(ctx, func(tx *store.Tx) (err error) {
			all, err = u.definitions(tx, u.api)
			return err
		}); err != nil {
			return nil, err
		}
	}
	defaults := map[string]string{}
	for typeName, fields := range all {
		for _, x := range fields {
			if x.Name == name && x.DefaultValue != "" {
				defaults[typeName] = x.DefaultValue
			}
		}
	}
	return defaults, nil
}
