package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/plural"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// POST /apply takes a list of resources in their desired state. In one transaction it changes existing resources that differ and creates
// missing ones, or it changes nothing. With a tag it tags all of them; with prune it deletes resources that have the tag and are not in
// the list.

// applyName is the path element of POST /apply.
const applyName = "apply"

// applyRequest is the body of POST /apply.
type applyRequest struct {
	// Into is the path of the resource above, for resources that have no member in.
	Into string `json:"into"`
	// Defaults are members for every resource whose type has them and that does not set them itself, such as the view.
	Defaults map[string]json.RawMessage `json:"defaults"`
	// Action limits the request: CREATE refuses existing resources, UPDATE missing ones. Empty: CREATE_OR_UPDATE.
	Action string `json:"action"`
	// Tag is the path of the tag for the resources, such as tags/north. Prune deletes the resources that have the tag and are not in the
	// list.
	Tag   string `json:"tag"`
	Prune bool   `json:"prune"`
	// Skip omits resources that are refused, and applies the others.
	Skip      bool              `json:"skip"`
	Resources []json.RawMessage `json:"resources"`
}

// appliedResource is the result for one resource.
type appliedResource struct {
	// Did is CREATED, CHANGED, UNCHANGED, DELETED or ABSENT. ABSENT is a resource that has the tag and is not in the list, but was not
	// deleted because other resources were refused.
	Did  string `json:"did"`
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Key is the value of the resource's key field, Path its path.
	Key     string                 `json:"key"`
	Path    string                 `json:"path"`
	Changes []resource.FieldChange `json:"changes,omitempty"`
	Notes   []string               `json:"notes,omitempty"`
	// Once are secrets of the resource that no other answer shows, by field.
	Once map[string]string `json:"once,omitempty"`
}

// refusedResource is a resource that was skipped: its index in the list, and the error.
type refusedResource struct {
	Index   int      `json:"index"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Fields  []string `json:"fields,omitempty"`
}

// appliedAnswer is the answer of POST /apply.
type appliedAnswer struct {
	Created   int `json:"created"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Deleted   int `json:"deleted"`
	// Transaction is the number of the transaction in the history; null if nothing changed.
	Transaction *int64            `json:"transaction"`
	Resources   []appliedResource `json:"resources"`
	// Refused are the skipped resources.
	Refused []refusedResource `json:"refused,omitempty"`
}

// readApply reads the body of POST /apply.
func (a *Server) readApply(w http.ResponseWriter, rq *request) (q applyRequest, err error) {
	if err := CheckContentType(rq.Request, "application/json"); err != nil {
		return q, err
	}
	if rq.members, rq.raw, err = ReadBody(w, rq.Request, batchBody); err != nil {
		return q, err
	}
	for name, raw := range rq.members { // member by member, so that an error names the member
		var into any
		switch name {
		case "into":
			into = &q.Into
		case "defaults":
			into = &q.Defaults
		case "action":
			into = &q.Action
		case "tag":
			into = &q.Tag
		case "prune":
			into = &q.Prune
		case "skip":
			into = &q.Skip
		case "resources":
			into = &q.Resources
		default:
			return q, problem.Invalid(name, "unknown member; use into, defaults, action, tag, prune, skip or resources")
		}
		if json.Unmarshal(raw, into) != nil {
			return q, problem.Invalid(name, "has the wrong JSON type")
		}
	}
	for name := range q.Defaults {
		if !slices.ContainsFunc(a.AllTypes(), func(t *schema.Type) bool { return t.ByName[name] != nil }) {
			return q, problem.Invalid("defaults."+name, "no type has this field")
		}
	}
	switch {
	case rq.members["resources"] == nil:
		return q, problem.Missing("resources")
	case q.Resources == nil: // null is not an empty list, which would delete everything with prune
		return q, problem.Invalid("resources", "must be a list")
	case len(q.Resources) > maxChanges:
		return q, problem.Invalid("resources", "must have at most %d entries", maxChanges)
	case q.Prune && q.Tag == "":
		return q, problem.Invalid("prune", "requires a tag: resources with the tag that are not in the document are deleted")
	}
	return q, nil
}

// apply serves POST /apply.
func (a *Server) apply(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	everything := resource.Target{Root: true, List: true}
	if err := a.allowOnly(w, r, everything, caller, http.MethodPost); err != nil || r.Method == http.MethodOptions {
		return err
	}
	rq := &request{Request: r, caller: caller}
	if err := a.readHead(rq); err != nil {
		return err
	}
	q, err := a.readApply(w, rq)
	if err != nil {
		return err
	}
	members, prepared, err := a.toApply(rq, &q)
	if err != nil {
		return err
	}
	done, err := a.waitForBatch(r.Context(), caller)
	if err != nil {
		return err
	}
	defer done()
	dry := dryRun(r)
	if dry {
		rq.key = ""
	}
	var ans answer
	again := &attempt{broken: map[int]*problem.Problem{}, until: time.Now().Add(applyAgainTime)}
	err = a.RetryWithWork(r.Context(), maxBatchProbes,
		problem.BadRequest("NoSpaceForAddress", "the document requires more than %d probes of addresses; apply fewer resources at once",
			maxBatchProbes),
		func(o resource.Outside) error {
			rq.prefetched = o
			return again.run(func() error {
				return a.change(rq, dry, store.Scope{}, &ans, func(tx *store.Tx) (answer, error) {
					if replay, there, err := a.replay(tx, rq); there || err != nil {
						return replay, err
					}
					return a.applyIn(tx, rq, &q, members, prepared, again)
				})
			})
		})
	done()
	switch {
	case err != nil:
		if _, ok := problem.As(err); ok {
			a.Batched(len(members), "refused")
		}
		return conflictProblem(err)
	case dry:
		a.Batched(len(members), "tried")
	default:
		a.Batched(len(members), "made")
	}
	setRecordedHeader(w, caller, ans)
	send(w, r, http.StatusOK, asJSON, ans.body)
	return nil
}

// toApply decodes the resources, and does the work for them that takes too long for a transaction.
func (a *Server) toApply(rq *request, q *applyRequest) (all []map[string]json.RawMessage, prepared map[int]any, err error) {
	var faults []*problem.Problem
	prepared = map[int]any{}
	for i, raw := range q.Resources {
		members, err := schema.ParseObject(raw, StandardBody.Members)
		var name string
		if err == nil && (members["type"] == nil || json.Unmarshal(members["type"], &name) != nil) {
			err = problem.Missing("type")
		}
		t := a.TypeNamed(name)
		if err == nil && t == nil {
			err = problem.Field("InvalidResourceType", "type", "must be a resource type, not %q", name)
		}
		if err == nil && a.CollectionOf(t).Beforehand != nil {
			if len(prepared) == maxPrepared {
				err = problem.BadRequest("InvalidRequestBody", "at most %d resources of one document can set passwords or other secrets", maxPrepared)
			} else {
				prepared[i], err = a.CollectionOf(t).Beforehand(rq.Context(), a.API, members)
			}
		}
		if fault, ok := problem.As(atPosition(resourceAt(i), err)); ok {
			if faults = append(faults, fault); len(faults) == maxFaults {
				break
			}
			continue
		} else if err != nil {
			return nil, nil, err
		}
		for name, value := range q.Defaults {
			if members[name] == nil && (t.ByName[name] != nil || name == a.CollectionOf(t).PlacedBy) {
				members[name] = value
			}
		}
		if (a.CollectionOf(t).Secret || showsOnce(t)) && rq.key != "" { // a body with secrets is never stored
			return nil, nil, problem.BadRequest("InvalidHeaderValue", "Idempotency-Key: is not accepted for a %s, which has secrets", t.Name)
		}
		all = append(all, members)
	}
	return all, prepared, problem.Join(faults)
}

func resourceAt(i int) string { return fmt.Sprintf("resources[%d]", i) }

// applyIn applies the document in a transaction.
func (a *Server) applyIn(tx *store.Tx, rq *request, q *applyRequest, all []map[string]json.RawMessage, prepared map[int]any,
	again *attempt) (ans answer, err error) {
	if len(all) > 1 || q.Prune { // a single resource has a description of its own
		text := "Applied " + plural.Count(len(all), "resource")
		if q.Prune {
			text += ", and deleted other resources with the tag " + strings.TrimPrefix(q.Tag, "tags/")
		}
		tx.Describe("APPLY", text)
	}
	into, err := a.Apply(a.changeOf(tx, rq, nil, nil), resource.Applying{Base: q.Into, Action: q.Action, CheckOnly: true})
	if err != nil && !(problem.IsNotFound(err) && len(all) > 0) { // one of the resources may create it
		return ans, a.Conceal(tx, rq.caller, nil, err)
	}
	tag, err := a.Tagged(tx, rq.caller, q.Tag)
	if err != nil {
		return ans, err
	}
	d := &applying{Server: a, base: into.Base, attempt: again, absent: map[int]bool{}, tx: tx, rq: rq,
		q: q, all: all, prepared: prepared, tag: tag, kept: map[int64]bool{}, stay: map[int64]bool{},
		results: make([]appliedResource, len(all)), refusals: map[int]*problem.Problem{}, until: time.Now().Add(applyTime)}
	if err := d.run(); err != nil {
		return ans, err
	}
	answer := appliedAnswer{Resources: []appliedResource{}}
	for i, one := range d.results {
		if fault := d.refusals[i]; fault != nil {
			answer.Refused = append(answer.Refused, refusedResource{i, fault.Code, strings.TrimPrefix(fault.Message, resourceAt(i)+": "),
				fault.Fields})
			continue
		}
		answer.add(one)
	}
	if q.Prune { // a refused resource may be one that prune would delete
		prune := d.prune
		if len(answer.Refused) > 0 || again.isPruneDisabled {
			prune = d.listAbsent
		}
		if err := prune(); err != nil {
			return ans, a.Conceal(tx, rq.caller, nil, err)
		}
	}
	for _, one := range d.pruned {
		answer.add(one)
	}
	if tally, err := tx.Tally(); err != nil {
		return ans, err
	} else if tally != (store.Tally{}) {
		number, err := tx.Number()
		if err != nil {
			return ans, err
		}
		answer.Transaction = &number
	}
	if ans.body, err = json.Marshal(answer); err != nil {
		return ans, err
	}
	return ans, a.storeAnswer(tx, rq, ans)
}

// changeOf returns a change in the transaction for one resource.
func (a *Server) changeOf(tx *store.Tx, rq *request, members map[string]json.RawMessage, prepared any) *resource.Change {
	return &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Sent: members, Answers: rq.prefetched.Answers,
		Results: rq.prefetched.Results, Prepared: prepared, Options: rq.options, Extra: map[string]string{}}
}
