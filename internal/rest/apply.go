package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// What is applied is a list of resources as they are to be: those that are there otherwise are changed, those that are not there are
// made, in one transaction, all of them or none. With a tag they are marked, and with prune what has the tag and is not among them goes.

// applyName is the name of what takes them, below the API's path.
const applyName = "apply"

// applyRequest is the body.
type applyRequest struct {
	// Into is what they belong below, unless they say so themselves (in).
	Into string `json:"into"`
	// Defaults are members of every resource whose type has them and that does not say otherwise, such as the view.
	Defaults map[string]json.RawMessage `json:"defaults"`
	// Action leaves it at one: CREATE refuses what is there, UPDATE what is not. Empty: CREATE_OR_UPDATE.
	Action string `json:"action"`
	// Tag is the tag that they get, by its path, such as tags/north. Prune takes away what has it and is not among them.
	Tag       string            `json:"tag"`
	Prune     bool              `json:"prune"`
	Resources []json.RawMessage `json:"resources"`
}

// appliedResource is what came of one of them.
type appliedResource struct {
	// Did is CREATED, CHANGED, UNCHANGED or DELETED.
	Did  string `json:"did"`
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Key is what people name it by; Path where it is.
	Key     string                 `json:"key"`
	Path    string                 `json:"path"`
	Changes []resource.FieldChange `json:"changes,omitempty"`
	Notes   []string               `json:"notes,omitempty"`
}

// appliedAnswer is the answer.
type appliedAnswer struct {
	Created   int `json:"created"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Deleted   int `json:"deleted"`
	// Transaction is its number in the history; null where nothing changed.
	Transaction *int64            `json:"transaction"`
	Resources   []appliedResource `json:"resources"`
}

// readApply reads the body.
func (a *Server) readApply(w http.ResponseWriter, rq *request) (q applyRequest, err error) {
	if err := CheckContentType(rq.Request, "application/json"); err != nil {
		return q, err
	}
	if rq.members, rq.raw, err = ReadBody(w, rq.Request, batchBody); err != nil {
		return q, err
	}
	for name, raw := range rq.members { // one by one, so that a refusal names its field
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
		case "resources":
			into = &q.Resources
		default:
			return q, problem.Invalid(name, "there is no such member; there are into, defaults, action, tag, prune and resources")
		}
		if json.Unmarshal(raw, into) != nil {
			return q, problem.Invalid(name, "is not of the kind that is expected")
		}
	}
	switch {
	case rq.members["resources"] == nil:
		return q, problem.Missing("resources")
	case len(q.Resources) > maxChanges:
		return q, problem.Invalid("resources", "at most %d are applied at once", maxChanges)
	case q.Prune && q.Tag == "":
		return q, problem.Invalid("prune", "goes with a tag: what has it, and is not among the resources, goes")
	}
	return q, nil
}

// apply answers POST of resources as they are to be.
func (a *Server) apply(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	everything := resource.Target{Root: true, List: true}
	if err := a.only(w, r, everything, caller, http.MethodPost); err != nil || r.Method == http.MethodOptions {
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
	done, err := a.takeBatch(r.Context(), caller)
	if err != nil {
		return err
	}
	defer done()
	dry := dryRun(r)
	if dry {
		rq.key = ""
	}
	var ans answer
	err = a.WithOutside(r.Context(), maxBatchProbes,
		"%d addresses were asked whether they answer, and more would have to be: apply fewer at once",
		func(o resource.Outside) error {
			rq.outside = o
			return a.change(rq, dry, store.Scope{}, &ans, func(tx *store.Tx) (answer, error) {
				if replay, there, err := a.replay(tx, rq); there || err != nil {
					return replay, err
				}
				return a.applyIn(tx, rq, &q, members, prepared)
			})
		})
	done()
	switch {
	case err != nil:
		if _, ok := problem.As(err); ok {
			a.Batched(len(members), "refused")
		}
		return wordConflict(err)
	case dry:
		a.Batched(len(members), "tried")
	default:
		a.Batched(len(members), "made")
	}
	tellRecorded(w, caller, ans)
	send(w, r, http.StatusOK, asJSON, ans.body)
	return nil
}

// toApply reads the resources, and does for them what takes too long for a transaction.
func (a *Server) toApply(rq *request, q *applyRequest) (all []map[string]json.RawMessage, prepared map[int]any, err error) {
	var faults []*problem.Problem
	prepared = map[int]any{}
	for i, raw := range q.Resources {
		members, err := schema.ParseObject(raw, AnyBody.Members)
		var name string
		if err == nil && (members["type"] == nil || json.Unmarshal(members["type"], &name) != nil) {
			err = problem.Missing("type")
		}
		t := a.TypeNamed(name)
		if err == nil && t == nil {
			err = problem.Field("InvalidResourceType", "type", "there is no type %q", name)
		}
		if err == nil && a.CollectionOf(t).Beforehand != nil {
			if len(prepared) == maxPrepared {
				err = problem.BadRequest("InvalidRequestBody", "at most %d resources at once may set passwords, or the like", maxPrepared)
			} else {
				prepared[i], err = a.CollectionOf(t).Beforehand(rq.Context(), a.API, members)
			}
		}
		if fault, ok := problem.As(placed(resourceAt(i), err)); ok {
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
		if a.CollectionOf(t).Secret {
			rq.key = "" // nothing of a body with secrets is remembered
		}
		all = append(all, members)
	}
	return all, prepared, problem.Join(faults)
}

func resourceAt(i int) string { return fmt.Sprintf("resources[%d]", i) }

// applyIn applies in a transaction.
func (a *Server) applyIn(tx *store.Tx, rq *request, q *applyRequest, all []map[string]json.RawMessage, prepared map[int]any) (ans answer,
	err error) {
	if len(all) > 1 || q.Prune { // one alone says itself what it is
		tx.Describe("APPLY", fmt.Sprintf("Applied %d resources", len(all)))
	}
	tag, err := a.tagOf(tx, rq, q.Tag)
	if err != nil {
		return ans, err
	}
	results, kept, err := a.applyAll(tx, rq, q, all, prepared, tag)
	if err != nil {
		return ans, err
	}
	answer := appliedAnswer{Resources: []appliedResource{}}
	for _, one := range results {
		answer.add(one)
	}
	if q.Prune {
		if err := a.prune(tx, rq, tag, kept, &answer); err != nil {
			return ans, err
		}
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
	return ans, a.keep(tx, rq, ans)
}

// applyAll applies all resources, and gives what came of each, and which there are. Their order does not matter: those that are refused are
// tried again when the others are done, as long as that leads to anything; then the faults of all are named.
func (a *Server) applyAll(tx *store.Tx, rq *request, q *applyRequest, all []map[string]json.RawMessage, prepared map[int]any,
	tag *store.Resource) (results []appliedResource, kept map[int64]bool, err error) {
	results, kept = make([]appliedResource, len(all)), map[int64]bool{}
	pending := make([]int, len(all))
	for i := range pending {
		pending[i] = i
	}
	for len(pending) > 0 {
		var again []int
		var faults []*problem.Problem
		for _, i := range pending {
			if err := rq.Context().Err(); err != nil {
				return nil, nil, err
			}
			before := tx.Writes()
			one, row, err := a.applyOne(tx, rq, q, maps.Clone(all[i]), prepared[i])
			if err == nil && row != nil && kept[row.ID] {
				err = problem.Conflict("ResourceConflictsWithOther", "this is resource %d, as another one before it", row.ID)
			}
			if store.Duplicate(err) {
				err = wordConflict(err)
			}
			if err == nil && row != nil {
				kept[row.ID] = true
				err = a.mark(tx, rq, row, tag)
			}
			if err == nil {
				results[i] = one
				continue
			}
			fault, ok := problem.As(placed(resourceAt(i), err))
			if !ok {
				return nil, nil, placed(resourceAt(i), err)
			}
			again = append(again, i)
			if len(faults) < maxFaults {
				faults = append(faults, fault)
			}
			if tx.Writes() != before { // half done: nothing is to be built on that
				return nil, nil, problem.Join(faults)
			}
		}
		if len(again) == len(pending) {
			return nil, nil, problem.Join(faults)
		}
		pending = again
	}
	return results, kept, nil
}

// add adds what came of one.
func (x *appliedAnswer) add(one appliedResource) {
	switch one.Did {
	case "CREATED":
		x.Created++
	case "CHANGED":
		x.Changed++
	case "UNCHANGED":
		x.Unchanged++
	case "DELETED":
		x.Deleted++
	}
	x.Resources = append(x.Resources, one)
}

// applyOne applies one resource, as the members say.
func (a *Server) applyOne(tx *store.Tx, rq *request, q *applyRequest, members map[string]json.RawMessage, prepared any) (
	one appliedResource, row *store.Resource, err error) {
	into := q.Into
	if raw, ok := members["in"]; ok {
		delete(members, "in")
		if json.Unmarshal(raw, &into) != nil {
			return one, nil, problem.Invalid("in", "is the path of what it belongs below, as a text")
		}
	}
	c := &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Sent: members, Probed: rq.outside.Probed, Made: rq.outside.Made,
		Prepared: prepared, Options: rq.options, Extra: map[string]string{}}
	done, err := a.Apply(c, into, q.Action)
	if err != nil {
		return one, nil, a.Conceal(tx, rq.caller, members, err)
	}
	one = a.appliedRow(done.Did, done.Row)
	one.Changes, one.Notes = done.Changes, done.Said
	return one, done.Row, nil
}

// appliedRow words a resource.
func (a *Server) appliedRow(did string, row *store.Resource) appliedResource {
	c := a.Collection(row.Collection)
	one := appliedResource{Did: did, ID: row.ID, Type: row.Type, Key: row.Name, Path: fmt.Sprintf("%s/%s/%d", a.Base, row.Collection, row.ID)}
	if field := c.KeyField(); field != "name" {
		var members map[string]json.RawMessage
		var text string
		if json.Unmarshal(row.Body, &members) == nil && json.Unmarshal(members[field], &text) == nil {
			one.Key = text
		}
	}
	return one
}

// tagOf gives the tag that a path names; nil where none is.
func (a *Server) tagOf(tx *store.Tx, rq *request, path string) (*store.Resource, error) {
	if path == "" {
		return nil, nil
	}
	key := path
	if len(path) > 5 && path[:5] == "tags/" {
		key = path[5:]
	}
	return a.Named(tx, rq.caller, "tag", a.Collection("tags"), key, 0)
}

// mark gives a resource the tag, where it has it not.
func (a *Server) mark(tx *store.Tx, rq *request, row, tag *store.Resource) error {
	if tag == nil {
		return nil
	}
	targets, err := tx.Links(row.ID, "tags")
	if err != nil || slices.Contains(targets, tag.ID) {
		return err
	}
	c := a.Collection(row.Collection)
	at := resource.Target{Collection: c, ID: row.ID, Sub: c.Sub("tags"), List: true}
	if at.Sub == nil {
		return problem.Invalid("tag", "a %s has no tags", row.Type)
	}
	id, err := json.Marshal(tag.ID)
	if err != nil {
		return err
	}
	_, err = a.Link(&resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Sent: map[string]json.RawMessage{"id": id},
		Extra: map[string]string{}}, at)
	return err
}

// prune deletes what has the tag and is not among what was applied.
func (a *Server) prune(tx *store.Tx, rq *request, tag *store.Resource, kept map[int64]bool, answer *appliedAnswer) error {
	sources, err := tx.Referring(tag.ID)
	if err != nil {
		return err
	}
	c := &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Extra: map[string]string{}}
	for _, link := range sources {
		if link.Field != "tags" || kept[link.Target] {
			continue
		}
		row, err := a.Visible(tx, link.Target, rq.caller)
		if problem.IsNotFound(err) { // gone with what it lay in, or not for who asks to see
			continue
		}
		if err != nil {
			return err
		}
		if err := a.refusesChange(rq, row); err != nil {
			return err
		}
		one := a.appliedRow("DELETED", row)
		if err := c.Delete(row); err != nil {
			if p, ok := problem.As(err); ok {
				p.Message = fmt.Sprintf("%s %s, which is not among what is applied, cannot go: %s", row.Type, one.Key, p.Message)
			}
			return err
		}
		answer.add(one)
	}
	return nil
}

// refusesChange asks whether the caller may delete a resource.
func (a *Server) refusesChange(rq *request, row *store.Resource) error {
	if a.May == nil {
		return nil
	}
	_, err := a.May(rq.caller, resource.ActionDelete, resource.Subject{Collection: a.Collection(row.Collection), ID: row.ID})
	return err
}

// applyPath documents it.
func (a *Server) applyPath() doc {
	text := doc{"type": "string"}
	change := doc{"type": "object", "properties": doc{"field": text, "before": doc{}, "after": doc{}}}
	one := doc{"type": "object", "required": []string{"did", "id", "type", "key", "path"}, "properties": doc{
		"did": doc{"type": "string", "enum": []string{"CREATED", "CHANGED", "UNCHANGED", "DELETED"}}, "id": doc{"type": "integer"}, "type": text,
		"key": text, "path": text, "changes": doc{"type": "array", "items": change}, "notes": doc{"type": "array", "items": text}}}
	number := doc{"type": "integer"}
	answer := doc{"type": "object", "required": []string{"created", "changed", "unchanged", "deleted", "resources"}, "properties": doc{
		"created": number, "changed": number, "unchanged": number, "deleted": number,
		"transaction": doc{"type": []string{"integer", "null"}}, "resources": doc{"type": "array", "items": one}}}
	answers := doc{"200": dryRunAnswer(doc{"description": "All are as they were sent.",
		"content": doc{asJSON.String(): doc{"schema": answer}}})}
	for _, status := range append(slices.Clone(anyAnswer), "409", "413", "415") {
		answers[status] = ref("responses/" + status)
	}
	var params []any
	for _, name := range ofBatches {
		params = append(params, ref("parameters/"+name))
	}
	return doc{"post": doc{"operationId": "post-apply", "tags": []string{"Everything"}, "summary": "Let resources be as they are sent",
		"description": "Those that are there otherwise are changed, those that are not there are made, in one transaction, all or none. " +
			"They are found by their place and name, not by number; references may be texts. With prune what has the tag and is not sent " +
			"goes. Ours.",
		"requestBody": body(doc{"type": "object", "required": []string{"resources"}, "additionalProperties": false, "properties": doc{
			"into":     doc{"type": "string", "description": "What they belong below, such as configurations/main."},
			"defaults": doc{"type": "object", "description": "Members of each whose type has them, such as the view."},
			"action": doc{"type": "string", "enum": []string{"CREATE_OR_UPDATE", "CREATE", "UPDATE"},
				"description": "CREATE refuses what is there, UPDATE what is not; CREATE_OR_UPDATE where it is left out."},
			"tag":   doc{"type": "string", "description": "A tag that each gets, such as tags/north."},
			"prune": doc{"type": "boolean", "description": "Whether what has the tag and is not sent goes."},
			"resources": doc{"type": "array", "maxItems": maxChanges, "items": doc{"type": "object", "required": []string{"type"},
				"description": "A resource; in is what it belongs below, where its place does not follow."}}}},
			doc{"into": "configurations/main", "resources": []any{doc{"type": "IPv4Block", "range": "10.0.0.0/8", "name": "Harbour"}}},
			asJSON.String()),
		"parameters": params, "responses": answers}}
}
