package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"portolan/internal/base/plural"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// confirmHeader is the header with the number of resources that the deletion of a list shall delete.
const confirmHeader = "x-portolan-confirm"

// deletedAnswer is the answer to the deletion of a list.
type deletedAnswer struct {
	// Count is the number of deleted resources of the list. The tally includes all others that were deleted with them.
	Count int `json:"count"`
	store.Tally
}

// deleteList serves DELETE of a list: it deletes all resources that match the filter, with everything below them, or none. The request
// contains their number, so that a filter that matches more than expected deletes nothing.
func (a *Server) deleteList(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller) error {
	rq := &request{Request: r, Target: t, caller: caller}
	if err := a.readHead(rq); err != nil {
		return err
	}
	if rq.atMost > 0 {
		return problem.BadRequest("InvalidHeaderValue", "%s: is accepted only for the deletion of one resource", atMostHeader)
	}
	for _, name := range []string{"If-Match", "Idempotency-Key"} {
		if r.Header.Get(name) != "" {
			return problem.BadRequest("InvalidHeaderValue", "%s: is not accepted for the deletion of a list", name)
		}
	}
	q, scope := a.ListQuery(t, caller)
	o, err := a.options(r, scope, true)
	if err != nil {
		return err
	}
	if o.filter == nil {
		return problem.Parameter("MissingQueryParameter", "filter", "is required to delete a list")
	}
	for _, name := range listParameters {
		if name != "filter" && r.URL.Query().Has(name) {
			return problem.Query(name, "is not accepted for the deletion of a list, which deletes all matches of the filter")
		}
	}
	confirmed := -1
	if text := r.Header.Get(confirmHeader); text != "" {
		if confirmed, err = strconv.Atoi(text); err != nil || confirmed < 0 {
			return problem.BadRequest("InvalidHeaderValue", "%s: %q is not a number of resources to delete", confirmHeader, text)
		}
	}
	done, err := a.waitForBatch(r.Context(), caller)
	if err != nil {
		return err
	}
	defer done()
	q.Where = store.All{q.Where, o.condition}
	var ans answer
	dry := dryRun(r)
	if err := a.change(rq, dry, store.Scope{}, &ans, func(tx *store.Tx) (answer, error) {
		return a.deleteFound(tx, rq, q, confirmed, dry)
	}); err != nil {
		return err
	}
	done()
	listIgnored(w, o.ignored)
	setRecordedHeader(w, rq.caller, ans)
	send(w, r, http.StatusOK, asJSON, ans.body)
	return nil
}

// deleteFound deletes the resources that a query finds.
func (a *Server) deleteFound(tx *store.Tx, rq *request, q store.Query, confirmed int, dry bool) (ans answer, err error) {
	if rq.Sub != nil {
		if err := a.Exists(tx, rq.Collection, rq.ID, rq.caller); err != nil {
			return ans, err
		}
	}
	q.Limit = maxDeletedAtOnce + 1
	var ids []int64
	if err := tx.List(q, func(row *store.Resource) error {
		ids = append(ids, row.ID)
		return nil
	}); err != nil {
		return ans, err
	}
	if len(ids) > maxDeletedAtOnce {
		return ans, problem.BadRequest("FilterNeedsRefinement", "filter: more than %d resources match; delete fewer at once", maxDeletedAtOnce)
	}
	if confirmed != len(ids) && !dry {
		p := problem.Conflict("ConfirmationRequired", "%d resources match; to delete them, send %s: %d", len(ids), confirmHeader, len(ids))
		p.Fields = []string{confirmHeader}
		return ans, p
	}
	tx.Describe("DELETE_LIST", "Deleted "+plural.Count(len(ids), "resource")+" at once")
	c := &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Options: rq.options, Extra: map[string]string{}}
	for _, id := range ids {
		row, err := tx.Get(id)
		if errors.Is(err, store.ErrNotFound) { // it was deleted together with an earlier one
			continue
		}
		if err != nil {
			return ans, err
		}
		if err := a.deleteOne(c, row); err != nil {
			return ans, err
		}
	}
	tally, err := tx.Tally()
	if err != nil {
		return ans, err
	}
	ans.body, err = json.Marshal(deletedAnswer{len(ids), tally})
	return ans, err
}

// deleteOne deletes one resource of a list. An error names the resource.
func (a *Server) deleteOne(c *resource.Change, row *store.Resource) error {
	if a.May != nil {
		if _, err := a.May(c.Caller, resource.ActionDelete, resource.Subject{Collection: a.Collection(row.Collection), ID: row.ID}); err != nil {
			return err
		}
	}
	tally, err := c.Tx.Tally()
	if err != nil {
		return err
	}
	done, err := c.DeleteSome(row, max(maxDeletedAtOnce-tally.Deleted, 0))
	if err == nil && !done {
		return problem.BadRequest("FilterNeedsRefinement",
			"filter: with everything below the matches, more than %d resources would be deleted; delete fewer at "+
				"once, or delete the largest ones singly with %s", maxDeletedAtOnce, atMostHeader)
	}
	if p, ok := problem.As(a.Conceal(c.Tx, c.Caller, nil, err)); ok {
		one := *p
		one.Message = fmt.Sprintf("%s %d %s: %s", row.Type, row.ID, row.Name, p.Message)
		return &one
	}
	return err
}
