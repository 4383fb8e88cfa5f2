package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// mayRequestApproval reports whether a change without the needed approval becomes a request for approval: it must be a single change that
// consists of fields only.
func (a *Server) mayRequestApproval(rq *request) bool {
	return a.Workflow != nil && a.Askable(rq.Target, rq.Method) && rq.content == nil && rq.atMost == 0
}

// tried is the result of trying a change before it is requested.
type tried struct {
	answer
	resource.Outcome
	asked   resource.RequestedChange
	depends int64 // the pending request that the change was sent below; 0 for an existing resource
}

// ask stores a change as a request for approval, and answers 202 with the resulting resource or, for a deletion, with the request. It
// tries the change first, so that an impossible change is refused at once.
func (a *Server) ask(w http.ResponseWriter, rq *request) error {
	t := &tried{asked: resource.RequestedChange{Method: rq.Method, Collection: rq.Collection.Name, ID: rq.ID, Members: rq.members,
		Headers: map[string]string{}}}
	if rq.Sub != nil {
		t.asked.Sub = rq.Sub.Name
	}
	for _, h := range a.Headers {
		if text := rq.Header.Get(h.Name); text != "" {
			t.asked.Headers[h.Name] = text
		}
	}
	first := maps.Clone(rq.members)
	var ans answer
	for again := 0; ; again++ {
		t.asked.Members = maps.Clone(first)
		err := a.askOnce(rq, t, &ans)
		if p, ok := problem.As(err); ok && p.Code == "ResourceConflictsWithOther" && again < maxAskRetries && rq.Method == http.MethodPost {
			continue // a concurrent request reserved the same space; if the next free space is wanted, there may be another one
		}
		if err != nil {
			return conflictProblem(err)
		}
		break
	}
	if ans.body == nil {
		var err error
		if ans.body, err = futureBody(t.body, rq.media, ans.location); err != nil {
			return err
		}
	}
	if rq.key != "" { // requests reserve their objects, so a repeated request is refused anyway
		rq.ignored = append(rq.ignored, "Idempotency-Key")
	}
	listIgnored(w, append(rq.ignored, rq.unknown...))
	w.Header().Set("Location", ans.location)
	send(w, rq.Request, http.StatusAccepted, rq.media, ans.body)
	return nil
}

// maxAskRetries is the maximum number of retries after conflicts with concurrent requests.
const maxAskRetries = 5

// askOnce tries the change, and stores the request.
func (a *Server) askOnce(rq *request, t *tried, ans *answer) error {
	scope := a.ScopeOf(rq.Target, rq.Method == http.MethodPost, &resource.Change{Sent: rq.members, Options: rq.options})
	if err := a.RetryWithWork(rq.Context(), maxProbes, allProbesAnswered(), func(o resource.Outside) error {
		rq.prefetched = o
		return a.Store.Try(rq.Context(), scope, rq.author, func(tx *store.Tx) error { return a.previewApproval(tx, rq, t) })
	}); err != nil {
		return err
	}
	return a.change(rq, false, store.Scope{}, ans, func(tx *store.Tx) (answer, error) {
		c := &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, SetFields: map[string]bool{}, Extra: map[string]string{}}
		row, err := a.Workflow.Ask(c, t.asked, t.Outcome, t.depends)
		if err != nil {
			return answer{}, a.Conceal(tx, rq.caller, rq.members, err)
		}
		made := answer{createdID: row.ID, location: a.plans[row.Collection].collectionPath + strconv.FormatInt(row.ID, 10)}
		if rq.Method == http.MethodDelete {
			made.body, err = a.renderer(tx, rq.media, rq.caller).renderResource(nil, row, nil, rq.caller, nil)
		}
		return made, err
	})
}

// previewApproval applies the change as if it were approved, in a transaction that will be rolled back, and records the outcome.
func (a *Server) previewApproval(tx *store.Tx, rq *request, t *tried) (err error) {
	tx.Approve(0)
	id := rq.ID
	switch {
	case rq.Sub != nil && rq.Sub.NeedsApproval:
		if err = a.applyBelowPending(tx, rq, t); err != nil {
			return a.Conceal(tx, rq.caller, rq.members, err)
		}
	default:
		if rq.Method != http.MethodPost {
			if t.Row, err = a.Locate(tx, rq.Target, rq.caller); err != nil {
				return err
			}
			t.Row = t.Row.Clone()
			t.asked.Version = t.Row.Version
		}
		if t.answer, err = a.perform(tx, rq); err != nil {
			break
		}
		if t.createdID != 0 {
			id = t.createdID
		}
	}
	if errors.Is(err, store.ErrTrialEnded) {
		return problem.BadRequest("TooManyChanges",
			"the change affects more than %d resources, which is too many for an approval; request approval for parts of it",
			store.TrialChanges)
	}
	if err != nil {
		return err
	}
	tx.EndTrial()
	if err := tx.CheckFollowers(); err != nil {
		return err
	}
	if rq.Method == http.MethodPost && t.depends == 0 {
		if t.Row, err = tx.Get(id); err != nil {
			return err
		}
		t.Row = t.Row.Clone()
	}
	number, err := tx.Number()
	if err != nil {
		return err
	}
	t.Summary = tx.Summary()
	t.Changes, err = tx.Changes(number)
	return err
}

// applyBelowPending applies a pending request, and then the change that was sent below it.
func (a *Server) applyBelowPending(tx *store.Tx, rq *request, t *tried) error {
	c := &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Answers: rq.prefetched.Answers,
		Results: rq.prefetched.Results, Extra: map[string]string{}}
	above, err := a.Workflow.Foresee(c, rq.ID)
	if err != nil {
		return err
	}
	number, err := tx.Number()
	if err != nil {
		return err
	}
	before, err := tx.Changes(number)
	if err != nil {
		return err
	}
	t.Foreseen = len(before)
	t.depends, t.asked.Collection, t.asked.ID = rq.ID, above.Collection, above.ID
	n := &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Answers: rq.prefetched.Answers,
		Results: rq.prefetched.Results, Extra: map[string]string{}}
	row, err := a.Perform(n, t.asked)
	if err != nil {
		return err
	}
	t.asked.ID = 0 // it does not exist yet
	t.Row = row.Clone()
	tx.Rename("", fmt.Sprintf("Added %s %s below the new resource of workflow request %d", row.Type, row.Name, rq.ID))
	t.body, err = a.renderer(tx, rq.media, rq.caller).renderResource(nil, row, rq.fields, rq.caller, n.Extra)
	return err
}

// futureBody returns the body of a resource that does not exist yet: without an id, and with a link to the request instead of its own
// links.
func futureBody(body []byte, m media, request string) ([]byte, error) {
	values := map[string][]byte{"id": []byte("null")}
	if m == asHAL {
		links, err := json.Marshal(map[string]any{"workflowRequest": map[string]string{"href": request}})
		if err != nil {
			return nil, err
		}
		values["_links"] = links
	}
	return store.Rewritten(body, values)
}
