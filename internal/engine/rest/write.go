package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// request is a request that changes data, read and checked as far as possible without the database.
type request struct {
	*http.Request
	resource.Target
	caller     resource.Caller
	media      media
	fields     *schema.Projection
	members    map[string]json.RawMessage
	raw        []byte
	author     store.Author
	key        string // Idempotency-Key
	prefetched resource.Outside
	options    resource.Options
	// prepared is the result of Collection.Beforehand.
	prepared any
	// content are the bytes that were sent in addition to the fields; nil without any.
	content *resource.Content
	// ignored are the ignored parts of the request; unknown are unknown members of its body.
	ignored, unknown []string
	// atMost is the maximum number of resources that a deletion may delete; 0: no limit.
	atMost int
	// listable says that the body may be a list of resources, list that it is one.
	listable, list bool
}

// answer is the answer to a change.
type answer struct {
	status   int
	body     []byte
	location string
	etag     string
	// transaction is the number of the transaction to be shown, for actions whose result is a transaction.
	transaction int64
	// createdID is the id of the created resource; 0 if none was created.
	createdID int64
	// recorded is the number of the transaction in the history; 0 if the history does not record it.
	recorded int64
	// cookie is the value for the browser's cookie; empty: none.
	cookie string
}

// dryRunHeader makes a change a dry run. commentHeader has the comment that the history stores. atMostHeader makes a deletion one step of
// a longer one. sessionHeader requests the session's token as a cookie.
const (
	dryRunHeader  = "x-portolan-dry-run"
	commentHeader = "x-bcn-change-control-comment"
	atMostHeader  = "x-portolan-at-most"
	sessionHeader = "x-portolan-session"
	inCookie      = "cookie"
)

// maxDeletedAtOnce is the maximum number of resources that one step of a deletion deletes.
const maxDeletedAtOnce = 10_000

// showTransaction fills the answer with the created transaction.
func (a *Server) showTransaction(r *http.Request, rq *request, ans *answer) error {
	return a.Store.View(r.Context(), func(tx *store.Tx) error {
		row, err := a.FindIn(tx, a.History, ans.transaction)
		if err != nil {
			return err
		}
		ans.status, ans.etag = http.StatusCreated, etag(row)
		ans.location = a.plans[a.History.Name].collectionPath + strconv.FormatInt(row.ID, 10)
		ans.body, err = a.renderer(tx, rq.media, rq.caller).renderResource(nil, row, rq.fields, rq.caller, nil)
		return err
	})
}

// maxProbes is the maximum number of addresses that are probed for one change. Probing takes time; no lock is held during it.
const maxProbes = 16

// allProbesAnswered returns the error for a change that needs more probes.
func allProbesAnswered() error {
	return problem.BadRequest("NoSpaceForAddress", "the first %d free addresses all answer a probe, so they are in use", maxProbes)
}

// maxComment is the maximum length of the comment on a change, in bytes.
const maxComment = 2000

func (a *Server) write(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller) error {
	rq := &request{Request: r, Target: t, caller: caller,
		listable: r.Method == http.MethodPost && listable(t)}
	defer func() {
		if rq.content == nil {
			return
		}
		if err := rq.content.Drop(); err != nil {
			a.Log.Warn("temporary file not removed", "error", err)
		}
	}()
	if err := a.read(w, rq); err != nil {
		return err
	}
	if rq.list {
		return a.createList(w, rq)
	}
	dry := dryRun(r)
	if t.Sub != nil && t.Sub.NeedsApproval && !dry {
		return a.ask(w, rq)
	}
	if dry {
		rq.key = "" // the answer of a dry run is not stored
		if done, err := a.estimate(w, rq); done || err != nil {
			return err
		}
	}
	var ans answer
	err := a.RetryWithWork(rq.Context(), maxProbes, allProbesAnswered(), func(o resource.Outside) error {
		rq.prefetched = o
		depends := a.ScopeOf(t, r.Method == http.MethodPost, &resource.Change{Sent: rq.members, Options: rq.options})
		return a.change(rq, dry, depends, &ans, func(tx *store.Tx) (answer, error) {
			if dry && a.mayRequestApproval(rq) { // the dry run shows the effects of an approval
				tx.Approve(0)
			}
			return a.perform(tx, rq)
		})
	})
	if errors.Is(err, resource.ErrApproval) && !dry && a.mayRequestApproval(rq) {
		return a.ask(w, rq)
	}
	listIgnored(w, append(rq.ignored, rq.unknown...))
	if dry && err == nil {
		send(w, r, http.StatusOK, asJSON, ans.body)
		return nil
	}
	if err == nil && ans.transaction != 0 {
		err = a.showTransaction(r, rq, &ans)
	}
	if err != nil {
		return conflictProblem(err)
	}
	setRecordedHeader(w, rq.caller, ans)
	if ans.cookie != "" && a.SetCookie != nil {
		a.SetCookie(w, r, ans.cookie)
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

// RecordedHeader has the number of the transaction of a change. An undo needs this number.
const RecordedHeader = "x-portolan-transaction"

// setRecordedHeader sets RecordedHeader if the history records the change and the caller sees the history.
func setRecordedHeader(w http.ResponseWriter, caller resource.Caller, ans answer) {
	if ans.recorded != 0 && (caller.Administrator || caller.History != "HIDE") {
		w.Header().Set(RecordedHeader, strconv.FormatInt(ans.recorded, 10))
	}
}

// listable reports whether a POST to the target may have a list as its body.
func listable(t resource.Target) bool {
	return t.Sub != nil && !t.Sub.NeedsApproval || t.Sub == nil && t.Collection.SignIn == nil && t.Collection.Act == nil
}

// conflictProblem returns a problem for a violated unique index that no rule has checked before.
func conflictProblem(err error) error {
	if _, ok := problem.As(err); !ok && store.Duplicate(err) {
		p := problem.Conflict("ResourceAlreadyExists", "a resource with the same identity already exists")
		p.Err = err
		return p
	}
	return err
}

func (a *Server) read(w http.ResponseWriter, rq *request) error {
	query, err := parseQuery(rq.Request)
	if err != nil {
		return err
	}
	if err := a.readHead(rq); err != nil {
		return err
	}
	rq.ignored = unknownParameters(query, itemParameters)
	if text, ok, err := singleParameter(query, "fields"); err != nil {
		return err
	} else if ok {
		if rq.fields, err = a.parseFields(text, a.ScopeFor(a.TargetTypes(rq.Target), rq.caller)); err != nil {
			return err
		}
	}
	if rq.key != "" && (rq.Collection.Secret || a.showsSecrets(rq.Target)) { // a body with secrets is never stored
		rq.key, rq.ignored = "", append(rq.ignored, "Idempotency-Key")
	}
	if rq.Method == http.MethodDelete {
		return nil
	}
	if rq.multiPart(a) {
		return rq.readParts(w, a)
	}
	if types := rq.tables(a); types != nil {
		return rq.readTable(w, a, types)
	}
	signIn := rq.Collection.SignIn
	if signIn == nil || rq.Method != http.MethodPost || rq.Sub != nil {
		if err := checkContentType(rq.Request); err != nil {
			return err
		}
		return a.readMembers(w, rq)
	}
	if dryRun(rq.Request) { // the dry run would count as a sign-in, and use up a sign-in link
		return problem.BadRequest("InvalidHeaderValue", "%s: a sign-in does not support a dry run", dryRunHeader)
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
	remote, program := rq.caller.Remote, rq.caller.Client
	asked := resource.SignIn{Members: rq.members, Remote: remote, Console: rq.Header.Get(sessionHeader) == inCookie}
	asked.Name, asked.Password, asked.Basic = rq.BasicAuth()
	if rq.caller, err = signIn(rq.Context(), a.API, asked); err != nil {
		return err
	}
	rq.caller.Remote, rq.caller.Client = remote, program
	rq.author = rq.caller.Author(rq.author.Comment)
	return nil
}

// showsSecrets reports whether the answer to a request may have a secret that is shown once.
func (a *Server) showsSecrets(t resource.Target) bool {
	return slices.ContainsFunc(a.TargetTypes(t), showsOnce)
}

// showsOnce reports whether resources of a type have a secret that is shown once.
func showsOnce(t *schema.Type) bool {
	return slices.ContainsFunc(t.Fields, func(f *schema.Field) bool { return f.Once })
}

func (a *Server) readMembers(w http.ResponseWriter, rq *request) (err error) {
	if rq.raw, err = readBytes(w, rq.Request, StandardBody); err != nil {
		return err
	}
	if rq.list = rq.listable && bytes.HasPrefix(bytes.TrimLeft(rq.raw, " \t\r\n"), []byte("[")); rq.list {
		return nil
	}
	if rq.members, err = schema.ParseObject(rq.raw, StandardBody.Members); err == nil && rq.Sub == nil && rq.Collection.Beforehand != nil {
		rq.prepared, err = rq.Collection.Beforehand(rq.Context(), a.API, rq.members)
	}
	if err != nil || rq.Method != http.MethodPost || len(a.tablesOf(rq.Target)) == 0 {
		return err
	}
	if err := rq.rowsNotTried(); err != nil {
		return err
	}
	if _, given := rq.members["headers"]; given {
		return nil
	}
	return rq.keepHeaders(a)
}

// Comment returns the comment of a change, from the header x-bcn-change-control-comment.
func Comment(r *http.Request) (string, error) {
	comment := r.Header.Get(commentHeader)
	if len(comment) > maxComment || strings.ContainsFunc(comment, unicode.IsControl) {
		return "", problem.BadRequest("InvalidHeaderValue",
			"%s: must have at most %d bytes, without control characters", commentHeader, maxComment)
	}
	return comment, nil
}

// readHead reads the headers of a change.
func (a *Server) readHead(rq *request) (err error) {
	if rq.media, err = negotiate(rq.Header.Values("Accept"), []media{asHAL, asJSON}); err != nil {
		return err
	}
	if rq.options, err = a.readOptions(rq.Request); err != nil {
		return err
	}
	if rq.Header.Get(confirmHeader) != "" && !(rq.Method == http.MethodDelete && rq.List) {
		return problem.BadRequest("InvalidHeaderValue", "%s: is accepted only for the deletion of a list", confirmHeader)
	}
	comment, err := Comment(rq.Request)
	if err != nil {
		return err
	}
	rq.author = rq.caller.Author(comment)
	if text := rq.Header.Get(atMostHeader); text != "" {
		if rq.Method != http.MethodDelete {
			return problem.BadRequest("InvalidHeaderValue", "%s: is accepted only for DELETE", atMostHeader)
		}
		if rq.atMost, err = strconv.Atoi(text); err != nil || rq.atMost < 1 || rq.atMost > maxDeletedAtOnce {
			return problem.BadRequest("InvalidHeaderValue", "%s: %q is not a number from 1 to %d", atMostHeader, text, maxDeletedAtOnce)
		}
		if rq.Sub != nil && rq.Sub.Relation != resource.Children {
			return problem.BadRequest("InvalidHeaderValue", "%s: is not accepted for the removal of a link", atMostHeader)
		}
		if dryRun(rq.Request) {
			return problem.BadRequest("InvalidHeaderValue", "%s: cannot be combined with %s; send only the latter to see all effects", atMostHeader,
				dryRunHeader)
		}
	}
	if rq.Method == http.MethodPost {
		rq.key, err = IdempotencyKey(rq.Request)
	}
	return err
}

// perform executes the request in the transaction. An error does not mention resources that are hidden from the caller.
func (a *Server) perform(tx *store.Tx, rq *request) (answer, error) {
	ans, err := a.performApproved(tx, rq)
	if err != nil {
		err = a.Conceal(tx, rq.caller, rq.members, err)
	}
	return ans, err
}

func (a *Server) performApproved(tx *store.Tx, rq *request) (answer, error) {
	c := &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Sent: rq.members, Answers: rq.prefetched.Answers,
		Prepared: rq.prepared, Results: rq.prefetched.Results,
		Content: rq.content,
		Options: rq.options,
		Extra:   map[string]string{}}
	defer func() { rq.unknown = c.Ignored }()
	switch {
	case rq.Method == http.MethodPost:
		return a.post(c, rq)
	case rq.Method == http.MethodDelete && rq.Sub != nil && rq.Sub.Remove != nil:
		return answer{status: http.StatusNoContent}, a.Unjoin(c, rq.Target)
	case rq.Method == http.MethodDelete && rq.Sub != nil && rq.Sub.Relation != resource.Children:
		return answer{status: http.StatusNoContent}, a.Unlink(c, rq.Target)
	}
	row, err := a.Locate(tx, rq.Target, rq.caller)
	if err != nil {
		return answer{}, err
	}
	if err := checkIfMatch(rq.Request, row); err != nil {
		return answer{}, err
	}
	if rq.Method == http.MethodDelete && rq.atMost > 0 {
		return a.deleteStep(c, rq, row)
	}
	if rq.Method == http.MethodDelete {
		return answer{status: http.StatusNoContent}, c.Delete(row)
	}
	written, err := a.Rewrite(c, row, rq.Method == http.MethodPut)
	if err != nil {
		return answer{}, err
	}
	ans := answer{status: http.StatusOK, etag: etag(written)}
	ans.body, err = a.renderer(tx, rq.media, rq.caller).renderResource(nil, written, rq.fields, rq.caller, c.Extra)
	return ans, err
}

// stepAnswer is the answer to one step of a deletion.
type stepAnswer struct {
	// Done says that nothing is left. Otherwise the same request takes the next step.
	Done bool `json:"done"`
	store.Tally
}

// deleteStep deletes a resource, or some of the resources below it.
func (a *Server) deleteStep(c *resource.Change, rq *request, row *store.Resource) (ans answer, err error) {
	var step stepAnswer
	if step.Done, err = c.DeleteSome(row, rq.atMost); err != nil {
		return ans, err
	}
	if step.Tally, err = c.Tx.Tally(); err != nil {
		return ans, err
	}
	rq.media = asJSON
	ans.status = http.StatusOK
	ans.body, err = json.Marshal(step)
	return ans, err
}

func (a *Server) post(c *resource.Change, rq *request) (answer, error) {
	if rq.Sub != nil && rq.Sub.NeedsApproval {
		return answer{}, problem.Forbidden("OperationNotPermitted",
			"send a change below a workflow request as a single request: not in a batch or list, and not as a dry run")
	}
	if rq.Sub == nil && rq.Collection.Act != nil {
		transaction, err := a.Act(c, rq.Collection)
		return answer{transaction: transaction}, err
	}
	replay, ok, err := a.replay(c.Tx, rq)
	if err != nil || ok {
		return replay, err
	}
	var row *store.Resource
	switch {
	case rq.Sub != nil && rq.Sub.Join != nil:
		row, err = a.JoinIn(c, rq.Target)
	case rq.Sub != nil && (rq.Sub.Relation == resource.Linked || rq.Sub.Relation == resource.Linking):
		row, err = a.Link(c, rq.Target)
	default:
		row, err = a.CreateIn(c, rq.Target)
	}
	if err != nil {
		return answer{}, err
	}
	ans := answer{status: http.StatusCreated, etag: etag(row), createdID: row.ID, cookie: c.Extra[resource.Cookie],
		location: a.plans[row.Collection].collectionPath + strconv.FormatInt(row.ID, 10)}
	if a.Collection(row.Collection).Inner { // it is reached only through the resource above
		ans.location = rq.URL.Path + "/" + strconv.FormatInt(row.ID, 10)
	}
	if ans.body, err = a.renderer(c.Tx, rq.media, rq.caller).renderResource(nil, row, rq.fields, rq.caller, c.Extra); err != nil {
		return ans, err
	}
	return ans, a.storeAnswer(c.Tx, rq, ans)
}
