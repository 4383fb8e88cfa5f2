package rest

import (
	"net/http"
	"strings"
	"testing"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/testkit/toys"
)

// TestRequestOptions checks that option headers are parsed once, into their type, and refused before any rule runs.
func TestRequestOptions(t *testing.T) {
	gently, order, from := resource.Flag("x-gently", "Gently."), resource.Choice("x-order", "In which order.", "UP", "DOWN"),
		resource.Number("x-from", "Where from.")
	r := toys.Registry()
	r.Collection(resource.Collection{Name: "shelves", Options: []resource.RequestHeader{gently.Header(resource.Writing),
		order.Header(resource.Creating, "shelf")}})
	r.Collection(resource.Collection{Name: "books", Options: []resource.RequestHeader{gently.Header(resource.Creating, "book"),
		from.Header(resource.Changing)}})
	a := New(resource.NewAPI(nil, r), Settings{Base: "/toys", MaxLimit: 10})
	read := func(headers ...string) (resource.Options, error) {
		rq := &http.Request{Header: http.Header{}}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, "=")
			rq.Header.Add(name, value)
		}
		return a.readOptions(rq)
	}
	o, err := read("x-gently=TRUE", "x-order=down", "x-from=100007")
	if err != nil || !gently.Value(o) || order.Value(o) != "DOWN" || from.Value(o) != 100007 {
		t.Errorf("%v %q %d, %v", gently.Value(o), order.Value(o), from.Value(o), err)
	}
	o, err = read("x-gently=false")
	if said, given := gently.Lookup(o); said || !given || order.Value(o) != "" || err != nil {
		t.Errorf("%v %v %q, %v", said, given, order.Value(o), err)
	}
	if _, given := gently.Lookup(resource.Options{}); given {
		t.Error("nothing was asked, and something is given")
	}
	if set := gently.Set(o, true); !gently.Value(set) || gently.Value(o) {
		t.Error("setting an option changes another's options, or nothing")
	}
	for text, want := range map[string]string{"x-gently=maybe": `x-gently: must be one of true, false, not "maybe"`,
		"x-order=sideways": "x-order: must be one of UP, DOWN, not \"sideways\"",
		"x-from=here":      `x-from: "here" is not the number of a resource`, "x-from=-1": "x-from",
		"x-portolan-dry-run=perhaps": "x-portolan-dry-run"} {
		_, err := read(text)
		p, ok := problem.As(err)
		if !ok || p.Code != "InvalidHeaderValue" || !strings.Contains(p.Message, want) || len(p.Fields) != 1 {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := read("x-gently=true", "x-gently=true"); !problem.Is(err, "InvalidHeaderValue") {
		t.Errorf("given twice: %v", err)
	}
	names := func(method string, kind string) (all string) {
		for _, h := range a.headersFor(method, []*schema.Type{a.TypeNamed(kind)}) {
			if strings.HasPrefix(h.Name, "x-") && !strings.HasPrefix(h.Name, "x-bcn") && !strings.HasPrefix(h.Name, "x-portolan") {
				all += h.Name + " "
			}
		}
		return all
	}
	for _, c := range []struct{ method, kind, want string }{
		{http.MethodPost, "shelf", "x-gently x-order "}, {http.MethodPut, "shelf", "x-gently "}, {http.MethodPost, "book", "x-gently "},
		{http.MethodPost, "notice", ""}, {http.MethodPatch, "notice", "x-from "}, {http.MethodGet, "shelf", ""},
	} {
		if got := names(c.method, c.kind); got != c.want {
			t.Errorf("%s of a %s looks at %q, want %q", c.method, c.kind, got, c.want)
		}
	}
}
