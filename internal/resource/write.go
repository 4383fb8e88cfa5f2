package resource

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"portolan/internal/problem"
	"portolan/internal/store"
)

// request is a request that changes something, read and checked as far as that goes without the
// data.
type request struct {
	*http.Request
	target
	caller  Caller
	media   media
	fields  *projection
	members map[string]json.RawMessage
	raw     []byte
	author  store.Author
	key     string // Idempotency-Key
	probed  map[netip.Addr]bool
	options Options
	// prepared is what Collection.Beforehand gave.
	prepared any
	// ignored is what of the request means nothing.
	ignored []string
}

// ignore notes the members of the body that are no fields of a type.
func (rq *request) ignore(t *Type) {
	for name := range rq.members {
		// _links and the like come back as they were shown
		if t.byName[name] == nil && !strings.HasPrefix(name, "_") && !slices.Contains(rq.ignored, name) {
			rq.ignored = append(rq.ignored, name)
		}
	}
}

// answer is what a change answers.
type answer struct {
	status   int
	body     []byte
	location string
	etag     string
	// transaction is the one to be shown, where what was done is a transaction itself.
	transaction int64
}

// errTried takes back a change that was only tried.
var errTried = errors.New("the change was only tried")

// dryRunHeader lets a change only be tried.
const dryRunHeader = "x-portolan-dry-run"

// dryRun tells whether a change is only to be tried. That the header says yes or no was checked (readOptions).
func dryRun(r *http.Request) bool { return strings.EqualFold(r.Header.Get(dryRunHeader), "true") }

// tried turns the answer into what would have come of the change, and gives errTried.
func (ans *answer) tried(tx *store.Tx) error {
	tally, err := tx.Tally()
	if err != nil {
		return err
	}
	resource := json.RawMessage("null")
	if len(ans.body) > 0 {
		resource = ans.body
	}
	ans.body, err = json.Marshal(struct {
		DryRun   bool            `json:"dryRun"`
		Resource json.RawMessage `json:"resource"`
		store.Tally
	}{true, resource, tally})
	if err != nil {
		return err
	}
	return errTried
}

// show fills the answer with the transaction that was made.
func (a *API) show(r *http.Request, rq *request, ans *answer) error {
	return a.Store.View(r.Context(), func(tx *store.Tx) error {
		row, err := a.findIn(tx, a.history, ans.transaction)
		if err != nil {
			return err
		}
		ans.status, ans.etag = http.StatusCreated, etag(row)
		ans.location = a.plans[a.history.Name].one + strconv.FormatInt(row.ID, 10)
		ans.body, err = a.renderer(tx, rq.media).one(nil, row, rq.fields, rq.caller, nil)
		return err
	})
}

// maxComment bounds the comment on a change, maxKey the Idempotency-Key, in bytes.
const (
	maxComment = 2000
	maxKey     = 255
)

func (a *API) write(w http.ResponseWriter, r *http.Request, t target, caller Caller) error {
	rq := &request{Request: r, target: t, caller: caller}
	if err := a.read(w, rq); err != nil {
		return err
	}
	dry := dryRun(r)
	if dry {
		rq.key = "" // what is only tried is no answer to keep
	}
	var ans answer
	err := a.probing(rq, func() error {
		return a.Store.UpdateIn(r.Context(), a.scopeOf(rq), rq.author, func(tx *store.Tx) (err error) {
			if ans, err = a.perform(tx, rq); err == nil && dry {
				err = ans.tried(tx)
			}
			return err
		})
	})
	note(w, rq.ignored)
	if dry && errors.Is(err, errTried) {
		send(w, r, http.StatusOK, asJSON, ans.body)
		return nil
	}
	if err == nil && ans.transaction != 0 {
		err = a.show(r, rq, &ans)
	}
	if err != nil {
		return wordConflict(err)
	}
	if ans.location != "" {
		w.Header().Set("Location", ans.location)
	}
	if ans.etag != "" {
		w.Header().Set("ETag", ans.etag)
	}
	if ans.status == http.StatusNoContent {
		w.WriteHeader(ans.status)
		return nil
	}
	send(w, r, ans.status, rq.media, ans.body)
	return nil
}

// scopeOf is what the change depends on and changes.
func (a *API) scopeOf(rq *request) store.Scope {
	if rq.sub == nil && rq.collection.Post { // its siblings lie outside of all configurations
		return store.Scope{}
	}
	if rq.sub != nil && rq.sub.Joined != nil { // what is linked may change, and lie outside of them
		return store.Scope{}
	}
	return store.Within(rq.id, rq.Method == http.MethodPost && rq.sub != nil && rq.sub.Local && a.staysLocal(rq))
}

// staysLocal reports whether a POST gives no field and no option by which it reaches further than what lies right below its
// parent.
func (a *API) staysLocal(rq *request) bool {
	for _, t := range a.postTypes(rq.sub) {
		for _, f := range t.Fields {
			if _, given := rq.members[f.Name]; given && f.Elsewhere() {
				return false
			}
		}
	}
	for _, h := range a.headers {
		if _, given := rq.options.values[h.Name]; given && h.Elsewhere {
			return false
		}
	}
	return true
}

// wordConflict words a violation of a unique index that a rule did not foresee.
func wordConflict(err error) error {
	if _, ok := problem.As(err); !ok && store.Duplicate(err) {
		p := problem.Conflict("ResourceAlreadyExists", "a resource with the same identity exists already")
		p.Err = err
		return p
	}
	return err
}

// read reads the request's headers and body.
func (a *API) read(w http.ResponseWriter, rq *request) error {
	query, err := parseQuery(rq.Request)
	if err != nil {
		return err
	}
	if rq.media, err = negotiate(rq.Header.Values("Accept"), []media{asHAL, asJSON}); err != nil {
		return err
	}
	rq.ignored = unknownParameters(query, itemParameters)
	if text, ok, err := one(query, "fields"); err != nil {
		return err
	} else if ok {
		if rq.fields, err = a.parseFields(text, scope{a, a.targetTypes(rq.target), rq.caller}); err != nil {
			return err
		}
	}
	if rq.options, err = a.readOptions(rq.Request); err != nil {
		return err
	}
	comment := rq.Header.Get("x-bcn-change-control-comment")
	if len(comment) > maxComment || strings.ContainsFunc(comment, unicode.IsControl) {
		return problem.New(http.StatusBadRequest, "InvalidHeader",
			"x-bcn-change-control-comment: longer than %d bytes or with control characters", maxComment)
	}
	rq.author = store.Author{User: rq.caller.User, Name: rq.caller.Name, Comment: comment}
	if rq.Method == http.MethodPost {
		rq.key = rq.Header.Get("Idempotency-Key")
		if len(rq.key) > maxKey {
			return problem.New(http.StatusBadRequest, "InvalidHeader", "Idempotency-Key: longer than %d bytes", maxKey)
		}
		if rq.key != "" && rq.collection.Secret { // nothing of a body with secrets is remembered
			rq.key, rq.ignored = "", append(rq.ignored, "Idempotency-Key")
		}
	}
	if rq.Method == http.MethodDelete {
		return nil
	}
	signIn := rq.collection.SignIn
	if signIn == nil || rq.Method != http.MethodPost || rq.sub != nil {
		if err := checkContentType(rq.Request); err != nil {
			return err
		}
		if rq.members, rq.raw, err = ReadBody(w, rq.Request, AnyBody); err == nil && rq.sub == nil && rq.collection.Beforehand != nil {
			rq.prepared, err = rq.collection.Beforehand(rq.Context(), a, rq.members)
		}
		return err
	}
	rq.key, rq.members = "", map[string]json.RawMessage{}
	if rq.ContentLength != 0 {
		if err := checkContentType(rq.Request); err != nil {
			return err
		}
		if rq.members, _, err = ReadBody(w, rq.Request, SmallBody); err != nil {
			return err
		}
	}
	remote := rq.caller.Remote
	asked := SignIn{Members: rq.members, Remote: remote}
	asked.Name, asked.Password, asked.Basic = rq.BasicAuth()
	if rq.caller, err = signIn(rq.Context(), a, asked); err != nil {
		return err
	}
	rq.caller.Remote = remote
	rq.author.User, rq.author.Name = rq.caller.User, rq.caller.Name
	return nil
}

// targetTypes are the types that the resource of a change may be of.
func (a *API) targetTypes(t target) []*Type {
	if t.sub != nil {
		return a.itemTypes(t.sub)
	}
	return t.collection.Types
}

// perform does what the request asks, inside the transaction.
func (a *API) perform(tx *store.Tx, rq *request) (answer, error) {
	c := &Change{Tx: tx, API: a, Caller: rq.caller, Sent: rq.members, Probed: rq.probed, Prepared: rq.prepared, Options: rq.options,
		Extra: map[string]string{}}
	switch {
	case rq.Method == http.MethodPost:
		return a.post(c, rq)
	case rq.Method == http.MethodDelete && rq.sub != nil && rq.sub.Relation != Children:
		return a.unlink(c, rq)
	}
	row, err := a.locate(tx, rq.target, rq.caller)
	if err != nil {
		return answer{}, err
	}
	if err := checkIfMatch(rq.Request, row); err != nil {
		return answer{}, err
	}
	if rq.Method == http.MethodDelete {
		return answer{status: http.StatusNoContent}, c.Delete(row)
	}
	return a.put(c, rq, row)
}

func (a *API) post(c *Change, rq *request) (answer, error) {
	if rq.sub == nil && rq.collection.Act != nil {
		return a.act(c, rq)
	}
	replay, ok, err := a.replay(c.Tx, rq)
	if err != nil || ok {
		return replay, err
	}
	var row *store.Resource
	if rq.sub != nil && (rq.sub.Relation == Linked || rq.sub.Relation == Linking) {
		row, err = a.link(c, rq)
	} else {
		row, err = a.create(c, rq)
	}
	if err != nil {
		return answer{}, err
	}
	ans := answer{status: http.StatusCreated, etag: etag(row),
		location: a.plans[row.Collection].one + strconv.FormatInt(row.ID, 10)}
	if ans.body, err = a.renderer(c.Tx, rq.media).one(nil, row, rq.fields, rq.caller, c.Extra); err != nil {
		return ans, err
	}
	return ans, a.keep(c.Tx, rq, ans)
}

// act does what POST to a collection of transactions asks for.
func (a *API) act(c *Change, rq *request) (ans answer, err error) {
	t := rq.collection.Types[0]
	rq.ignore(t)
	o := t.New()
	problems := t.missing(rq.members, false)
	_, more := t.decode(o, rq.members, true)
	if err := problem.Join(append(problems, more...)); err != nil {
		return ans, err
	}
	if err := rq.collection.Act(c, o); err != nil {
		return ans, err
	}
	ans.transaction, err = c.Tx.Number()
	return ans, err
}

// create makes a resource in a collection or below a parent.
func (a *API) create(c *Change, rq *request) (*store.Resource, error) {
	types := rq.targetTypesForPost(a)
	var parent *store.Resource
	if rq.sub != nil {
		var err error
		if parent, err = a.find(c.Tx, rq.collection, rq.id, rq.caller); err != nil {
			return nil, err
		}
	}
	t, problems := pickType(types, rq.members)
	if t == nil {
		return nil, problem.Join(problems)
	}
	rq.ignore(t)
	o := t.New()
	h := o.head()
	switch {
	case parent == nil && slices.Contains(a.CollectionOf(t).Parents, ""):
	case parent == nil:
		h.Parent = RootID
	default:
		h.Parent, h.Config = parent.ID, parent.Configuration
		if a.byName[parent.Collection].Scope {
			h.Config = parent.ID
		}
	}
	problems = append(problems, t.missing(rq.members, false)...)
	given, more := t.decode(o, rq.members, true)
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, problem.Join(problems)
	}
	setColumns(t, o)
	c.Given, c.Parent = given, parent
	return c.Create(t, o)
}

func (rq *request) targetTypesForPost(a *API) []*Type {
	if rq.sub != nil {
		return a.postTypes(rq.sub)
	}
	return rq.collection.Types
}

// setColumns fills the references that the row itself has, so that rules and answers see them.
func setColumns(t *Type, o Object) {
	v := reflect.ValueOf(o).Elem()
	for _, f := range t.Fields {
		switch f.Column {
		case "parent":
			v.FieldByIndex(f.index).Set(reflect.ValueOf(Ref{ID: o.head().Parent}))
		case "configuration":
			v.FieldByIndex(f.index).Set(reflect.ValueOf(Ref{ID: o.head().Config}))
		}
	}
}

// pickType finds the type of a new resource: named in the body, or the only one possible.
func pickType(types []*Type, members map[string]json.RawMessage) (*Type, []*problem.Problem) {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name
	}
	raw, ok := members["type"]
	if !ok || string(raw) == "null" {
		if len(types) == 1 {
			return types[0], nil
		}
		// Required fields that every type asks for are named in the same answer.
		missing := []string{"type"}
		for _, p := range types[0].missing(members, false) {
			for _, name := range p.Fields {
				if !slices.ContainsFunc(types, func(t *Type) bool { f := t.byName[name]; return f == nil || !f.OnPost }) {
					missing = append(missing, name)
				}
			}
		}
		problems := missingFields(missing)
		problems[0].Message += " (type is one of " + strings.Join(names, ", ") + ")"
		return nil, problems
	}
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return nil, []*problem.Problem{problem.Invalid("type", "must be a string")}
	}
	for _, t := range types {
		if t.Name == name {
			return t, nil
		}
	}
	return nil, []*problem.Problem{problem.Invalid("type", "%q cannot be made here; these can: %s", name, strings.Join(names, ", "))}
}

// put replaces (PUT) or changes (PATCH) a resource.
func (a *API) put(c *Change, rq *request, row *store.Resource) (answer, error) {
	t := a.types[row.Type]
	rq.ignore(t)
	if raw, ok := rq.members["type"]; ok && string(raw) != "null" {
		var name string
		if json.Unmarshal(raw, &name) != nil || name != t.Name {
			return answer{}, problem.Invalid("type", "the type of a resource cannot be changed; it is %s", t.Name)
		}
	}
	old, err := t.object(row)
	if err != nil {
		return answer{}, err
	}
	fresh, err := t.object(row)
	if err != nil {
		return answer{}, err
	}
	var problems []*problem.Problem
	members := rq.members
	if rq.Method == http.MethodPut {
		problems = t.missing(rq.members, true)
		reset(t, fresh)
	} else if members, err = mergePatch(t, old, rq.members); err != nil {
		return answer{}, err
	}
	given, more := t.decode(fresh, members, false)
	if problems = append(problems, more...); len(problems) > 0 {
		return answer{}, problem.Join(problems)
	}
	if rq.Method == http.MethodPut {
		for _, f := range t.Fields { // what PUT leaves out is set to null, so it is given
			if !f.ReadOnly && !f.CreateOnly && f.Kind != References {
				given[f.Name] = true
			}
		}
	}
	c.Type, c.Old, c.New, c.Row, c.Given = t, old, fresh, row, given
	written, err := c.update()
	if err != nil {
		return answer{}, err
	}
	ans := answer{status: http.StatusOK, etag: etag(written)}
	ans.body, err = a.renderer(c.Tx, rq.media).one(nil, written, rq.fields, rq.caller, c.Extra)
	return ans, err
}

// reset sets what a PUT may write to its default, so that a field left out becomes unset. Fields
// that are never null keep what they have.
func reset(t *Type, o Object) {
	v := reflect.ValueOf(o).Elem()
	for _, f := range t.Fields {
		if f.ReadOnly || f.CreateOnly || f.Column != "" || !f.Nullable || f.Name == "type" || f.Kind == References {
			continue
		}
		v.FieldByIndex(f.index).SetZero()
	}
}
