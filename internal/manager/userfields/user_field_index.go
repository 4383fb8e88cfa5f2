package userfields

import (
	"regexp"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Indexes of user-defined fields: which there may be, what fits into them, and which there are. They are made by the manager
// (server/user_indexes.go).

// mostIndexed is how many user-defined fields may have an index: each of them costs every change of a resource that has the field.
const mostIndexed = 16

// indexable are the names of fields that may have an index: they stand in its text.
var indexable = regexp.MustCompile(`^\w{1,64}$`)

// longestIndexed is how long a value of a field that has an index may be, in bytes: PostgreSQL takes some 2,700 in an index of any kind.
const longestIndexed = 500

// checkIndex refuses an index of a field whose name does not fit into one, and one too many.
func (x *UserDefinedFieldDefinition) checkIndex(c *resource.Change) error {
	if x.Indexed == nil || !*x.Indexed {
		return nil
	}
	if !indexable.MatchString(x.Name) {
		return problem.Invalid("indexed", "a field has an index where its name has letters, digits and _ alone, 64 at most")
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
	if others >= mostIndexed {
		return problem.Invalid("indexed", "%d fields have an index already, and no more may", others)
	}
	return nil
}

// fitsIndex refuses an index where a resource of the collections has a value that does not fit into it, of whatever type it is.
func (x *UserDefinedFieldDefinition) fitsIndex(c *resource.Change) error {
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
			if n := len(schema.HeadOf(o).UserDefinedFields[x.Name]); n > longestIndexed {
				return problem.Invalid("indexed", "%s %d has a value of %d bytes, more than an index takes: %d", r.Type, r.ID, n, longestIndexed)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// fit refuses a value that is too long for an index of its collection, also where the field is defined for other types there.
func (u *userFields) fit(all map[string][]*UserDefinedFieldDefinition, c *resource.Change) error {
	for name, value := range schema.HeadOf(c.New).UserDefinedFields {
		if len(value) <= longestIndexed {
			continue
		}
		for other, defined := range all {
			if c.API.TypeNamed(other).Collection == c.Type.Collection && slices.ContainsFunc(defined, func(x *UserDefinedFieldDefinition) bool {
				return x.Name == name && x.Indexed != nil && *x.Indexed
			}) {
				return problem.Field("UdfValueExceedsMaximumLength", "userDefinedFields."+name,
					"has %d bytes, more than %d, and the field has an index", len(value), longestIndexed)
			}
		}
	}
	return nil
}

// indexOf is the index of a field of resources in a collection.
func indexOf(collection, name string) store.Index {
	return store.Index{Collection: collection, Field: "userDefinedFields." + name}
}

// Indexed reports whether there is an index of a field of resources in a collection.
func (u *userFields) Indexed(collection, name string) bool {
	there := u.indexes.Load()
	return there != nil && (*there)[indexOf(collection, name)]
}

// Indexes gives the indexes that the definitions ask for.
func (u *userFields) Indexes(tx *store.Tx, a *resource.API) (all []store.Index, err error) {
	defined, err := u.all(tx, a)
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

// Found notes which indexes there are.
func (u *userFields) Found(there map[store.Index]bool) { u.indexes.Store(&there) }
