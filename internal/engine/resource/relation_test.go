package resource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/testkit/toys"
)

// TestRelations checks that the relations between collections follow from the facts, the parents of the children, and the reference fields.
func TestRelations(t *testing.T) {
	a := resource.NewAPI(nil, toys.Registry())
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

// TestDeclaredTwice checks that two declarations of one collection or type are a programming error. Additional types and options are not.
func TestDeclaredTwice(t *testing.T) {
	for want, declare := range map[string]func(r *resource.Registry){
		"the collection books is declared twice": func(r *resource.Registry) { r.Collection(resource.Collection{Name: "books", Hidden: true}) },
		"the type book is declared twice":        toys.RedeclareBook,
		"<nil>": func(r *resource.Registry) {
			r.Collection(resource.Collection{Name: "books",
				Parents: []string{""}})
		},
	} {
		r := toys.Registry()
		declare(r)
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); text != want {
					t.Errorf("%s, want %s", text, want)
				}
			}()
			resource.NewAPI(nil, r)
		}()
	}
}
