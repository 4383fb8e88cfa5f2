package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// part is one change of a batch.
type part struct {
	rq *request
	// position is its position in the body, such as changes[3].
	position string
	// path is the sent path, if the path or the body refers to earlier changes; nil otherwise.
	path *url.URL
	// refs are the indexes of those changes.
	refs []int
	// members are the sent members of the body, if path is not nil.
	members map[string]json.RawMessage
}

// partText is a change as it is sent.
type partText struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// partMembers are the names of its members.
var partMembers = []string{"body", "headers", "method", "path"}

// partAnswer is the result of one change.
type partAnswer struct {
	Status   int             `json:"status"`
	Location string          `json:"location,omitempty"`
	ETag     string          `json:"etag,omitempty"`
	Ignored  []string        `json:"ignored,omitempty"`
	Body     json.RawMessage `json:"body"`
}

// parts reads all changes, and reports the errors of all that are invalid regardless of the data.
func (a *Server) parts(rq *request, texts []json.RawMessage, read func(at string, raw json.RawMessage, i int) (*part, error)) ([]*part,
	error) {
	parts := make([]*part, len(texts))
	var faults []*problem.Problem
	prepared := 0
	for i, raw := range texts {
		at := fmt.Sprintf("changes[%d]", i)
		if rq.Collection != nil { // the body itself is the list
			at = fmt.Sprintf("[%d]", i)
		}
		if err := rq.Context().Err(); err != nil {
			return nil, err
		}
		one, err := read(at, raw, i)
		if err == nil && one.rq.prepared != nil {
			if prepared++; prepared > maxPrepared {
				return nil, atPosition(at, problem.BadRequest("InvalidRequestBody",
					"at most %d changes of one request can set passwords or other secrets", maxPrepared))
			}
		}
		if p, ok := problem.As(atPosition(at, err)); ok {
			if faults = append(faults, p); len(faults) == maxFaults {
				break
			}
		} else if err != nil {
			return nil, err
		}
		parts[i] = one
	}
	return parts, problem.Join(faults)
}

// atPosition adds the position in the batch to a problem. It returns errors that are not problems of the request unchanged.
func atPosition(at string, err error) error {
	p, ok := problem.As(err)
	if !ok {
		return err
	}
	short := *p // the message may quote the request
	short.Message, short.Fields = schema.Cut(p.Message, maxFault), make([]string, len(p.Fields))
	for i, field := range p.Fields {
		short.Fields[i] = schema.Cut(field, maxIgnoredName)
	}
	return problem.AddPlace(at, &short)
}

// partOf reads a change of a batch. earlier reports whether ref is the index of an earlier change that creates a resource.
func (a *Server) partOf(rq *request, at string, raw json.RawMessage, earlier func(ref int) bool) (*part, error) {
	members, err := schema.ParseObject(raw, StandardBody.Members)
	if err != nil {
		return nil, err
	}
	for name := range members {
		if !slices.Contains(partMembers, name) {
			return nil, problem.Invalid(name, "unknown member; use %s", strings.Join(partMembers, ", "))
		}
	}
	var text partText
	if err := json.Unmarshal(raw, &text); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, problem.Invalid(wrong.Field, "must be a string, or of headers an object of strings, not a JSON %s", wrong.Value)
		}
		return nil, problem.BadRequest("InvalidRequestBody", "method and path must be strings, and headers an object of strings")
	}
	if !slices.Contains(changes, text.Method) {
		return nil, problem.Invalid("method", "must be one of %[2]s, not %[1]q", text.Method, strings.Join(changes, ", "))
	}
	header, err := a.partHeader(rq, &text)
	if err != nil {
		return nil, err
	}
	path, err := url.Parse(text.Path)
	if err != nil || len(text.Path) > MaxURL || path.User != nil || text.Path == "" || path.Scheme != "" || path.Host != "" ||
		path.Fragment != "" {
		return nil, problem.Invalid("path", "%q is not a path of this API, such as networks/100123 or %s/networks/100123", text.Path, a.Base)
	}
	if !strings.HasPrefix(path.Path, "/") {
		path.Path = a.Base + "/" + path.Path
		path.RawPath = ""
	}
	if !strings.HasPrefix(path.Path, a.Base+"/") {
		return nil, problem.Invalid("path", "%q is not below %s", text.Path, a.Base)
	}
	return a.newPart(rq, at, text.Method, path, header, text.Body, earlier)
}

// partHeader returns the headers of a change: those that a single request would use.
func (a *Server) partHeader(rq *request, text *partText) (http.Header, error) {
	header := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(text.Headers)) {
		value := text.Headers[name]
		known := slices.ContainsFunc(a.headers, func(h resource.RequestHeader) bool { return strings.EqualFold(h.Name, name) })
		ofAll := slices.ContainsFunc(ofBatches, func(other string) bool { return strings.EqualFold(other, name) })
		switch {
		case value == "" || header.Get(name) != "":
			return nil, problem.Invalid("headers."+name, "must be given once, with a value")
		case ofAll:
			return nil, problem.Invalid("headers."+name, "applies to the whole batch; send it with the request")
		case !known && !strings.EqualFold(name, "Content-Type"):
			return nil, problem.Invalid("headers."+name, "is not a header that a change accepts")
		}
		header.Set(name, value)
	}
	header["Accept"] = rq.Header.Values("Accept")
	if text.Body != nil && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	return header, nil
}

// ofBatches are the headers of a batch that its changes must not have.
var ofBatches = []string{"Idempotency-Key", dryRunHeader, commentHeader}

// newPart reads a change like a single request. earlier reports whether ref is the index of an earlier change that creates a resource.
func (a *Server) newPart(rq *request, at, method string, path *url.URL, header http.Header, body json.RawMessage,
	earlier func(ref int) bool) (*part, error) {
	one := &part{position: at}
	wrong := -1
	plain := *path
	plain.Path, plain.RawPath = fillPath(path.Path, func(ref int) int64 {
		if one.refs = append(one.refs, ref); !earlier(ref) {
			wrong = ref
		}
		return resource.RootID + 1 // any id serves as a placeholder; the transaction checks whether the resource exists
	}), ""
	if wrong >= 0 {
		return nil, problem.Invalid("path", "$%d is not an earlier change that creates a resource", wrong)
	}
	sent := (&http.Request{Method: method, URL: &plain, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Proto: rq.Proto, ProtoMajor: rq.ProtoMajor, ProtoMinor: rq.ProtoMinor}).WithContext(rq.Context())
	t, err := a.partTarget(sent, rq.caller)
	if err != nil {
		return nil, err
	}
	one.rq = &request{Request: sent, Target: t, caller: rq.caller}
	if err := a.read(nil, one.rq); err != nil {
		return nil, err
	}
	for name, raw := range one.rq.members {
		for _, ref := range a.bodyReferences(one.rq, name, raw) {
			if one.refs = append(one.refs, ref); !earlier(ref) {
				return nil, problem.Invalid(name, "$%d is not an earlier change that creates a resource", ref)
			}
		}
	}
	if one.refs != nil {
		one.path, one.members = path, one.rq.members
	}
	if one.rq.atMost > 0 {
		return nil, problem.Invalid("headers."+atMostHeader, "is not accepted in a batch or list")
	}
	if one.rq.fields != nil && len(one.rq.fields.Embeds) > 0 {
		return nil, problem.Query("fields", "embed is not accepted in a batch or list")
	}
	return one, nil
}

// partTarget returns the target of a change, and an error if the caller may not change it.
func (a *Server) partTarget(sent *http.Request, caller resource.Caller) (t resource.Target, err error) {
	if t, err = a.route(sent, caller); err != nil {
		return t, err
	}
	refused := a.refuses(sent, t, caller, actions[sent.Method])
	if caller.MustReset && refused != nil { // as in Serve
		return t, refused
	}
	if methods := methodsOf(t); !slices.Contains(methods, sent.Method) {
		return t, noMethod(sent.Method, methods)
	}
	if sent.Method == http.MethodDelete && t.List {
		return t, problem.Invalid("path", "a batch cannot delete a list; give the path of one resource")
	}
	if sent.Method == http.MethodPost && !listable(t) {
		return t, problem.Invalid("path", "%s cannot be created in a batch", t.Collection.Name)
	}
	// Rights are determined at the start of the batch, and must not change during it.
	if t.Collection != nil && t.Collection.SignIn != nil || t.Sub == nil && !t.List && t.ID == caller.User {
		return t, problem.Invalid("path", "a batch cannot change sessions or your own user")
	}
	return t, refused
}

// performPart applies one change. made are the ids of the resources that the earlier changes created.
func (a *Server) performPart(tx *store.Tx, rq *request, p *part, made []int64) (ans answer, err error) {
	p.rq.prefetched = rq.prefetched
	if p.path != nil {
		at := *p.path
		at.Path, at.RawPath = fillPath(at.Path, func(ref int) int64 { return made[ref] }), ""
		p.rq.Request = p.rq.WithContext(p.rq.Context())
		p.rq.URL = &at
		if p.rq.Target, err = a.partTarget(p.rq.Request, rq.caller); err != nil {
			return ans, err
		}
		p.rq.members = maps.Clone(p.members)
		for name, raw := range p.members {
			p.rq.members[name] = a.fillBody(p.rq, name, raw, made)
		}
	}
	return a.perform(tx, p.rq)
}
