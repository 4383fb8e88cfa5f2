package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

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
