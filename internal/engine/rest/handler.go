package rest

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// MaxURL is the maximum length of path and query, in bytes.
const MaxURL = 16 << 10

// Serve answers a caller's request below Base, or returns the problem that the API's handler sends.
func (a *Server) Serve(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	if len(r.URL.RequestURI()) > MaxURL {
		return problem.New(http.StatusRequestURITooLong, "URITooLong", "the URL must have at most %d bytes", MaxURL)
	}
	if path := r.URL.EscapedPath(); strings.HasSuffix(path, "/") {
		to := strings.TrimRight(path, "/")
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
	if ours := a.ownPaths[strings.TrimPrefix(r.URL.Path, a.Base+"/")]; ours.serve != nil {
		return ours.serve(w, r, caller)
	}
	if t, serve := a.findReport(r.URL.Path); serve != nil {
		return serve(w, r, t, caller)
	}
	t, err := a.route(r, caller)
	if err != nil {
		return err
	}
	action, methods := actions[r.Method], methodsOf(t)
	if action == resource.ActionFind { // OPTIONS and unknown methods
		action = resource.ActionSee
	}
	refused := a.refuses(r, t, caller, action)
	if caller.MustReset && refused != nil { // such a caller learns nothing else, not even the methods
		return refused
	}
	switch {
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", allow(methods))
		w.WriteHeader(http.StatusNoContent)
		return nil
	case r.Method == http.MethodHead && slices.Contains(methods, http.MethodGet):
	case !slices.Contains(methods, r.Method):
		w.Header().Set("Allow", allow(methods))
		return noMethod(r.Method, methods)
	}
	switch {
	case refused != nil:
		return refused
	case r.Method == http.MethodDelete && t.List:
		return a.deleteList(w, r, t, caller)
	case action != resource.ActionSee:
		return a.write(w, r, t, caller)
	case t.List:
		return a.list(w, r, t, caller)
	}
	return a.get(w, r, t, caller)
}

// refuses returns an error if the caller has no right to the request. It is the only place that checks the rights on changes.
func (a *Server) refuses(r *http.Request, t resource.Target, caller resource.Caller, action resource.Action) error {
	if a.May == nil {
		return nil
	}
	plain := r.URL.RawQuery == "" && r.Header.Get(dryRunHeader) == ""
	_, err := a.May(caller, action, resource.Subject{Collection: t.Collection, Sub: t.Sub, ID: t.ID, Plain: plain})
	return err
}

// allowOnly refuses requests that the caller has no right to, and requests with other methods than these; it answers OPTIONS.
func (a *Server) allowOnly(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller, methods ...string) error {
	if err := a.refuses(r, t, caller, resource.ActionSee); err != nil {
		return err
	}
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", allow(methods))
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if slices.Contains(methods, r.Method) || r.Method == http.MethodHead && slices.Contains(methods, http.MethodGet) {
		return nil
	}
	w.Header().Set("Allow", allow(methods))
	return problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed",
		"This resource does not accept %s. Allowed: %s", r.Method, allow(methods))
}

// noMethod returns the error for a method that a target does not have.
func noMethod(method string, methods []string) error {
	return problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed",
		"This resource does not accept %s. Allowed: %s", method, allow(methods))
}

// findReport returns the resource and the handler of a path that is not published, below one resource: its map, its counts, the effective
// rights on it, or a report. serve is nil for any other path.
func (a *Server) findReport(path string) (
	t resource.Target, serve func(http.ResponseWriter, *http.Request, resource.Target, resource.Caller) error,
) {
	path = strings.TrimPrefix(path, a.Base+"/")
	if strings.Count(path, "/") != 2 {
		return t, nil
	}
	parts := strings.Split(path, "/")
	c := a.Collection(parts[0])
	id, ok := number(parts[1])
	t = resource.Target{Collection: c, ID: id}
	if c == nil || !ok || !c.HasReport(parts[2]) {
		return t, nil
	}
	switch name := parts[2]; name {
	case resource.MapName:
		return t, a.spaceMap
	case c.Counts.Name:
		return t, a.counts
	case resource.EffectiveName:
		if a.Effective == nil {
			return t, nil
		}
		return t, a.effective
	default:
		at := slices.IndexFunc(c.Reports, func(rep resource.Report) bool { return rep.Name == name })
		return t, a.report(c.Reports[at])
	}
}

// parseReportRequest reads a request for a path that is not published, below one resource. It refuses other parameters than known; it
// answers OPTIONS.
func (a *Server) parseReportRequest(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller, known ...string) (
	form media, query url.Values, err error,
) {
	if err = a.allowOnly(w, r, t, caller, http.MethodGet); err != nil || r.Method == http.MethodOptions {
		return form, nil, err
	}
	if form, err = negotiate(r.Header.Values("Accept"), []media{asHAL, asJSON}); err != nil {
		return form, nil, err
	}
	if query, err = parseQuery(r); err == nil {
		err = onlyKnownParameters(query, known...)
	}
	return form, query, err
}

var actions = map[string]resource.Action{http.MethodGet: resource.ActionSee, http.MethodHead: resource.ActionSee,
	http.MethodPost: resource.ActionMake,
	http.MethodPut:  resource.ActionReplace, http.MethodPatch: resource.ActionChange, http.MethodDelete: resource.ActionDelete}

// notImplemented returns the error for a published path that is not implemented.
func notImplemented(path string) error {
	return problem.New(http.StatusNotImplemented, "NotImplemented",
		"%s is part of the published API, but is not implemented in this release; see docs/status.md", path)
}

// suggestParents returns a hint for a wrong path: the collections that have a subcollection with the last name in the path, or an empty
// text.
func (a *Server) suggestParents(parts []string) string {
	if len(parts) != 3 {
		return ""
	}
	if _, ok := number(parts[1]); !ok && a.Collection(parts[0]) != nil && a.Collection(parts[0]).Sub(parts[2]) != nil {
		return fmt.Sprintf(": %q is not a number of a resource in %s", parts[1], parts[0])
	}
	var below []string
	for _, c := range a.Collections() {
		if c.Sub(parts[2]) != nil && c.Name != parts[0] {
			below = append(below, c.Name)
		}
	}
	if len(below) == 0 || len(below) > maxElsewhere {
		return ""
	}
	return fmt.Sprintf(": %s exist below %s", parts[2], strings.Join(below, " and "))
}

// maxElsewhere is the maximum number of collections in the hint. Names below more collections than this are below most of them.
const maxElsewhere = 4

// route finds the target of a path.
func (a *Server) route(r *http.Request, caller resource.Caller) (t resource.Target, err error) {
	path := strings.TrimPrefix(r.URL.Path, a.Base)
	if path == "" {
		return resource.Target{Root: true, List: true}, nil
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(parts) <= 4 && slices.ContainsFunc(parts, isTooLargeID) { // no resource has this id, whatever the path
		return t, a.notFoundProblem(r, parts)
	}
	if id, ok := number(parts[0]); ok {
		if len(parts) != 1 {
			return t, a.notFoundProblem(r, parts)
		}
		return resource.Target{Any: true, ID: id}, nil
	}
	if t.Collection = a.Collection(parts[0]); len(parts) < 3 {
		t.Collection = a.CollectionByPath(parts[0])
	}
	if t.Collection == nil || t.Collection.Inner && len(parts) < 3 || len(parts) > 4 {
		return t, a.notServed(r, parts)
	}
	if len(parts) == 1 {
		t.List = true
		return t, nil
	}
	var ok bool
	if t.ID, ok = number(parts[1]); !ok {
		alias := t.Collection.Aliases[parts[1]]
		if alias == nil {
			return t, a.notFoundProblem(r, parts)
		}
		t.Alias = true
		if t.ID, err = alias(caller); err != nil {
			t.Virtual = t.Collection.Virtual != nil && len(parts) == 2 && slices.Contains(onlyRead, r.Method)
			if !t.Virtual {
				return t, err
			}
		}
	}
	if len(parts) == 2 {
		return t, nil
	}
	t.Sub = t.Collection.Sub(parts[2])
	if t.Sub == nil || t.Sub.Relation == resource.Unbuilt {
		return t, a.notServed(r, parts)
	}
	if len(parts) == 3 {
		t.List = true
		return t, nil
	}
	if t.Item, ok = number(parts[3]); !ok || !t.Sub.Item && !t.Sub.Drop {
		return t, a.notServed(r, parts)
	}
	return t, nil
}

// notFoundProblem returns a 404 problem for the path of a request. parts are the elements of the path below the base.
func (a *Server) notFoundProblem(r *http.Request, parts []string) error {
	return problem.New(http.StatusNotFound, "ResourceNotFound", "%s does not exist%s", r.URL.Path, a.suggestParents(parts))
}

// notServed returns a 501 problem for a published path that is not implemented, and a 404 problem for other paths.
func (a *Server) notServed(r *http.Request, parts []string) error {
	// We add HEAD, OPTIONS and PATCH to every published path.
	methods := a.Facts.Methods(parts)
	ours := r.Method == http.MethodHead || r.Method == http.MethodOptions || r.Method == http.MethodPatch
	if slices.Contains(methods, r.Method) || ours && len(methods) > 0 {
		return notImplemented(r.URL.Path)
	}
	return a.notFoundProblem(r, parts)
}

// isTooLargeID reports whether a path element is a number that cannot be an id.
func isTooLargeID(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	_, ok := number(text)
	return !ok && text != ""
}

// number parses an id.
func number(text string) (int64, bool) {
	if text == "" || len(text) > 18 {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0
}

// etag returns a resource's entity tag: its id and its version (RFC 9110 section 8.8.3).
func etag(r *store.Resource) string {
	return `"` + strconv.FormatInt(r.ID, 10) + "." + strconv.FormatInt(r.Version, 10) + `"`
}

func (a *Server) get(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller) error {
	types := a.AllTypes
	if !t.Any {
		types = func() []*schema.Type { return a.TargetTypes(t) }
	}
	o, err := a.options(r, a.ScopeFor(types(), caller), false)
	if err != nil {
		return err
	}
	listIgnored(w, o.ignored)
	if o.media == asBytes {
		return a.getContent(w, r, t, caller)
	}
	buffer, _ := bodies.Get().(*[]byte)
	var body []byte
	// Most answers need one row and cached data. Others need one snapshot for all their reads.
	read := a.Store.View
	switch {
	case o.fields == nil && t.Sub == nil:
		read = a.Store.Read
	case o.fields != nil && len(o.fields.Embeds) > 0: // as long as a list, and in memory until it is sent, so the limits of lists apply
		_, done, err := a.lists.acquire(r.Context(), caller.Owner())
		if err != nil {
			return err
		}
		defer done()
		read = func(ctx context.Context, fn func(*store.Tx) error) error { return a.longRead(ctx, caller, false, fn) }
	}
	err = read(r.Context(), func(tx *store.Tx) error {
		if t.Any && t.ID == resource.RootID {
			body = a.rootDocument(o.media == asHAL || o.media == asHTML)
			return nil
		}
		row, err := a.shownAt(tx, t, caller)
		if err != nil {
			return err
		}
		w.Header().Set("ETag", etag(row))
		rd := a.renderer(tx, o.media, caller)
		var extra map[string]string
		if t.Alias && a.RequestFields != nil {
			extra = a.RequestFields(r, caller)
		}
		body, err = rd.renderResource((*buffer)[:0], row, o.fields, caller, extra) // from the start, because the transaction may run again
		return err
	})
	if err != nil {
		return err
	}
	if o.media == asHTML {
		if body, err = (htmlRows{r.URL.Path, a.Base, a.TypeNamed}).writeResource(nil, body); err != nil {
			return err
		}
	}
	if sendBody(w, r, http.StatusOK, o.media, body) == nil && cap(body) <= maxKeptBuffer {
		*buffer = body
		bodies.Put(buffer)
	}
	return nil
}

// onlyRead are the methods that change nothing.
var onlyRead = []string{http.MethodGet, http.MethodHead, http.MethodOptions}

// shownAt returns the row for GET of a target: the stored one, or one that is computed for the caller.
func (a *Server) shownAt(tx *store.Tx, t resource.Target, caller resource.Caller) (*store.Resource, error) {
	if !t.Virtual {
		return a.Locate(tx, t, caller)
	}
	o := t.Collection.Virtual(caller)
	typ := a.TypeNamed(schema.HeadOf(o).Type)
	return typ.Row(o, nil)
}

// getContent serves GET of the content of a resource.
func (a *Server) getContent(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller) error {
	var row *store.Resource
	if err := a.Store.View(r.Context(), func(tx *store.Tx) (err error) {
		row, err = a.Locate(tx, t, caller)
		return err
	}); err != nil {
		return err
	}
	return a.sendContent(w, r, row)
}

// bodies are buffers for the bodies of single resources, *[]byte. A buffer is put back only if its body was sent without an error,
// because HTTP/2 may still send a body after an error.
var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// maxKeptBuffer is the maximum size of a buffer that is put back, in bytes.
const maxKeptBuffer = 64 << 10

// shortBody is the maximum length of a body, in bytes, that net/http buffers until the handler has returned. It then sets Content-Length
// by itself. Without that header an answer has eight headers, as many as a Go map holds without growing.
const shortBody = 2048

// send sends an answer with a body in a media type. It ignores write errors, because the client has disconnected then.
func send(w http.ResponseWriter, r *http.Request, status int, m media, body []byte) {
	_ = sendBody(w, r, status, m, body)
}

// sendBody sends an answer with a body in a media type, and returns the write error.
func sendBody(w http.ResponseWriter, r *http.Request, status int, m media, body []byte) (err error) {
	w.Header().Add("Vary", "Accept")
	w.Header().Set("Content-Type", m.contentType())
	if r.Method == http.MethodHead || len(body) > shortBody {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, err = w.Write(body) //nolint:gosec // pages are escaped where they are built
	}
	return err
}

// rootDocument returns the root resource, the target of a configuration's up link.
func (a *Server) rootDocument(links bool) []byte {
	b := append([]byte(`{"id":1,"type":`), schema.AppendString(nil, a.RootType)...)
	b = schema.AppendString(append(b, `,"name":"Portolan","userDefinedFields":null,"version":`...), a.Version)
	b = append(b, `,"hostname":`...)
	b = schema.AppendString(b, a.Hostname)
	if links {
		b = append(b, `,"_links":{"self":{"href":"`+a.Base+`/1"}`...)
		if a.Scope != nil {
			b = append(b, `,"`+a.Scope.Name+`":{"href":"`+a.Base+`/`+a.Scope.Name+`"}`...)
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

// compressedBody returns the error for a compressed body.
func compressedBody() error {
	return problem.New(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "Content-Encoding: a compressed body is not accepted here")
}

// checkContentType refuses a body with a media type that cannot be read.
func checkContentType(r *http.Request) error {
	if r.Method == http.MethodPatch {
		return CheckContentType(r, "application/merge-patch+json", "application/json", "application/hal+json")
	}
	return CheckContentType(r, "application/hal+json", "application/json")
}

// CheckContentType refuses a body with another media type than the allowed ones, with another character set than UTF-8, or with
// compression.
func CheckContentType(r *http.Request, allowed ...string) error {
	values := r.Header.Values("Content-Type")
	if len(values) == 1 {
		kind, params, err := mime.ParseMediaType(values[0])
		charset := strings.ToLower(params["charset"])
		if err == nil && slices.Contains(allowed, kind) && (charset == "" || charset == "utf-8") {
			if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
				return compressedBody()
			}
			return nil
		}
	}
	return problem.New(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "Content-Type: must be %s", strings.Join(allowed, " or "))
}

// checkIfMatch refuses a change if the resource has changed since the client read it (RFC 9110 section 13.1.1).
func checkIfMatch(r *http.Request, row *store.Resource) error {
	header := strings.Join(r.Header.Values("If-Match"), ",")
	if strings.TrimSpace(header) == "" {
		return nil
	}
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == etag(row) {
			return nil
		}
	}
	now := etag(row)
	return problem.New(http.StatusPreconditionFailed, "PreconditionFailed", "If-Match: the resource has changed; its entity tag is now %s",
		now)
}
