package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// A batch is many changes in one transaction: all of them are made, or none. Each is read as if it was sent alone, all of them
// before the transaction begins, and has the same rights, rules and headers. A change may name one before it that makes
// something: $3 in its path, or as the value of a member id of its body, is the id of what changes[3] makes.

// batchName is the name of what takes batches, below the API's path.
const batchName = "batch"

// Bounds of a batch.
const (
	// maxChanges is how many changes it may have, maxFaults how many faults are named that are found before it begins.
	maxChanges = 10_000
	maxFaults  = 100
	// maxFault is how much is said of one, in bytes.
	maxFault = 1_000
	// maxPrepared is how many of its changes may need work before they are made, such as hashing a password.
	maxPrepared = 16
	// maxAnswer bounds what the answers of its changes may take, in bytes.
	maxAnswer = 32 << 20
	// maxBatchProbes is how many addresses are asked for it whether they answer. All is done anew behind each.
	maxBatchProbes = 64
)

// batchBody bounds its body.
var batchBody = Bounds{Bytes: 4 << 20, Members: 300_000}

// batchesEach is how many batches of one caller may be under way at a time, batchesWaiting how many may wait. maxBatches is how many
// there may be of all callers: each has its body, its changes and its answer in memory.
const (
	batchesEach    = 1
	batchesWaiting = 8
	maxBatches     = 1
)

// takeBatch waits for the caller's turn, when the body is there; done ends it, at the latest before the answer is sent: no client may
// keep others waiting by being slow. It may be called again.
func (a *Server) takeBatch(ctx context.Context, caller resource.Caller) (done func(), err error) {
	leave, err := a.batches.take(ctx, caller.Owner())
	if err != nil {
		return nil, err
	}
	select {
	case a.batching <- struct{}{}:
		return sync.OnceFunc(func() { <-a.batching; leave() }), nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// part is one change of a batch.
type part struct {
	rq *request
	// at is its place in the body, such as changes[3].
	at string
	// path is its path as it was sent, where that or the body names earlier changes; nil where neither does.
	path *url.URL
	// members are those of its body, as they were sent, where path is not nil.
	members map[string]json.RawMessage
}

// partText is a change as it is sent.
type partText struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// partMembers are its members.
var partMembers = []string{"body", "headers", "method", "path"}

// partAnswer is what came of one change.
type partAnswer struct {
	Status   int             `json:"status"`
	Location string          `json:"location,omitempty"`
	ETag     string          `json:"etag,omitempty"`
	Ignored  []string        `json:"ignored,omitempty"`
	Body     json.RawMessage `json:"body"`
}

// batch answers POST of a batch.
func (a *Server) batch(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	switch r.Method {
	case http.MethodPost:
	case http.MethodOptions:
		w.Header().Set("Allow", "OPTIONS, POST")
		w.WriteHeader(http.StatusNoContent)
		return nil
	default:
		w.Header().Set("Allow", "OPTIONS, POST")
		return problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "%s is not for a batch; POST is", r.Method)
	}
	rq := &request{Request: r, caller: caller}
	if err := a.readHead(rq); err != nil {
		return err
	}
	for _, h := range a.headers {
		if r.Header.Get(h.Name) != "" && !slices.Contains(ofBatches, h.Name) {
			p := problem.BadRequest("InvalidHeader", "%s: is for one change: put it into its headers", h.Name)
			p.Fields = []string{h.Name}
			return p
		}
	}
	query, err := parseQuery(r)
	if err != nil {
		return err
	}
	rq.ignored = unknownParameters(query, nil)
	if err := CheckContentType(r, "application/json"); err != nil {
		return err
	}
	if rq.members, rq.raw, err = ReadBody(w, r, batchBody); err != nil {
		return err
	}
	for name := range rq.members {
		if name != "changes" {
			rq.ignored = append(rq.ignored, name)
		}
	}
	raw, ok := rq.members["changes"]
	if !ok {
		return problem.Missing("changes")
	}
	texts, err := listOf("changes", raw)
	if err != nil {
		return err
	}
	done, err := a.takeBatch(r.Context(), caller)
	if err != nil {
		return err
	}
	defer done()
	makes := make([]bool, len(texts))
	for i, raw := range texts {
		var text struct {
			Method string `json:"method"`
		}
		makes[i] = json.Unmarshal(raw, &text) == nil && text.Method == http.MethodPost
	}
	parts, err := a.parts(rq, texts, func(at string, raw json.RawMessage, i int) (*part, error) {
		return a.partOf(rq, at, raw, func(ref int) bool { return ref >= 0 && ref < i && makes[ref] })
	})
	if err != nil {
		return err
	}
	return a.writeParts(w, rq, parts, done, http.StatusOK, func(tx *store.Tx, answers []partAnswer) (any, error) {
		answer := struct {
			Count       int          `json:"count"`
			Transaction *int64       `json:"transaction"`
			Results     []partAnswer `json:"results"`
		}{len(answers), nil, answers}
		tally, err := tx.Tally()
		if err == nil && tally != (store.Tally{}) {
			var number int64
			number, err = tx.Number()
			answer.Transaction = &number
		}
		return answer, err
	})
}

// listed answers POST of a list of resources where one is made: all are made, or none. rq has the list as its body.
func (a *Server) listed(w http.ResponseWriter, rq *request) error {
	done, err := a.takeBatch(rq.Context(), rq.caller)
	if err != nil {
		return err
	}
	defer done()
	if int64(len(rq.raw)) > batchBody.Bytes {
		return problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge", "a list may have %s", size(batchBody.Bytes))
	}
	if !json.Valid(rq.raw) {
		return problem.BadRequest("InvalidRequestBody", "the body is no JSON")
	}
	whole, err := schema.ParseObject(slices.Concat([]byte(`{"":`), rq.raw, []byte("}")), AnyBody.Members)
	if err != nil {
		return err
	}
	texts, err := listOf("", whole[""])
	if err != nil {
		return err
	}
	parts, err := a.parts(rq, texts, func(at string, raw json.RawMessage, i int) (*part, error) {
		header := rq.Header.Clone()
		header.Del("Idempotency-Key")
		header.Del(dryRunHeader)
		return a.newPart(rq, at, http.MethodPost, rq.URL, header, raw, func(ref int) bool { return ref >= 0 && ref < i })
	})
	if err != nil {
		return err
	}
	return a.writeParts(w, rq, parts, done, http.StatusCreated, func(_ *store.Tx, answers []partAnswer) (any, error) {
		answer := struct {
			Data  []json.RawMessage `json:"data"`
			Count int               `json:"count"`
		}{make([]json.RawMessage, len(answers)), len(answers)}
		for i, one := range answers {
			answer.Data[i] = one.Body
			for _, name := range one.Ignored {
				if !slices.Contains(rq.ignored, name) {
					rq.ignored = append(rq.ignored, name)
				}
			}
		}
		return answer, nil
	})
}

// listOf reads the elements of a list.
func listOf(field string, raw json.RawMessage) (list []json.RawMessage, err error) {
	name := field
	if name == "" {
		name = "the body"
	}
	if json.Unmarshal(raw, &list) != nil || list == nil || len(list) == 0 || len(list) > maxChanges {
		p := problem.BadRequest("InvalidRequestBody", "%s: a list of 1 to %d is expected", name, maxChanges)
		if field != "" {
			p.Fields = []string{field}
		}
		return nil, p
	}
	return list, nil
}

// parts reads all changes, and names the faults of all that cannot be made, whatever the data.
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
				return nil, placed(at, problem.BadRequest("InvalidRequestBody",
					"at most %d changes at once may set passwords, or the like", maxPrepared))
			}
		}
		if p, ok := problem.As(placed(at, err)); ok {
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

// placed says at which change of a batch a problem is. What is no problem of the request stays as it is.
func placed(at string, err error) error {
	p, ok := problem.As(err)
	if !ok {
		return err
	}
	one := *p
	one.Message = at + ": " + p.Message[:min(len(p.Message), maxFault)] // it may quote what was sent
	one.Fields = []string{at}
	if len(p.Fields) > 0 {
		one.Fields = make([]string, len(p.Fields))
		for i, field := range p.Fields {
			one.Fields[i] = at + "." + field[:min(len(field), maxIgnoredName)]
		}
	}
	return &one
}

// partOf reads a change of a batch. earlier tells whether a change is before it, and makes something.
func (a *Server) partOf(rq *request, at string, raw json.RawMessage, earlier func(ref int) bool) (*part, error) {
	members, err := schema.ParseObject(raw, AnyBody.Members)
	if err != nil {
		return nil, err
	}
	for name := range members {
		if !slices.Contains(partMembers, name) {
			return nil, problem.Invalid(name, "a change has no such member; it has %s", strings.Join(partMembers, ", "))
		}
	}
	var text partText
	if err := json.Unmarshal(raw, &text); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, problem.Invalid(wrong.Field, "cannot be of the kind %s", wrong.Value)
		}
		return nil, problem.BadRequest("InvalidRequestBody", "method and path are texts, headers an object of texts")
	}
	if !slices.Contains(changes, text.Method) {
		return nil, problem.Invalid("method", "%q is none of %s", text.Method, strings.Join(changes, ", "))
	}
	header, err := a.partHeader(rq, &text)
	if err != nil {
		return nil, err
	}
	path, err := url.Parse(text.Path)
	if err != nil || len(text.Path) > MaxURL || path.User != nil || text.Path == "" || path.Scheme != "" || path.Host != "" ||
		path.Fragment != "" {
		return nil, problem.Invalid("path", "%q is no path of this API, such as networks/100123 or %s/networks/100123", text.Path, a.Base)
	}
	if !strings.HasPrefix(path.Path, "/") {
		path.Path = a.Base + "/" + path.Path
		path.RawPath = ""
	}
	if !strings.HasPrefix(path.Path, a.Base+"/") {
		return nil, problem.Invalid("path", "%q does not lie below %s", text.Path, a.Base)
	}
	return a.newPart(rq, at, text.Method, path, header, text.Body, earlier)
}

// partHeader gives the headers of a change: those that would be looked at if it was sent alone.
func (a *Server) partHeader(rq *request, text *partText) (http.Header, error) {
	header := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(text.Headers)) {
		value := text.Headers[name]
		known := slices.ContainsFunc(a.headers, func(h resource.RequestHeader) bool { return strings.EqualFold(h.Name, name) })
		ofAll := slices.ContainsFunc(ofBatches, func(other string) bool { return strings.EqualFold(other, name) })
		switch {
		case value == "" || header.Get(name) != "":
			return nil, problem.Invalid("headers."+name, "must be there once, with a value")
		case ofAll:
			return nil, problem.Invalid("headers."+name, "is for the whole batch: send it with the request")
		case !known && !strings.EqualFold(name, "Content-Type"):
			return nil, problem.Invalid("headers."+name, "is no header that a change looks at")
		}
		header.Set(name, value)
	}
	header["Accept"] = rq.Header.Values("Accept")
	if text.Body != nil && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	return header, nil
}

// ofBatches are the headers that are of a batch and not of its changes.
var ofBatches = []string{"Idempotency-Key", dryRunHeader, commentHeader}

// newPart reads a change as if it was sent alone. earlier tells whether a change is before it, and makes something.
func (a *Server) newPart(rq *request, at, method string, path *url.URL, header http.Header, body json.RawMessage,
	earlier func(ref int) bool) (*part, error) {
	one, refers := &part{at: at}, false
	wrong := -1
	plain := *path
	plain.Path, plain.RawPath = fillPath(path.Path, func(ref int) int64 {
		if refers = true; !earlier(ref) {
			wrong = ref
		}
		return resource.RootID + 1 // until it is known any id does: that there is a resource is asked in the transaction
	}), ""
	if wrong >= 0 {
		return nil, problem.Invalid("path", "$%d is no earlier change that makes something", wrong)
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
		for _, ref := range a.bodyRefs(one.rq, name, raw) {
			if refers = true; !earlier(ref) {
				return nil, problem.Invalid(name, "$%d is no earlier change that makes something", ref)
			}
		}
	}
	if refers {
		one.path, one.members = path, one.rq.members
	}
	if one.rq.fields != nil && len(one.rq.fields.Embeds) > 0 {
		return nil, problem.Query("fields", "embed is not for many changes at once")
	}
	return one, nil
}

// partTarget finds what a change is about, and asks whether the caller may.
func (a *Server) partTarget(sent *http.Request, caller resource.Caller) (t resource.Target, err error) {
	if t, err = a.route(sent, caller); err != nil {
		return t, err
	}
	refused := a.refuses(sent, t, caller, actions[sent.Method])
	if caller.MustReset && refused != nil { // as in Serve
		return t, refused
	}
	if methods := methodsOf(t); !slices.Contains(methods, sent.Method) {
		return t, problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "%s is not for this resource; these are: %s", sent.Method,
			allow(methods))
	}
	if sent.Method == http.MethodPost && !listable(t) {
		return t, problem.Invalid("path", "%s cannot be made in a batch", t.Collection.Name)
	}
	// Who may do what is known when it begins, and must not change on the way.
	if t.Collection != nil && t.Collection.SignIn != nil || t.Sub == nil && !t.List && t.ID == caller.User {
		return t, problem.Invalid("path", "neither sessions nor the user who asks can be changed in a batch")
	}
	return t, refused
}

// writeParts makes all changes, ends the turn, and answers what is worded.
func (a *Server) writeParts(w http.ResponseWriter, rq *request, parts []*part, done func(), status int,
	word func(tx *store.Tx, answers []partAnswer) (any, error)) error {
	dry := dryRun(rq.Request)
	switch {
	case dry: // what is only tried is no answer to keep
		rq.key = ""
	case rq.key != "" && slices.ContainsFunc(parts, func(p *part) bool { return p.rq.Collection != nil && p.rq.Collection.Secret }):
		rq.key, rq.ignored = "", append(rq.ignored, "Idempotency-Key")
	}
	var ans answer
	depends := a.scopeOf(parts)
	err := a.probing(rq, maxBatchProbes,
		"%d addresses were asked whether they answer, and more would have to be: send fewer changes at once", func() error {
			return a.Store.UpdateIn(rq.Context(), depends, rq.author, func(tx *store.Tx) (err error) {
				replay, there, err := a.replay(tx, rq)
				if err != nil {
					return err
				}
				if there {
					ans = replay
					return nil
				}
				if ans, err = a.performParts(tx, rq, parts, word); err == nil && dry {
					err = a.tried(tx, rq, &ans)
				}
				return err
			})
		})
	done()
	note(w, rq.ignored)
	switch {
	case dry && errors.Is(err, errTried):
		status = http.StatusOK
	case err != nil:
		return err
	}
	media := rq.media
	if dry {
		media = asJSON
	}
	send(w, rq.Request, status, media, ans.body)
	return nil
}

// scopeOf gives what the changes depend on and change: of all what it is for each, where that is one; else everything.
func (a *Server) scopeOf(parts []*part) (all store.Scope) {
	for i, p := range parts {
		if p.path != nil || p.rq.Any {
			return store.Scope{}
		}
		one := a.ScopeOf(p.rq.Target, p.rq.Method == http.MethodPost, &resource.Change{Sent: p.rq.members, Options: p.rq.options})
		if i > 0 && one != all {
			return store.Scope{}
		}
		all = one
	}
	return all
}

// performParts makes the changes, one behind the other.
func (a *Server) performParts(tx *store.Tx, rq *request, parts []*part, word func(*store.Tx, []partAnswer) (any, error)) (ans answer,
	err error) {
	if len(parts) > 1 {
		tx.Describe("BATCH", fmt.Sprintf("Made %d changes at once", len(parts)))
	}
	answers, made, size := make([]partAnswer, len(parts)), make([]int64, len(parts)), 0
	for i, p := range parts {
		if err := rq.Context().Err(); err != nil {
			return ans, err
		}
		one, err := a.performPart(tx, rq, p, made)
		if err != nil {
			return ans, placed(p.at, wordConflict(err))
		}
		if size += len(one.body); size > maxAnswer {
			return ans, problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge",
				"%s: the answers take more than %d MiB: ask for less of each, as by ?fields=id in its path", p.at, maxAnswer>>20)
		}
		made[i] = one.made
		answers[i] = partAnswer{Status: one.status, Location: one.location, ETag: one.etag, Body: one.body,
			Ignored: slices.Concat(p.rq.ignored, p.rq.unknown)}
	}
	text, err := word(tx, answers)
	if err != nil {
		return ans, err
	}
	if ans.body, err = json.Marshal(text); err != nil {
		return ans, err
	}
	return ans, a.keep(tx, rq, ans)
}

// performPart makes one change. made are the ids of what the changes before it have made.
func (a *Server) performPart(tx *store.Tx, rq *request, p *part, made []int64) (ans answer, err error) {
	p.rq.probed = rq.probed
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

// How a body names an earlier change: as its id, or that of an object at any depth. A quote inside of a text is escaped, so the
// latter is in no text.
var (
	bodyRef = regexp.MustCompile(`([{,\s]"id"\s*:\s*)"(\$[0-9]{1,5})"`)
	ownRef  = regexp.MustCompile(`^()"(\$[0-9]{1,5})"$`)
)

// refsIn gives how a member of a body may name earlier changes; nil where it holds what is the client's own, such as user-defined fields.
func (a *Server) refsIn(rq *request, name string) *regexp.Regexp {
	if slices.ContainsFunc(a.TargetTypes(rq.Target), func(t *schema.Type) bool {
		f := t.ByName[name]
		return f != nil && (f.Kind == schema.Map || f.Kind == schema.Raw)
	}) {
		return nil
	}
	if name == "id" {
		return ownRef
	}
	return bodyRef
}

// bodyRefs gives the earlier changes that a member of a body names.
func (a *Server) bodyRefs(rq *request, name string, raw json.RawMessage) (refs []int) {
	if form := a.refsIn(rq, name); form != nil {
		for _, match := range form.FindAllSubmatch(raw, -1) {
			refs = append(refs, refOf(string(match[2])))
		}
	}
	return refs
}

// fillBody puts ids in the place of the earlier changes that a member of a body names.
func (a *Server) fillBody(rq *request, name string, raw json.RawMessage, made []int64) json.RawMessage {
	form := a.refsIn(rq, name)
	if form == nil {
		return raw
	}
	return form.ReplaceAllFunc(raw, func(found []byte) []byte {
		match := form.FindSubmatch(found)
		return strconv.AppendInt(slices.Clone(match[1]), made[refOf(string(match[2]))], 10)
	})
}

// refOf reads $3; -1 where it is something else.
func refOf(text string) int {
	digits, ok := strings.CutPrefix(text, "$")
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil {
		return -1
	}
	return int(n) //nolint:gosec // 31 bits
}

// fillPath puts ids in the place of the earlier changes that a path names.
func fillPath(path string, id func(ref int) int64) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if ref := refOf(segment); ref >= 0 {
			segments[i] = strconv.FormatInt(id(ref), 10)
		}
	}
	return strings.Join(segments, "/")
}
