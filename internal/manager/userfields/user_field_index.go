package userfields

import (
	"regexp"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Indexes of user-defined fields: the limits for definitions and values, and the indexes that exist. The manager creates the indexes
// (server/user_indexes.go).

// maxIndexedFields is the maximum number of user-defined fields with an index. Each index slows down every change of a resource with the
// field.
const maxIndexedFields = 16

// indexable matches the names of fields that may have an index: the name is part of the index definition in SQL.
var indexable = regexp.MustCompile(`^\w{1,64}$`)

// maxIndexedValue is the maximum length of a value in an index, in bytes. PostgreSQL limits an index entry to about 2,700 bytes.
const maxIndexedValue = 500

// checkIndex rejects an index on a field whose name is not indexable, and more than maxIndexedFields indexes.
func (x *UserDefinedFieldDefinition) checkIndex(c *resource.Change) error {
	if x.Indexed == nil || !*x.Indexed {
		return nil
	}
	if !indexable.MatchString(x.Name) {
		return problem.Invalid("indexed", "a field with an index must have a name of at most 64 letters, digits and _")
	}
	others := 0
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.InCollection("userDefinedFieldDefinitions")},
		func(r *store.Resource) error {
			o, err := c.API.Object(r)
			if other, _ := o.(*UserDefinedFieldDefinition); err == nil && r.ID != x.ID && other.Indexed != nil && *other.Indexed {
				others++
			}
			return err
		}); err != nil {
		return err
	}
	if others >= maxIndexedFields {
		return problem.Invalid("indexed", "%d fields already have an index, which is the maximum: remove one first", others)
	}
	return nil
}

// checkIndexedValues rejects an index if a resource in the same collections, of any type, has a value longer than maxIndexedValue.
func (x *UserDefinedFieldDefinition) checkIndexedValues(c *resource.Change) error {
	at := store.Field{Kind: store.Text, Path: []string{"userDefinedFields", x.Name}}
	seen := map[string]bool{}
	for _, name := range concreteTypes(c.API, x.ResourceType) {
		collection := c.API.TypeNamed(name).Collection
		if seen[collection] {
			continue
		}
		seen[collection] = true
		if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(collection),
			store.Compare{Field: at, Op: "ne", Value: ""}}}, func(r *store.Resource) error {
			o, err := c.API.Object(r)
			if err != nil {
				return err
			}
			if n := len(schema.HeadOf(o).UserDefinedFields[x.Name]); n > maxIndexedValue {
				return problem.Invalid("indexed", "%s %d has a value of %d bytes, more than an index allows (%d)", r.Type, r.ID, n, maxIndexedValue)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// checkValueLengths rejects a value that is too long for an index. The index covers the whole collection, so definitions for its other
// types count.
func (u *userFields) checkValueLengths(all map[string][]*UserDefinedFieldDefinition, c *resource.Change) error {
	for name, value := range schema.HeadOf(c.New).UserDefinedFields {
		if len(value) <= maxIndexedValue {
			continue
		}
		for other, defined := range all {
			if c.API.TypeNamed(other).Collection == c.Type.Collection && slices.ContainsFunc(defined, func(x *UserDefinedFieldDefinition) bool {
				return x.Name == name && x.Indexed != nil && *x.Indexed
			}) {
				return problem.Field("UdfValueExceedsMaximumLength", "userDefinedFields."+name,
					"has %d bytes, more than %d, the maximum for a field with an index", len(value), maxIndexedValue)
			}
		}
	}
	return nil
}

// indexOf returns the index of a field of resources in a collection.
func indexOf(collection, name string) store.Index {
	return store.Index{Collection: collection, Field: "userDefinedFields." + name}
}

// Indexed reports whether the database has an index of a field of resources in a collection.
func (u *userFields) Indexed(collection, name string) bool {
	there := u.indexes.Load()
	return there != nil && (*there)[indexOf(collection, name)]
}

// Indexes returns the indexes that the definitions require.
func (u *userFields) Indexes(tx *store.Tx, a *resource.API) (all []store.Index, err error) {
	defined, err := u.definitions(tx, a)
	if err != nil {
		return nil, err
	}
	for name, fields := range defined {
		for _, x := range fields {
			if i := indexOf(a.TypeNamed(name).Collection, x.Name); x.Indexed != nil && *x.Indexed && !slices.Contains(all, i) {
				all = append(all, i)
			}
		}
	}
	return all, nil
}

// StoreIndexes stores the set of indexes that the database has.
func (u *userFields) StoreIndexes(there map[store.Index]bool) { u.indexes.Store(&there) }
