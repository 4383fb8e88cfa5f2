package rest

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// dryRun reports whether a change is a dry run. The value of the header was checked before (readOptions).
func dryRun(r *http.Request) bool { return strings.EqualFold(r.Header.Get(dryRunHeader), "true") }

// operationsName is the subcollection of a transaction that lists its changes.
const operationsName = "operations"

// shownOperations is the maximum number of changes in the answer to a dry run; the counts cover all changes.
const shownOperations = 100

// triedAnswer is the answer to a dry run.
type triedAnswer struct {
	DryRun bool `json:"dryRun"`
	// Estimate says that the change was not tried, or not completely. The counts are then estimates from stored numbers or, with AtLeast,
	// the counts up to the point where the trial was stopped.
	Estimate bool `json:"estimate,omitempty"`
	AtLeast  bool `json:"atLeast,omitempty"`
	// Approval reports that the change needs an approval: without a dry run it creates a workflow request (202).
	Approval bool `json:"approval,omitempty"`
	// Irreversible reports that an undo of the change is refused (API.RefusesUndo).
	Irreversible bool            `json:"irreversible,omitempty"`
	Resource     json.RawMessage `json:"resource"`
	store.Tally
	// Operations are the first changes; null if the caller may not see the exact changes in the history.
	Operations []json.RawMessage `json:"operations"`
}

// change runs a change in a transaction. In a dry run it rolls the transaction back, and the body of the answer is the result.
func (a *Server) change(rq *request, dry bool, scope store.Scope, ans *answer, do func(tx *store.Tx) (answer, error)) error {
	perform := func(tx *store.Tx) (answer, error) {
		if a.Demand != nil && !dry {
			name := "" // a batch, which may change any collection
			if rq.Collection != nil {
				name = rq.Collection.Name
			}
			if err := a.Demand.Ask(tx, a.API, name, rq.author.Comment); err != nil {
				return answer{}, err
			}
		}
		return do(tx)
	}
	if !dry {
		return a.Store.UpdateIn(rq.Context(), scope, rq.author, func(tx *store.Tx) (err error) {
			*ans, err = perform(tx)
			ans.recorded = tx.Recorded()
			return err
		})
	}
	var tried triedAnswer
	var touched map[int64]string
	if err := a.Store.Try(rq.Context(), scope, rq.author, func(tx *store.Tx) (err error) {
		*ans, err = perform(tx)
		ended := errors.Is(err, store.ErrTrialEnded)
		if err != nil && !ended {
			return err
		}
		tx.EndTrial()
		if err := tx.CheckFollowers(); err != nil {
			return err
		}
		tried = triedAnswer{DryRun: true, Estimate: ended, AtLeast: ended, Resource: ans.body, Approval: tx.NeededApproval(),
			Irreversible: a.isIrreversible(rq.Target)}
		if tried.Tally, err = tx.Tally(); err != nil {
			return err
		}
		if !ended {
			if tried.Irreversible, err = a.refusesUndo(tx); err != nil {
				return err
			}
		}
		if rq.caller.Limited() && tried.Tally != (store.Tally{}) {
			if touched, err = tx.Touched(); err != nil {
				return err
			}
		}
		tried.Operations, err = a.operations(tx, rq, tried.Tally)
		return err
	}); err != nil {
		return err
	}
	err := a.countVisible(rq, &tried.Tally, touched)
	if err == nil {
		ans.body, err = json.Marshal(tried)
	}
	return err
}

// refusesUndo reports whether an undo of the tried changes is refused. It is false without changes in the history, as of a deployment.
func (a *Server) refusesUndo(tx *store.Tx) (bool, error) {
	number, err := tx.Number()
	if err != nil {
		return false, err
	}
	changes, err := tx.Changes(number)
	if err != nil || len(changes) == 0 {
		return false, err
	}
	return a.RefusesUndo(changes)
}

// isIrreversible reports whether an undo of a deletion that is too large to try is refused, by the collection of the deleted resource.
func (a *Server) isIrreversible(t resource.Target) bool {
	return t.Collection != nil && t.Collection.From == store.Resources && t.Collection.Act == nil && !t.Collection.IsUndoable()
}

// countVisible removes the resources that a limited caller does not see from the counts of a dry run. Created resources are always the
// caller's.
func (a *Server) countVisible(rq *request, tally *store.Tally, touched map[int64]string) error {
	if touched == nil {
		return nil
	}
	return a.Store.View(rq.Context(), func(tx *store.Tx) error {
		heads := map[int64]store.Head{}
		if err := tx.Heads(slices.Sorted(maps.Keys(touched)), heads); err != nil {
			return err
		}
		seen, err := a.Sees(tx, slices.Collect(maps.Values(heads)), rq.caller)
		if err != nil {
			return err
		}
		tally.Changed, tally.Deleted = 0, 0
		for id, operation := range touched {
			switch {
			case !seen[id]:
			case operation == "UPDATE":
				tally.Changed++
			case operation == "DELETE":
				tally.Deleted++
			}
		}
		return nil
	})
}

// operations returns the first changes of the transaction, as its subcollection would show them.
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
			return nil, nil //nolint:nilerr // callers that may not see them get only the counts
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
	rd := a.renderer(tx, rq.media, rq.caller)
	if err := rd.prepare(rows); err != nil {
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

// estimate answers the dry run of a large change with stored counts. done is false if the change has to be tried.
func (a *Server) estimate(w http.ResponseWriter, rq *request) (done bool, err error) {
	made := rq.Collection
	if rq.Sub != nil {
		made = a.Collection(rq.Sub.Items[0])
	}
	if rq.Method != http.MethodPost && (rq.Method != http.MethodDelete || rq.Sub != nil) ||
		rq.Method == http.MethodPost && (made == nil || made.Estimate == nil) {
		return false, nil
	}
	limited := rq.caller.Rights != nil && !rq.caller.Administrator
	if limited && rq.Method == http.MethodPost { // the rights are checked when it is tried
		return false, nil
	}
	var t store.Tally
	if err := a.Store.View(rq.Context(), func(tx *store.Tx) error {
		if rq.Method == http.MethodPost {
			t, err = made.Estimate(tx, rq.ID, rq.members)
			return err
		}
		row, err := a.Locate(tx, rq.Target, rq.caller)
		if err != nil {
			return err
		}
		if err := checkIfMatch(rq.Request, row); err != nil {
			return err
		}
		n, err := tx.CountBelow(row.ID)
		t.Deleted = int(n) + 1
		return err
	}); err != nil || t.Created+t.Changed+t.Deleted <= store.TrialChanges {
		return false, err
	}
	tried := triedAnswer{DryRun: true, Estimate: true, Irreversible: a.isIrreversible(rq.Target), Tally: t, Operations: []json.RawMessage{}}
	if rq.Method == http.MethodDelete {
		var first store.Tally
		if first, tried.Operations, err = a.firstDeleted(rq); err != nil {
			return false, err
		}
		if limited { // the other resources may be hidden from the caller
			tried.Tally, tried.AtLeast = first, true
		}
	}
	body, err := json.Marshal(tried)
	if err != nil {
		return false, err
	}
	listIgnored(w, rq.ignored)
	send(w, rq.Request, http.StatusOK, asJSON, body)
	return true, nil
}

// firstDeleted returns the first changes of a large deletion; the lowest resources are deleted first.
func (a *Server) firstDeleted(rq *request) (tally store.Tally, list []json.RawMessage, err error) {
	err = a.Store.Try(rq.Context(), store.Scope{}, rq.author, func(tx *store.Tx) error {
		row, err := a.Locate(tx, rq.Target, rq.caller)
		if err != nil {
			return err
		}
		c := &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Options: rq.options, Extra: map[string]string{}}
		if _, err := c.DeleteSome(row, shownOperations); err != nil && !errors.Is(err, store.ErrTrialEnded) {
			return err
		}
		tx.EndTrial()
		if err := tx.CheckFollowers(); err != nil {
			return err
		}
		if tally, err = tx.Tally(); err == nil {
			list, err = a.operations(tx, rq, tally)
		}
		return err
	})
	return tally, list, err
}
