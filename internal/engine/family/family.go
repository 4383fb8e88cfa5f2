// Package family declares API families by hand: for each path its operations, and for each operation who may ask for it, which parameters
// and which body it takes, what it answers, and the function that handles it. Routing, the methods of a path, the reading of bodies, the
// header that names ignored members, and the OpenAPI document follow from the declaration.
//
// The address API needs no such declaration: its operations follow from declared types (package rest). An API at another root, with errors
// of its own form, is a folder with one Family.
package family

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/rest"
)

// Family is the declaration of an API.
type Family struct {
	// Name names the family in metrics, logs and traces. Root is the path below which its operations are.
	Name, Root string
	// Errors is the form of its errors.
	Errors Errors
	// Tag is the tag of its operations in the OpenAPI document.
	Tag string
	// Paths are its paths; each pattern occurs once.
	Paths []Path
	// Schemas are values of Go types that become components of the OpenAPI document, by their names there.
	Schemas map[string]any
}

// Path is a path with its operations.
type Path struct {
	// Pattern is the path from the root of the host, as a pattern of http.ServeMux.
	Pattern string
	// Parameters are the segments of the pattern that are in braces.
	Parameters []Parameter
	Operations []Operation
}

// Parameter is a parameter of a path or of a query.
type Parameter struct {
	Name, Description string
	// Schema is its JSON schema; nil means a string.
	Schema Schema
}

// Access determines who may use an operation.
type Access struct {
	// Schemes are the security schemes of the OpenAPI document; one of them is required. Without schemes, every request is admitted.
	Schemes []string
	// Admit returns the request with the caller in its context, or the error that refuses it; nil admits every request.
	Admit func(r *http.Request) (*http.Request, error)
}

// Operation is a method of a path.
type Operation struct {
	Method string
	// ID, Summary and Description are its operationId, summary and description in the OpenAPI document.
	ID, Summary, Description string
	Access                   Access
	// Query are the known query parameters; others are ignored, and listed in the answer (spec.md section 2.8).
	Query []Parameter
	// Body is the request body; nil: none is read.
	Body    *Body
	Success Success
	// Problems are the statuses of its errors beside those that every operation may have.
	Problems []int
	Handle   func(w http.ResponseWriter, r *Request) error
}

// Body is the JSON object in a request.
type Body struct {
	// Schema is the schema of the object. Its properties are the members that the operation knows.
	Schema  Schema
	Example any
	// Refused are members that the operation knows and refuses; the OpenAPI document does not list them.
	Refused []string
	// Within are the limits of the body; the zero value means rest.SmallBody.
	Within rest.Bounds
}

// Success is the answer of an operation that succeeded.
type Success struct {
	Status      int
	Description string
	// Schema is the schema of the answer's document; nil: the answer has none. Type is its media type; empty means application/json.
	Schema Schema
	Type   string
}

// Request is a request with the members of its body.
type Request struct {
	*http.Request
	// Members are the members of the body; nil if the operation has no body.
	Members map[string]json.RawMessage
}

// Strings returns the members of the body that are strings, by their names. It omits members that are missing or null. A member of
// another type is an error that names it.
func (r *Request) Strings(names ...string) (values map[string]string, err error) {
	return Strings(r.Members, names...)
}

// Strings is Request.Strings for the members of an object within a body.
func Strings(members map[string]json.RawMessage, names ...string) (values map[string]string, err error) {
	values = map[string]string{}
	var problems []*problem.Problem
	for _, name := range names {
		raw, ok := members[name]
		if !ok || string(raw) == "null" {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			problems = append(problems, problem.Invalid(name, "must be a string"))
			continue
		}
		values[name] = text
	}
	return values, problem.Join(problems)
}

// Missing returns the error of a body that lacks required members.
func Missing(names ...string) error {
	p := problem.BadRequest("MissingRequiredField", "required and missing: %s", strings.Join(names, ", "))
	p.Fields = names
	return p
}

// Handler returns the handler of a path. The caller has to send the errors that it returns, in the form of the family's Errors.
func (p *Path) Handler() func(w http.ResponseWriter, r *http.Request) error {
	allowed := p.methods()
	operations := map[string]*Operation{}
	for i := range p.Operations {
		operations[p.Operations[i].Method] = &p.Operations[i]
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		name := r.Method
		switch name {
		case http.MethodHead:
			name = http.MethodGet
		case http.MethodOptions:
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		operation, ok := operations[name]
		if !ok {
			return WrongMethod(w, r, allowed...)
		}
		if len(r.URL.RequestURI()) > rest.MaxURL {
			return problem.New(http.StatusRequestURITooLong, "URITooLong", "the URL must have at most %d bytes", rest.MaxURL)
		}
		return operation.serve(w, r)
	}
}

// methods returns the methods of the path, sorted.
func (p *Path) methods() []string {
	all := []string{http.MethodOptions}
	for _, o := range p.Operations {
		all = append(all, o.Method)
		if o.Method == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	slices.Sort(all)
	return all
}

// WrongMethod sets the header Allow and returns the error of a method that a path does not have (RFC 9110 section 15.5.6).
func WrongMethod(w http.ResponseWriter, r *http.Request, allowed ...string) error {
	list := strings.Join(allowed, ", ")
	w.Header().Set("Allow", list)
	return problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "This resource does not accept %s. Allowed: %s", r.Method, list)
}

// serve admits the request, reads its body, lists ignored members and parameters in the answer, and handles it.
func (o *Operation) serve(w http.ResponseWriter, r *http.Request) (err error) {
	if o.Access.Admit != nil {
		if r, err = o.Access.Admit(r); err != nil {
			return err
		}
	}
	request := &Request{Request: r}
	known := make([]string, 0, len(o.Query))
	for _, p := range o.Query {
		known = append(known, p.Name)
	}
	if o.Body != nil {
		if request.Members, err = o.Body.read(w, r); err != nil {
			return err
		}
		known = append(known, o.Body.members()...)
	}
	rest.Note(w, r, request.Members, known...)
	return o.Handle(w, request)
}

// read reads the body of a request. A PATCH may have the media type merge-patch (RFC 7396).
func (b *Body) read(w http.ResponseWriter, r *http.Request) (map[string]json.RawMessage, error) {
	within := b.Within
	if within == (rest.Bounds{}) {
		within = rest.SmallBody
	}
	members, _, err := ReadJSON(w, r, within)
	return members, err
}

// ReadJSON reads a body that is a JSON object. A PATCH may have the media type merge-patch (RFC 7396). It returns the members and the raw
// body.
func ReadJSON(w http.ResponseWriter, r *http.Request, within rest.Bounds) (map[string]json.RawMessage, []byte, error) {
	allowed := []string{"application/json"}
	if r.Method == http.MethodPatch {
		allowed = append(allowed, "application/merge-patch+json")
	}
	if err := rest.CheckContentType(r, allowed...); err != nil {
		return nil, nil, err
	}
	return rest.ReadBody(w, r, within)
}

// members returns the names of the known members.
func (b *Body) members() []string {
	all := slices.Clone(b.Refused)
	properties, _ := b.Schema["properties"].(Schema)
	for name := range properties {
		all = append(all, name)
	}
	return all
}
