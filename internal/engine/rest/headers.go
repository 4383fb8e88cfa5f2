package rest

import (
	"net/http"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// changes are the methods that change data.
var changes = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// engineHeaders are the headers that the engine itself reads.
var engineHeaders = []resource.RequestHeader{
	{Name: commentHeader, Description: "A remark that the history keeps with the change.", Methods: changes},
	{Name: dryRunHeader, Description: "Try the change and keep nothing: the answer is 200 and tells what would have come of it. Ours.",
		Values: []string{"true", "false"}, Methods: changes},
	{Name: atMostHeader, Description: "Delete no more than so many resources, 1 to 10000, from the bottom up: the answer is 200 and says " +
		"whether it is done. The same request goes on. Ours.", Most: maxDeletedAtOnce, Methods: []string{http.MethodDelete}},
	{Name: confirmHeader, Description: "How many resources the deletion of a list is to take: it is refused where its filter finds another " +
		"number. Ours.", Methods: []string{http.MethodDelete}},
	{Name: sessionHeader, Description: "cookie: the token of the session goes into a cookie of the browser, and is not shown. Ours.",
		Values: []string{inCookie}, Methods: []string{http.MethodPost}, Types: []string{"UserSession"}},
	{Name: "If-Match", Description: "The entity tag that the resource must still have.",
		Methods: []string{http.MethodPut, http.MethodPatch, http.MethodDelete}},
	{Name: "Idempotency-Key", Description: "Repeating a request with the same key within 24 hours gives the same answer and does nothing.",
		Methods: []string{http.MethodPost}},
}

// readOptions reads the options of a request that changes data, and refuses a header with an invalid value.
func (a *Server) readOptions(r *http.Request) (o resource.Options, err error) {
	for _, h := range a.headers {
		if n := len(r.Header.Values(h.Name)); n > 1 && h.Name != "If-Match" {
			p := problem.BadRequest("InvalidHeaderValue", "%s: given %d times", h.Name, n)
			p.Fields = []string{h.Name}
			return o, p
		}
		text := r.Header.Get(h.Name)
		if text == "" {
			continue
		}
		if o, err = h.Read(o, text); err != nil {
			return o, err
		}
	}
	return o, nil
}

// headersFor returns the headers that a method of some types reads, each once.
func (a *Server) headersFor(method string, types []*schema.Type) (list []resource.RequestHeader) {
	for _, h := range a.headers {
		if slices.Contains(h.Methods, method) && !slices.ContainsFunc(list,
			func(other resource.RequestHeader) bool { return other.Name == h.Name }) &&
			(h.Types == nil || slices.ContainsFunc(types, func(t *schema.Type) bool { return slices.Contains(h.Types, t.Name) })) {
			list = append(list, h)
		}
	}
	return list
}
