package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/testkit/toys"
)

// engine serves toy types from a database of its own.
type engine struct {
	t   *testing.T
	api *Server
}

func startEngine(t *testing.T, more ...func(*resource.Registry)) *engine {
	t.Helper()
	r := toys.Registry()
	for _, declare := range more {
		declare(r)
	}
	l := r.Layout()
	l.Extensions = append(l.Extensions, Extension())
	s, err := store.Open(store.Options{Layout: l, Dir: t.TempDir(), Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &engine{t, New(resource.NewAPI(s, r), Settings{Base: "/toys", MaxLimit: 10})}
}

// do sends a request as an administrator and returns the status and the body.
func (e *engine) do(method, path, body string) (status int, answer map[string]any, text string) {
	e.t.Helper()
	rq := httptest.NewRequest(method, "/toys/"+path, strings.NewReader(body))
	if body != "" {
		rq.Header.Set("Content-Type", "application/json")
	}
	rq.Header.Set("Accept", "application/hal+json")
	w := httptest.NewRecorder()
	caller := resource.Caller{User: 1, Name: "tester", Administrator: true, History: "ADMINISTRATOR", Security: "ADMINISTRATOR"}
	err := e.api.Serve(w, rq, caller)
	if err != nil {
		p, ok := problem.As(err)
		if !ok {
			e.t.Fatalf("%s %s: %v", method, path, err)
		}
		return p.Status, map[string]any{"code": p.Code, "message": p.Message}, p.Message
	}
	all, _ := io.ReadAll(w.Result().Body)
	if len(all) > 0 {
		if err := json.Unmarshal(all, &answer); err != nil {
			e.t.Fatalf("%s %s answers %s", method, path, all)
		}
	}
	return w.Code, answer, string(all)
}

func (e *engine) want(status int, method, path, body string) map[string]any {
	e.t.Helper()
	got, answer, text := e.do(method, path, body)
	if got != status {
		e.t.Fatalf("%s %s answers %d, want %d: %s", method, path, got, status, text)
	}
	return answer
}

// id creates a resource and returns its id.
func (e *engine) id(path, body string) string {
	e.t.Helper()
	id, _ := e.want(http.StatusCreated, "POST", path, body)["id"].(float64)
	return fmt.Sprint(int64(id))
}

// TestToysOnTheWire compares the complete bytes that clients receive for toy types.
func TestToysOnTheWire(t *testing.T) {
	e := startEngine(t)
	s := e.id("shelves", `{"name":"top"}`)
	b := e.id("shelves/"+s+"/books", `{"type":"book","name":"one"}`)
	c := e.id("shelves/"+s+"/books", `{"type":"book","name":"two","sequel":{"id":`+b+`}}`)
	_, _, text := e.do("GET", "books/"+c, "")
	want := `{"id":` + c + `,"type":"book","name":"two","userDefinedFields":null,"sequel":{"id":` + b +
		`,"type":"book","name":"one","_links":{"self":{"href":"/toys/books/` + b +
		`"}}},"_links":{"self":{"href":"/toys/books/` + c + `"},"collection":{"href":"/toys/books"},"up":{"href":"/toys/shelves/` + s +
		`"},"favouriteOf":{"href":"/toys/books/` + c + `/favouriteOf"},"labels":{"href":"/toys/books/` + c +
		`/labels"},"lendings":{"href":"/toys/books/` + c +
		`/lendings"},"prequels":{"href":"/toys/books/` + c + `/prequels"}}}`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if n := e.want(200, "GET", "books/"+b+"/prequels", "")["count"]; n != 1.0 {
		t.Errorf("%v prequels", n)
	}
}

// TestRecurringRules checks the recurring rules that tags declare: unique names among siblings or everywhere, and the effect of a deletion
// on referring resources.
func TestRecurringRules(t *testing.T) {
	e := startEngine(t)
	top, bottom := e.id("shelves", `{"name":"top"}`), e.id("shelves", `{"name":"bottom"}`)
	refused := func(status int, code, naming, method, path, body string) {
		t.Helper()
		got, answer, text := e.do(method, path, body)
		if got != status || answer["code"] != code || !strings.Contains(text, naming) {
			t.Errorf("%s %s %s answers %d %v; want %d %s naming %q", method, path, body, got, answer, status, code, naming)
		}
	}
	// Names of shelves are unique everywhere, names of books among the books of a shelf.
	refused(409, "ResourceAlreadyExists", `"top" already exists (shelf `+top, "POST", "shelves", `{"name":"top"}`)
	one := e.id("shelves/"+top+"/books", `{"type":"book","name":"one"}`)
	refused(409, "ResourceAlreadyExists", "book "+one, "POST", "shelves/"+top+"/books", `{"type":"book","name":"one"}`)
	other := e.id("shelves/"+bottom+"/books", `{"type":"book","name":"one"}`)
	e.want(200, "PATCH", "books/"+other, `{"name":"one"}`)
	e.want(200, "PATCH", "books/"+other, `{"name":"two"}`)
	e.want(200, "PUT", "shelves/"+top, `{"id":`+top+`,"type":"shelf","name":"top"}`)
	refused(409, "ResourceAlreadyExists", "shelf "+bottom, "PUT", "shelves/"+top, `{"id":`+top+`,"type":"shelf","name":"bottom"}`)
	// A deleted favourite is removed from the list, a loan is deleted with its book, a copy protects its original.
	e.want(201, "POST", "shelves/"+top+"/favourites", `{"id":`+other+`}`)
	refused(409, "ResourceAlreadyExists", "already linked", "POST", "shelves/"+top+"/favourites", `{"id":`+other+`}`)
	loan := e.id("shelves/"+top+"/loans", `{"type":"loan","name":"l","book":{"id":`+other+`}}`)
	copied := e.id("shelves/"+top+"/copies", `{"type":"duplicate","name":"c","original":{"id":`+other+`}}`)
	refused(403, "ResourceInUse", "book "+other+" is the original of duplicate "+copied, "DELETE", "shelves/"+bottom, "")
	if e.want(200, "GET", "loans/"+loan, "")["name"] != "l" {
		t.Error("a deletion that was refused took something along")
	}
	// Together they may be deleted.
	third := e.id("shelves", `{"name":"third"}`)
	original := e.id("shelves/"+third+"/books", `{"type":"book","name":"o"}`)
	e.id("shelves/"+third+"/copies", `{"type":"duplicate","name":"c","original":{"id":`+original+`}}`)
	refused(403, "ResourceInUse", "book "+original, "DELETE", "books/"+original, "")
	e.want(204, "DELETE", "shelves/"+third, "")
	e.want(204, "DELETE", "copies/"+copied, "")
	e.want(204, "DELETE", "shelves/"+bottom, "")
	e.want(404, "GET", "loans/"+loan, "")
	if n := e.want(200, "GET", "shelves/"+top+"/favourites", "")["count"]; n != 0.0 {
		t.Errorf("%v favourites", n)
	}
}

// TestRuleOfAnotherPackage checks that a rule of another package runs after the type's own rules, for every kind of write. A refused change
// is not written.
func TestRuleOfAnotherPackage(t *testing.T) {
	var seen []string
	e := startEngine(t, func(r *resource.Registry) {
		r.Rule(resource.Rule{Types: []string{"book"}, AfterWrite: func(c *resource.Change) error {
			h := schema.HeadOf(c.New)
			if h.Name == "forbidden" {
				return problem.Conflict("Forbidden", "name: %q is not lent", h.Name)
			}
			seen = append(seen, fmt.Sprint(h.Name, " ", c.IsCreation()))
			return nil
		}})
	})
	e.want(http.StatusCreated, "POST", "shelves", `{"name":"a"}`)
	shelf := e.want(http.StatusOK, "GET", "shelves", "")["data"].([]any)[0].(map[string]any)["id"]
	books := fmt.Sprintf("shelves/%v/books", shelf)
	made := e.want(http.StatusCreated, "POST", books, `{"type":"book","name":"one"}`)
	e.want(http.StatusOK, "PATCH", fmt.Sprintf("books/%v", made["id"]), `{"name":"two"}`)
	e.want(http.StatusConflict, "PATCH", fmt.Sprintf("books/%v", made["id"]), `{"name":"forbidden"}`)
	e.want(http.StatusConflict, "POST", books, `{"type":"book","name":"forbidden"}`)
	if all := e.want(http.StatusOK, "GET", books, "")["data"].([]any); len(all) != 1 || fmt.Sprint(seen) != "[one true two false]" {
		t.Errorf("%v, the rule saw %v", all, seen)
	}
}

// TestTooManyFollowers checks that the number of change feeds is limited. A closed feed makes room for another.
func TestTooManyFollowers(t *testing.T) {
	e := startEngine(t)
	e.api.followers = make(chan struct{}, 1)
	e.api.followers <- struct{}{}
	if got := e.want(http.StatusServiceUnavailable, http.MethodGet, "changes", ""); got["code"] != "TooManyFollowers" {
		t.Errorf("a follower too many is answered %v", got)
	}
	<-e.api.followers
	for range 2 { // a HEAD request ends at once
		e.want(http.StatusOK, http.MethodHead, "changes", "")
	}
	if n := e.api.Followers(); n != 0 {
		t.Errorf("%d follow", n)
	}
}
