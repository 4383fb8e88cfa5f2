package resource

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"portolan/internal/published"
	"portolan/internal/store"
)

// Two toy types, and one that says what was done.
type (
	shelf struct {
		Head       `unique:"all"`
		Favourites RefList `api:"favourites" ref:"book" back:"favouriteOf"`
	}
	book struct {
		Head   `unique:"siblings"`
		Sequel Ref `api:"sequel" ref:"book" back:"prequels"`
	}
	// notice is a kind of books that nobody makes by a request.
	notice struct {
		Head `parents:"shelves" post:"no"`
	}
	loan struct {
		Head
		Book Ref `api:"book" ref:"book" onDelete:"cascade"`
	}
	duplicate struct {
		Head
		Original Ref `api:"original" ref:"book" onDelete:"refuse"`
	}
	lending struct {
		Head `head:"readOnly" parents:"books"`
	}
)

// toys are facts of toy types.
type toys struct {
	subs    map[string][]published.Sub
	methods map[string]string
}

func (f toys) Subs(collection string) []published.Sub { return f.subs[collection] }

func (f toys) Methods(parts []string) []string {
	if len(parts) > 1 {
		parts = append([]string{parts[0], "{}"}, parts[2:]...)
	}
	return strings.Fields(f.methods[strings.Join(parts, "/")])
}

func toyRegistry() *Registry {
	books := []string{"book", "notice"}
	r := &Registry{Facts: toys{
		subs: map[string][]published.Sub{
			"shelves": {{Name: "books", Types: books, Post: true}, {Name: "copies", Types: []string{"duplicate"}, Post: true},
				{Name: "favourites", Types: books, Post: true}, {Name: "labels", Types: []string{"label"}, Post: true},
				{Name: "loans", Types: []string{"loan"}, Post: true}, {Name: "owners", Types: []string{"owner"}, Post: true},
				{Name: "unread", Types: books, Item: true}},
			"books": {{Name: "favouriteOf", Post: true}, {Name: "labels", Types: []string{"label"}},
				{Name: "lendings", Types: []string{"lending"}, Post: true},
				{Name: "prequels", Types: []string{"book"}, Item: true}},
			"labels": {{Name: "labels", Types: []string{"label"}, Post: true, Delete: true}, {Name: "labelled", Post: true}},
		},
		methods: map[string]string{"shelves": "GET POST", "shelves/{}": "GET PUT DELETE", "books": "GET", "books/{}": "GET PATCH DELETE",
			"labels": "GET POST", "labels/{}": "GET PUT DELETE",
			"loans": "GET", "loans/{}": "GET DELETE", "copies": "GET", "copies/{}": "GET DELETE"},
	}}
	r.Collection(Collection{Name: "shelves", Parents: []string{""}}, &shelf{})
	r.Collection(Collection{Name: "lendings"}, &lending{})
	r.Collection(Collection{Name: "labels", Parents: []string{"labels"}}, &label{})
	r.Collection(Collection{Name: "books"}, &notice{}) // as another room would, before or after
	r.Collection(Collection{Name: "books", Parents: []string{"shelves"}, Local: true}, &book{})
	r.Collection(Collection{Name: "loans", Parents: []string{"shelves"}}, &loan{})
	r.Collection(Collection{Name: "copies", Parents: []string{"shelves"}}, &duplicate{})
	r.Links(Links{Name: "labels", To: "labels", Back: "labelled"})
	r.Computed(ComputedSub{Of: "shelves", Name: "unread", Find: func(*store.Tx, *API, *store.Resource) ([]int64, error) { return nil, nil }})
	return r
}

// label can be on anything.
type label struct{ Head }

// How collections hang together follows from the facts, the parents of the children, and the fields that refer.
func TestRelations(t *testing.T) {
	a := NewAPI(nil, "/toys", 10, toyRegistry())
	var got []string
	for _, c := range a.Collections() {
		var names []string
		for _, typ := range c.Types {
			names = append(names, typ.Name)
		}
		got = append(got, fmt.Sprintf("%s %v post=%v readOnly=%v put=%v delete=%v inner=%v", c.Name, names, c.Post, c.ReadOnly, !c.NoPut,
			!c.NoDelete, c.Inner))
		for _, s := range c.Subs {
			got = append(got, fmt.Sprintf("%s/%s relation=%d items=%v field=%q post=%v types=%v item=%v drop=%v open=%v", c.Name, s.Name,
				s.Relation, s.Items, s.Field, s.Post, s.Types, s.Item, s.Drop, s.Open))
		}
	}
	want := []string{
		`books [book notice] post=false readOnly=false put=false delete=true inner=false`,
		`books/favouriteOf relation=3 items=[shelves] field="favourites" post=true types=[shelf] item=true drop=true open=false`,
		`books/labels relation=2 items=[labels] field="labels" post=false types=[] item=false drop=false open=true`,
		`books/lendings relation=1 items=[lendings] field="" post=true types=[lending] item=false drop=false open=false`,
		`books/prequels relation=3 items=[books] field="sequel" post=false types=[book] item=true drop=false open=false`,
		`copies [duplicate] post=false readOnly=false put=false delete=true inner=false`,
		`labels [label] post=true readOnly=false put=true delete=true inner=false`,
		`labels/labels relation=1 items=[labels] field="" post=true types=[label] item=false drop=true open=false`,
		`labels/labelled relation=3 items=[*] field="labels" post=true types=[] item=true drop=true open=true`,
		`lendings [lending] post=false readOnly=true put=false delete=false inner=true`,
		`loans [loan] post=false readOnly=false put=false delete=true inner=false`,
		`shelves [shelf] post=true readOnly=false put=true delete=true inner=false`,
		`shelves/books relation=1 items=[books] field="" post=true types=[book] item=false drop=false open=false`,
		`shelves/copies relation=1 items=[copies] field="" post=true types=[duplicate] item=false drop=false open=false`,
		`shelves/favourites relation=2 items=[books] field="favourites" post=true types=[] item=true drop=true open=false`,
		`shelves/labels relation=2 items=[labels] field="labels" post=true types=[] item=true drop=true open=true`,
		`shelves/loans relation=1 items=[loans] field="" post=true types=[loan] item=false drop=false open=false`,
		`shelves/owners relation=0 items=[] field="" post=false types=[] item=false drop=false open=false`,
		`shelves/unread relation=5 items=[books] field="" post=false types=[] item=true drop=false open=false`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A collection, or a type, that two rooms declare is a fault of the program; further types and options are none.
func TestDeclaredTwice(t *testing.T) {
	for want, declare := range map[string]func(r *Registry){
		"the collection books is declared twice": func(r *Registry) { r.Collection(Collection{Name: "books", Hidden: true}) },
		"the type book is declared twice":        func(r *Registry) { r.Collection(Collection{Name: "books"}, &book{}) },
		"<nil>":                                  func(r *Registry) { r.Collection(Collection{Name: "books", Parents: []string{""}}) },
	} {
		r := toyRegistry()
		declare(r)
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); text != want {
					t.Errorf("%s, want %s", text, want)
				}
			}()
			NewAPI(nil, "/toys", 10, r)
		}()
	}
}
