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
	{Name: commentHeader, Description: "A comment that the history stores with the change.", Methods: changes},
	{Name: dryRunHeader, Description: "Dry run: try the change and roll it back. The answer is 200 and lists the effects. Portolan extension.",
		Values: []string{"true", "false"}, Methods: changes},
	{Name: atMostHeader, Description: "Delete at most this number of resources, 1 to 10000, from the bottom up. The answer is 200 and says " +
		"whether the deletion is complete. Repeat the same request to continue. Portolan extension.", Max: maxDeletedAtOnce,
		Methods: []string{http.MethodDelete}},
	{Name: confirmHeader, Description: "The number of resources that the deletion of a list shall delete. The deletion is refused if the " +
		"filter matches another number. Portolan extension.", Methods: []string{http.MethodDelete}},
	{Name: sessionHeader, Description: "cookie: the session's token is stored as a cookie of the browser, and not shown. Portolan extension.",
		Values: []string{inCookie}, Methods: []string{http.MethodPost}, Types: []string{"UserSession"}},
	{Name: "If-Match", Description: "The entity tag that the resource must still have.",
		Methods: []string{http.MethodPut, http.MethodPatch, http.MethodDelete}},
	{Name: "Idempotency-Key", Description: "A request that repeats a key within 24 hours returns the first answer and changes nothing.",
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
