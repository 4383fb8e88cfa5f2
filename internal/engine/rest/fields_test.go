package rest

import (
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/testkit/toys"
)

func FuzzParseFields(f *testing.F) {
	a := New(resource.NewAPI(nil, toys.Registry()), Settings{Base: "/toys", MaxLimit: 10})
	books := a.Collection("books").Types
	for _, s := range []string{`id,name`, `not(id),x`, `embed(labels.labelled)`, `embed(a.b)`, `name,not(`, `a.b.c`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := a.parseFields(text, a.ScopeFor(books, resource.Caller{}))
		if err != nil {
			return
		}
		if _, err := p.Apply([]byte(`{"id":1,"name":{"x":{"y":2}},"type":"book"}`)); err != nil {
			t.Errorf("%q cannot be applied: %v", text, err)
		}
	})
}

func TestNegotiate(t *testing.T) {
	all := []media{asHAL, asJSON, asHTML, asCSV}
	for accept, want := range map[string]media{"": asHAL, "*/*": asHAL, "application/*": asHAL, "text/*": asHTML,
		"text/csv;q=0.9, text/html;q=0.8": asCSV,
		"application/json, */*;q=0.1":     asJSON, "garbage, text/html": asHTML} {
		if got, err := negotiate([]string{accept}, all); err != nil || got != want {
			t.Errorf("Accept %q gives %v, %v; want %v", accept, got, err, want)
		}
	}
	for _, accept := range []string{"image/png", "application/hal+json;q=0", "text/html;q=2"} {
		if got, err := negotiate([]string{accept}, all); err == nil {
			t.Errorf("Accept %q gives %v", accept, got)
		}
	}
}
