package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"portolan/internal/resource"
	"portolan/internal/store"
)

// errTried takes back a change that was only tried.
var errTried = errors.New("the change was only tried")

// dryRun tells whether a change is only to be tried. That the header says yes or no was checked (readOptions).
func dryRun(r *http.Request) bool { return strings.EqualFold(r.Header.Get(dryRunHeader), "true") }

// operationsName is the subcollection of a transaction that has what it did.
const operationsName = "operations"

// shownOperations is how many of the changes a dry run shows; the numbers are of all.
const shownOperations = 100

// triedAnswer is what a dry run answers.
type triedAnswer struct {
	DryRun bool `json:"dryRun"`
	// Estimate says that it was not tried, and that the numbers are those of what lies below, as they are kept.
	Estimate bool            `json:"estimate,omitempty"`
	Resource json.RawMessage `json:"resource"`
	store.Tally
	// Operations are the first changes; null where the caller may not see what the history has.
	Operations []json.RawMessage `json:"operations"`
}

// tried turns the answer into what would have come of the change, and gives errTried.
func (a *Server) tried(tx *store.Tx, rq *request, ans *answer) error {
	tally, err := tx.Tally()
	if err != nil {
		return err
	}
	tried := triedAnswer{DryRun: true, Resource: ans.body, Tally: tally}
	if tried.Operations, err = a.operations(tx, rq, tally); err != nil {
		return err
	}
	if ans.body, err = json.Marshal(tried); err != nil {
		return err
	}
	return errTried
}

// operations gives the first changes of the transaction, as its subcollection would show them.
func (a *Server) operations(tx *store.Tx, rq *request, tally store.Tally) ([]json.RawMessage, error) {
	if a.History == nil || a.History.Sub(operationsName) == nil {
		return nil, nil
	}
	if tally == (store.Tally{}) {
		return []json.RawMessage{}, nil
	}
	number, err := tx.Number()
	if err != nil {
		return nil, err
	}
	at := resource.Target{Collection: a.History, Sub: a.History.Sub(operationsName), ID: number, List: true}
	if a.May != nil {
		if _, err := a.May(rq.caller, resource.ActionSee, resource.Subject{Collection: at.Collection, Sub: at.Sub, ID: at.ID}); err != nil {
			return nil, nil //nolint:nilerr // who may not see them is shown the numbers alone
		}
	}
	q, _ := a.ListQuery(at, rq.caller)
	q.Limit = shownOperations
	var rows []*store.Resource
	if err := tx.List(q, func(r *store.Resource) error {
		rows = append(rows, r.Clone())
		return nil
	}); err != nil {
		return nil, err
	}
	rd := a.renderer(tx, rq.media)
	if err := rd.ready(rows); err != nil {
		return nil, err
	}
	list := make([]json.RawMessage, len(rows))
	for i, row := range rows {
		if list[i], err = rd.append(nil, row, nil); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// triedBelow is how much may lie below what is deleted for the deletion to be tried. Trying holds up other changes.
const triedBelow = 1_000

// estimate answers a dry run of a large deletion by the numbers that are kept. done is false where it is to be tried.
func (a *Server) estimate(w http.ResponseWriter, rq *request) (done bool, err error) {
	if rq.Method != http.MethodDelete || rq.Sub != nil {
		return false, nil
	}
	var below int64
	if err := a.Store.View(rq.Context(), func(tx *store.Tx) error {
		row, err := a.Locate(tx, rq.Target, rq.caller)
		if err != nil {
			return err
		}
		if err := checkIfMatch(rq.Request, row); err != nil {
			return err
		}
		below, err = tx.CountBelow(row.ID)
		return err
	}); err != nil || below <= triedBelow {
		return false, err
	}
	body, err := json.Marshal(triedAnswer{DryRun: true, Estimate: true, Tally: store.Tally{Deleted: int(below) + 1},
		Operations: []json.RawMessage{}})
	if err != nil {
		return false, err
	}
	note(w, rq.ignored)
	send(w, rq.Request, http.StatusOK, asJSON, body)
	return true, nil
}
