package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
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
	Tag   string `json:"tag"`
	Prune bool   `json:"prune"`
	// Skip leaves out resources that are refused, and applies the others.
	Skip      bool              `json:"skip"`
	Resources []json.RawMessage `json:"resources"`
}

// appliedResource is what came of one of them.
type appliedResource struct {
	// Did is CREATED, CHANGED, UNCHANGED, DELETED or, of a resource that has the tag and stays because others were refused, ABSENT.
	Did  string `json:"did"`
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Key is what people name it by; Path where it is.
	Key     string                 `json:"key"`
	Path    string                 `json:"path"`
	Changes []resource.FieldChange `json:"changes,omitempty"`
	Notes   []string               `json:"notes,omitempty"`
	// Once are secrets of it that no other answer shows, by their fields.
	Once map[string]string `json:"once,omitempty"`
}

// refusedResource is a resource that was skipped: its place in the list, and why.
type refusedResource struct {
	Index   int      `json:"index"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Fields  []string `json:"fields,omitempty"`
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
	// Refused are those that were skipped.
	Refused []refusedResource `json:"refused,omitempty"`
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
		case "skip":
			into = &q.Skip
		case "resources":
			into = &q.Resources
		default:
			return q, problem.Invalid(name, "there is no such member; there are into, defaults, action, tag, prune, skip and resources")
		}
		if json.Unmarshal(raw, into) != nil {
			return q, problem.Invalid(name, "is not of the kind that is expected")
		}
	}
	for name := range q.Defaults {
		if !slices.ContainsFunc(a.AllTypes(), func(t *schema.Type) bool { return t.ByName[name] != nil }) {
			return q, problem.Invalid("defaults."+name, "no resource has such a field")
		}
	}
	switch {
	case rq.members["resources"] == nil:
		return q, problem.Missing("resources")
	case q.Resources == nil: // nothing is not an empty list: with prune that takes everything away
		return q, problem.Invalid("resources", "must be a list")
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
	again := &applyAgain{broken: map[int]*problem.Problem{}, until: time.Now().Add(applyAgainTime)}
	err = a.WithOutside(r.Context(), maxBatchProbes,
		"%d addresses were asked whether they answer, and more would have to be: apply fewer at once",
		func(o resource.Outside) error {
			rq.outside = o
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
		if (a.CollectionOf(t).Secret || showsOnce(t)) && rq.key != "" { // nothing of a body with secrets is remembered
			return nil, nil, problem.BadRequest("InvalidHeaderValue", "Idempotency-Key: is not for a %s, which has secrets", t.Name)
		}
		all = append(all, members)
	}
	return all, prepared, problem.Join(faults)
}

func resourceAt(i int) string { return fmt.Sprintf("resources[%d]", i) }

// applyIn applies in a transaction.
func (a *Server) applyIn(tx *store.Tx, rq *request, q *applyRequest, all []map[string]json.RawMessage, prepared map[int]any,
	again *applyAgain) (ans answer, err error) {
	if len(all) > 1 || q.Prune { // one alone says itself what it is
		text := fmt.Sprintf("Applied %d resources", len(all))
		if q.Prune {
			text += ", and deleted what else has the tag " + strings.TrimPrefix(q.Tag, "tags/")
		}
		tx.Describe("APPLY", text)
	}
	into, err := a.Apply(a.changeOf(tx, rq, nil, nil), resource.Applying{Base: q.Into, Action: q.Action, Nothing: true})
	if err != nil && !(problem.IsNotFound(err) && len(all) > 0) { // which one of them may make
		return ans, a.Conceal(tx, rq.caller, nil, err)
	}
	tag, err := a.Tagged(tx, rq.caller, q.Tag)
	if err != nil {
		return ans, err
	}
	d := &applying{Server: a, base: into.Base, again: again, absent: map[int]bool{}, tx: tx, rq: rq,
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
		if len(answer.Refused) > 0 || again.keeps {
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
	return ans, a.keep(tx, rq, ans)
}

// changeOf is the change of the transaction for one resource.
func (a *Server) changeOf(tx *store.Tx, rq *request, members map[string]json.RawMessage, prepared any) *resource.Change {
	return &resource.Change{Tx: tx, API: a.API, Caller: rq.caller, Sent: members, Probed: rq.outside.Probed, Made: rq.outside.Made,
		Prepared: prepared, Options: rq.options, Extra: map[string]string{}}
}

// applying applies the resources of a document.
type applying struct {
	*Server
	tx       *store.Tx
	rq       *request
	q        *applyRequest
	all      []map[string]json.RawMessage
	prepared map[int]any
	tag      *store.Resource
	// kept are the resources that the document is about, results what came of each.
	kept    map[int64]bool
	results []appliedResource
	// refusals are why resources were refused, by their places; absent are those of them that are not there.
	refusals map[int]*problem.Problem
	absent   map[int]bool
	// stay are the resources with the tag that are not in the document, and that others of the document lie in.
	stay map[int64]bool
	// base is what the resources belong below; 0 is all. pruned are those that went, or would if nothing of the document lay in them.
	base   int64
	pruned []appliedResource
	again  *applyAgain
	until  time.Time
}

// prunes reports whether what has the tag, and is not in the document, goes.
func (d *applying) prunes() bool { return d.q.Prune && !d.again.keeps }

const (
	// applyPasses is how often what is refused is tried again behind the others, by turns from the end and from the beginning: a chain in
	// either order takes two.
	applyPasses = 8
	// applyTime is how long all of it may take: other changes wait meanwhile.
	applyTime = 20 * time.Second
)

// run deletes the resources that an earlier transaction has found to occupy a place of the document, and applies the document.
func (d *applying) run() error {
	if d.prunes() {
		err := d.removeFirst()
		if _, refused := problem.As(err); refused && d.q.Skip {
			d.again.keeps = true
			return errApplyAgain
		}
		if err != nil {
			return d.Conceal(d.tx, d.rq.caller, nil, err)
		}
	}
	if err := d.passes(); err != nil {
		return err
	}
	return d.settle()
}

// settle returns errApplyAgain in two cases. A resource was refused half done, and the refusal names a tagged resource that is not in the
// document: that resource is deleted first then. Or resources were deleted and another one is refused: nothing is deleted then.
func (d *applying) settle() error {
	if !d.prunes() || len(d.refusals) == 0 {
		return nil
	}
	before := len(d.again.first)
	for i, fault := range d.again.broken {
		for _, id := range fault.Named {
			if d.kept[id] || slices.Contains(d.again.first, id) {
				continue
			}
			tags, err := d.tx.Links(id, "tags")
			if err != nil {
				return err
			}
			if slices.Contains(tags, d.tag.ID) {
				d.again.first = append(d.again.first, id)
				delete(d.again.broken, i)
			}
		}
	}
	if len(d.again.first) > before {
		return errApplyAgain
	}
	if slices.ContainsFunc(d.pruned, func(one appliedResource) bool { return one.Did == "DELETED" }) {
		d.again.keeps = true
		return errApplyAgain
	}
	return nil
}

// passes applies all resources. Their order does not matter: those that are refused because of what there is not yet are tried again when
// the others are done, as long as that leads to anything; then the faults of all are named.
func (d *applying) passes() error {
	pending := make([]int, len(d.all))
	for i := range pending {
		pending[i] = i
	}
	for range applyPasses {
		again, faults, err := d.pass(pending)
		if err != nil || len(again) == 0 {
			return err
		}
		if len(again) == len(pending) {
			return d.refuse(again, faults)
		}
		slices.Reverse(again)
		pending = again
	}
	again, faults, err := d.pass(pending)
	if err != nil || len(again) == 0 {
		return err
	}
	return d.refuse(again, faults)
}

// refuse gives the faults as an error, or nothing where resources with faults are skipped. What is to go may be in the way of what is not
// there: it goes first then.
func (d *applying) refuse(again []int, faults []*problem.Problem) error {
	onlyCreates := d.prunes() && len(again) == len(d.refusals) && !slices.ContainsFunc(again, func(i int) bool { return !d.absent[i] })
	if onlyCreates {
		if err := d.prune(); err != nil {
			return d.Conceal(d.tx, d.rq.caller, nil, err)
		}
		if len(d.pruned) > 0 {
			var err error
			if again, faults, err = d.pass(again); err != nil {
				return err
			}
		}
		if first := d.occupying(again); len(first) > 0 {
			for _, one := range d.pruned {
				if one.Did == "DELETED" && !slices.Contains(d.again.first, one.ID) {
					first = append(first, one.ID)
				}
			}
			d.again.first = append(d.again.first, first...)
			return errApplyAgain
		}
	}
	switch {
	case len(again) == 0:
		return nil
	case !d.q.Skip:
		return problem.Join(faults)
	case len(d.pruned) > 0: // nothing goes where a resource was refused
		d.again.keeps = true
		return errApplyAgain
	}
	return nil
}

// pass tries the resources with these numbers once. again are those that were refused, faults the first reasons.
func (d *applying) pass(pending []int) (again []int, faults []*problem.Problem, err error) {
	for _, i := range pending {
		if err := d.rq.Context().Err(); err != nil {
			return nil, nil, err
		}
		if fault := d.again.broken[i]; fault != nil {
			d.refusals[i] = fault
			continue
		}
		if time.Now().After(d.until) {
			return nil, nil, problem.BadRequest("RequestTooLarge", "this takes longer than %v, and others wait: apply fewer at once, in the "+
				"order in which they need each other", applyTime)
		}
		before := d.tx.Writes()
		err := d.one(i)
		if err == nil {
			delete(d.refusals, i)
			continue
		}
		fault, ok := problem.As(placed(resourceAt(i), err))
		if !ok {
			return nil, nil, placed(resourceAt(i), err)
		}
		again, d.refusals[i] = append(again, i), fault
		if len(faults) < maxFaults {
			faults = append(faults, fault)
		}
		if d.tx.Writes() == before {
			continue
		}
		if !d.q.Skip { // half done: nothing is to be built on that
			return nil, nil, problem.Join(faults)
		}
		d.again.broken[i] = fault
		return nil, nil, errApplyAgain
	}
	return again, faults, nil
}

// one applies the resource with a number.
func (d *applying) one(i int) error {
	members := maps.Clone(d.all[i])
	how := resource.Applying{Base: d.q.Into, Action: d.q.Action, Taken: func(id int64) bool { return d.kept[id] }}
	if raw, ok := members["in"]; ok {
		delete(members, "in")
		var in string
		if json.Unmarshal(raw, &in) != nil {
			return problem.Invalid("in", "is the path of what it belongs below, as a text")
		}
		if how.In = &in; in == "" { // right below the root
			how.Base, how.In = "", nil
		}
	}
	tagged := true
	if raw, ok := members["tag"]; ok {
		delete(members, "tag")
		if json.Unmarshal(raw, &tagged) != nil {
			return problem.Invalid("tag", "is true or false: whether the resource gets the tag of the document")
		}
	}
	done, err := d.Apply(d.changeOf(d.tx, d.rq, members, d.prepared[i]), how)
	d.absent[i] = err != nil && done.Did == "CREATED"
	if store.Duplicate(err) {
		err = wordConflict(err)
	}
	if err != nil {
		return d.Conceal(d.tx, d.rq.caller, members, err)
	}
	if d.kept[done.Row.ID] {
		first := slices.IndexFunc(d.results, func(one appliedResource) bool { return one.ID == done.Row.ID })
		return problem.Conflict("ResourceConflictsWithOther", "this is what resources[%d] is about, too", first)
	}
	one, err := d.appliedRow(done.Did, done.Row)
	if err != nil {
		return err
	}
	one.Changes, one.Notes = done.Changes, done.Said
	if !dryRun(d.rq.Request) { // of which nothing stays
		one.Once = done.Once
	}
	if tagged {
		if err := d.mark(done.Row, &one); err != nil {
			return err
		}
	}
	d.kept[done.Row.ID], d.results[i] = true, one
	return nil
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

// appliedRow words a resource.
func (d *applying) appliedRow(did string, row *store.Resource) (appliedResource, error) {
	c := d.Collection(row.Collection)
	one := appliedResource{Did: did, ID: row.ID, Type: row.Type, Key: c.KeyOf(row),
		Path: fmt.Sprintf("%s/%s/%d", d.Base, row.Collection, row.ID)}
	if c.Inner { // which has no other path
		above, err := d.tx.Head(row.Parent)
		if err != nil {
			return one, err
		}
		one.Path = fmt.Sprintf("%s/%s/%d/%s/%d", d.Base, above.Collection, row.Parent, c.PathBelow(), row.ID)
	}
	return one, nil
}
