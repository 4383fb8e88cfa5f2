// Package toys declares example types for the tests of the engine: shelves and books, and actions on them.
package toys

import (
	"strings"

	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Two example types, and types for the actions on them.
type (
	shelf struct {
		schema.Head `unique:"all"`
		Favourites  schema.RefList `api:"favourites" ref:"book" back:"favouriteOf"`
	}
	book struct {
		schema.Head `unique:"siblings"`
		Sequel      schema.Ref `api:"sequel" ref:"book" back:"prequels"`
	}
	// notice is a kind of book that requests cannot create.
	notice struct {
		schema.Head `parents:"shelves" post:"no"`
	}
	loan struct {
		schema.Head
		Book schema.Ref `api:"book" ref:"book" onDelete:"cascade"`
	}
	duplicate struct {
		schema.Head
		Original schema.Ref `api:"original" ref:"book" onDelete:"refuse"`
	}
	lending struct {
		schema.Head `head:"readOnly" parents:"books"`
	}
)

// toys are the published facts about the example types.
type toys struct {
	subs    map[string][]published.Sub
	methods map[string]string
}

func (f toys) Subs(collection string) []published.Sub { return f.subs[collection] }

func (f toys) Inner(collection string) bool { return len(f.Methods([]string{collection})) == 0 }

func (f toys) Methods(parts []string) []string {
	if len(parts) > 1 {
		parts = append([]string{parts[0], "{}"}, parts[2:]...)
	}
	return strings.Fields(f.methods[strings.Join(parts, "/")])
}

// Registry declares the example types.
func Registry() *resource.Registry {
	loaned := []string{"book", "notice"}
	r := &resource.Registry{Facts: toys{
		subs: map[string][]published.Sub{
			"shelves": {{Name: "books", Types: loaned, Post: true}, {Name: "copies", Types: []string{"duplicate"}, Post: true},
				{Name: "favourites", Types: loaned, Post: true}, {Name: "labels", Types: []string{"label"}, Post: true},
				{Name: "loans", Types: []string{"loan"}, Post: true}, {Name: "owners", Types: []string{"owner"}, Post: true},
				{Name: "unread", Types: loaned, Item: true}},
			"books": {{Name: "favouriteOf", Post: true}, {Name: "labels", Types: []string{"label"}},
				{Name: "lendings", Types: []string{"lending"}, Post: true},
				{Name: "prequels", Types: []string{"book"}, Item: true}},
			"labels": {{Name: "labels", Types: []string{"label"}, Post: true, Delete: true}, {Name: "labelled", Post: true}},
		},
		methods: map[string]string{"shelves": "GET POST", "shelves/{}": "GET PUT DELETE", "books": "GET", "books/{}": "GET PATCH DELETE",
			"labels": "GET POST", "labels/{}": "GET PUT DELETE",
			"loans": "GET", "loans/{}": "GET DELETE", "copies": "GET", "copies/{}": "GET DELETE"},
	}}
	r.Collection(resource.Collection{Name: "shelves", Parents: []string{""}}, &shelf{})
	r.Collection(resource.Collection{Name: "lendings"}, &lending{})
	r.Collection(resource.Collection{Name: "labels", Parents: []string{"labels"}}, &label{})
	r.Collection(resource.Collection{Name: "books"}, &notice{}) // as another package would, before or after
	r.Collection(resource.Collection{Name: "books", Parents: []string{"shelves"}, Local: true}, &book{})
	r.Collection(resource.Collection{Name: "loans", Parents: []string{"shelves"}}, &loan{})
	r.Collection(resource.Collection{Name: "copies", Parents: []string{"shelves"}}, &duplicate{})
	r.Links(resource.Links{Name: "labels", To: "labels", Back: "labelled"})
	r.Computed(resource.ComputedSub{Below: "shelves", Name: "unread",
		Find: func(*store.Tx, *resource.API, *store.Resource) ([]int64, error) { return nil, nil }})
	return r
}

// label can be attached to all resources.
type label struct{ schema.Head }

// RedeclareBook declares a type that is already declared.
func RedeclareBook(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "books"}, &book{})
}
