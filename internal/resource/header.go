package resource

import (
	"net/http"
	"slices"
	"strings"

	"portolan/internal/problem"
)

// RequestHeader is a header by which a change is steered.
type RequestHeader struct {
	Name, Description string
	// Values are those that it may have, in any letter case; nil means any text.
	Values []string
	// Methods are those that look at it, Types the types that it is for; nil means every type.
	Methods, Types []string
}

// Flag are the values of a header that says yes or no.
var Flag = []string{"true", "false"}

// changes are the methods that change something.
var changes = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// engineHeaders are the headers that the engine itself looks at; those of the types are in API.Headers.
var engineHeaders = []RequestHeader{
	{Name: "x-bcn-change-control-comment", Description: "A remark that the history keeps with the change.", Methods: changes},
	{Name: dryRunHeader, Description: "Try the change and keep nothing: the answer is 200 and tells what would have come of it. Ours.", Values: Flag, Methods: changes},
	{Name: "If-Match", Description: "The entity tag that the resource must still have.", Methods: []string{http.MethodPut, http.MethodPatch, http.MethodDelete}},
	{Name: "Idempotency-Key", Description: "Repeating a request with the same key within 24 hours gives the same answer and does nothing.", Methods: []string{http.MethodPost}},
}

// headers are all that there are.
func (a *API) headers() []RequestHeader { return slices.Concat(engineHeaders, a.Headers) }

// checkHeaders refuses a header with a value that it cannot have.
func (a *API) checkHeaders(r *http.Request) error {
	for _, h := range a.headers() {
		if n := len(r.Header.Values(h.Name)); n > 1 && h.Name != "If-Match" {
			p := problem.New(http.StatusBadRequest, "InvalidHeader", "%s: given %d times", h.Name, n)
			p.Fields = []string{h.Name}
			return p
		}
		value := r.Header.Get(h.Name)
		if value == "" || h.Values == nil || slices.ContainsFunc(h.Values, func(v string) bool { return strings.EqualFold(v, value) }) {
			continue
		}
		p := problem.New(http.StatusBadRequest, "InvalidHeader", "%s: %q is none of %s", h.Name, value, strings.Join(h.Values, ", "))
		p.Fields = []string{h.Name}
		return p
	}
	return nil
}

// headersFor are the headers that a method of some types looks at.
func (a *API) headersFor(method string, types []*Type) (list []RequestHeader) {
	for _, h := range a.headers() {
		if slices.Contains(h.Methods, method) && (h.Types == nil || slices.ContainsFunc(types, func(t *Type) bool { return slices.Contains(h.Types, t.Name) })) {
			list = append(list, h)
		}
	}
	return list
}
