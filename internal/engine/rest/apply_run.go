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

// applying is the application of one document in one transaction.
type applying struct {
	*Server
	tx       *store.Tx
	rq       *request
	q        *applyRequest
	all      []map[string]json.RawMessage
	prepared map[int]any
	tag      *store.Resource
	// kept are the ids of the document's resources, results the result for each of them.
	kept    map[int64]bool
	results []appliedResource
	// refusals are the errors of refused resources, by index; absent are the indexes of refused resources that do not exist.
	refusals map[int]*problem.Problem
	absent   map[int]bool
	// stay are the tagged resources that are not in the document, but have resources of the document below them.
	stay map[int64]bool
	// base is the resource above the document's resources; 0 is the whole database. pruned are the deleted resources, and those in stay.
	base    int64
	pruned  []appliedResource
	attempt *attempt
	until   time.Time
}

// mayPrune reports whether tagged resources that are not in the document are deleted.
func (d *applying) mayPrune() bool { return d.q.Prune && !d.attempt.isPruneDisabled }

const (
	// applyPasses is the number of passes over refused resources, alternately from the end and from the start. A chain of dependencies in
	// either order needs two.
	applyPasses = 8
	// applyTime is the time limit for applying the document, because other changes wait meanwhile.
	applyTime = 20 * time.Second
)

// run deletes the resources that an earlier transaction has found to occupy a place of the document, and applies the document.
func (d *applying) run() error {
	if d.mayPrune() {
		err := d.removeFirst()
		if _, refused := problem.As(err); refused && d.q.Skip {
			d.attempt.isPruneDisabled = true
			return errApplyAgain
		}
		if err != nil {
			return d.Conceal(d.tx, d.rq.caller, nil, err)
		}
	}
	if err := d.runPasses(); err != nil {
		return err
	}
	return d.settle()
}

// settle returns errApplyAgain in two cases:
//   - A resource was refused after some of its writes, and the error names a tagged resource that is not in the document. That resource is
//     deleted first in the next attempt.
//   - Resources were deleted, and another one is refused. Nothing is deleted in the next attempt.
func (d *applying) settle() error {
	if !d.mayPrune() || len(d.refusals) == 0 {
		return nil
	}
	before := len(d.attempt.first)
	for i, fault := range d.attempt.broken {
		for _, id := range fault.Named {
			if d.kept[id] || slices.Contains(d.attempt.first, id) {
				continue
			}
			tags, err := d.tx.Links(id, "tags")
			if err != nil {
				return err
			}
			if slices.Contains(tags, d.tag.ID) {
				d.attempt.first = append(d.attempt.first, id)
				delete(d.attempt.broken, i)
			}
		}
	}
	if len(d.attempt.first) > before {
		return errApplyAgain
	}
	if slices.ContainsFunc(d.pruned, func(one appliedResource) bool { return one.Did == "DELETED" }) {
		d.attempt.isPruneDisabled = true
		return errApplyAgain
	}
	return nil
}

// runPasses applies all resources, in any order. Resources that are refused because of missing ones are tried again after the others, as
// long as a pass makes progress. It then returns the errors of all refused resources.
func (d *applying) runPasses() error {
	pending := make([]int, len(d.all))
	for i := range pending {
		pending[i] = i
	}
	for range applyPasses {
		again, faults, err := d.runPass(pending)
		if err != nil || len(again) == 0 {
			return err
		}
		if len(again) == len(pending) {
			return d.refuse(again, faults)
		}
		slices.Reverse(again)
		pending = again
	}
	again, faults, err := d.runPass(pending)
	if err != nil || len(again) == 0 {
		return err
	}
	return d.refuse(again, faults)
}

// refuse returns the errors of the refused resources, or nil if refused resources are skipped. If only missing resources were refused, it
// first deletes the resources to prune, because they may be in the way, and tries again.
func (d *applying) refuse(again []int, faults []*problem.Problem) error {
	onlyCreates := d.mayPrune() && len(again) == len(d.refusals) && !slices.ContainsFunc(again, func(i int) bool { return !d.absent[i] })
	if onlyCreates {
		if err := d.prune(); err != nil {
			return d.Conceal(d.tx, d.rq.caller, nil, err)
		}
		if len(d.pruned) > 0 {
			var err error
			if again, faults, err = d.runPass(again); err != nil {
				return err
			}
		}
		if first := d.occupyingPlaces(again); len(first) > 0 {
			for _, one := range d.pruned {
				if one.Did == "DELETED" && !slices.Contains(d.attempt.first, one.ID) {
					first = append(first, one.ID)
				}
			}
			d.attempt.first = append(d.attempt.first, first...)
			return errApplyAgain
		}
	}
	switch {
	case len(again) == 0:
		return nil
	case !d.q.Skip:
		return problem.Join(faults)
	case len(d.pruned) > 0: // nothing is deleted if a resource was refused
		d.attempt.isPruneDisabled = true
		return errApplyAgain
	}
	return nil
}

// runPass tries the resources with these indexes once. again are the refused ones, faults the first errors.
func (d *applying) runPass(pending []int) (again []int, faults []*problem.Problem, err error) {
	for _, i := range pending {
		if err := d.rq.Context().Err(); err != nil {
			return nil, nil, err
		}
		if fault := d.attempt.broken[i]; fault != nil {
			d.refusals[i] = fault
			continue
		}
		if time.Now().After(d.until) {
			return nil, nil, problem.BadRequest("RequestTooLarge",
				"applying the document took longer than %v; apply fewer resources at once, in the "+
					"order of their dependencies", applyTime)
		}
		before := d.tx.Writes()
		err := d.applyOne(i)
		if err == nil {
			delete(d.refusals, i)
			continue
		}
		fault, ok := problem.As(atPosition(resourceAt(i), err))
		if !ok {
			return nil, nil, atPosition(resourceAt(i), err)
		}
		again, d.refusals[i] = append(again, i), fault
		if len(faults) < maxFaults {
			faults = append(faults, fault)
		}
		if d.tx.Writes() == before {
			continue
		}
		if !d.q.Skip { // written in part: later resources must not build on it
			return nil, nil, problem.Join(faults)
		}
		d.attempt.broken[i] = fault
		return nil, nil, errApplyAgain
	}
	return again, faults, nil
}

// applyOne applies the resource with this index.
func (d *applying) applyOne(i int) error {
	members := maps.Clone(d.all[i])
	how := resource.Applying{Base: d.q.Into, Action: d.q.Action, IsMatched: func(id int64) bool { return d.kept[id] }}
	if raw, ok := members["in"]; ok {
		delete(members, "in")
		var in string
		if json.Unmarshal(raw, &in) != nil {
			return problem.Invalid("in", "must be a string: the path of the resource above it")
		}
		if how.In = &in; in == "" { // directly below the root
			how.Base, how.In = "", nil
		}
	}
	tagged := true
	if raw, ok := members["tag"]; ok {
		delete(members, "tag")
		if json.Unmarshal(raw, &tagged) != nil {
			return problem.Invalid("tag", "must be true or false: true adds the tag of the document")
		}
	}
	done, err := d.Apply(d.changeOf(d.tx, d.rq, members, d.prepared[i]), how)
	d.absent[i] = err != nil && done.Did == "CREATED"
	if store.Duplicate(err) {
		err = conflictProblem(err)
	}
	if err != nil {
		return d.Conceal(d.tx, d.rq.caller, members, err)
	}
	if d.kept[done.Row.ID] {
		first := slices.IndexFunc(d.results, func(one appliedResource) bool { return one.ID == done.Row.ID })
		return problem.Conflict("ResourceConflictsWithOther", "resources[%d] already describes this resource", first)
	}
	one, err := d.appliedRow(done.Did, done.Row)
	if err != nil {
		return err
	}
	one.Changes, one.Notes = done.Changes, done.Notes
	if !dryRun(d.rq.Request) { // the secrets of a dry run do not exist
		one.Once = done.Once
	}
	if tagged {
		if err := d.addTag(done.Row, &one); err != nil {
			return err
		}
	}
	d.kept[done.Row.ID], d.results[i] = true, one
	return nil
}

// add adds the result for one resource.
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

// appliedRow returns the result for a row.
func (d *applying) appliedRow(did string, row *store.Resource) (appliedResource, error) {
	c := d.Collection(row.Collection)
	one := appliedResource{Did: did, ID: row.ID, Type: row.Type, Key: c.KeyOf(row),
		Path: fmt.Sprintf("%s/%s/%d", d.Base, row.Collection, row.ID)}
	if c.Inner { // the resource has no other path
		above, err := d.tx.Head(row.Parent)
		if err != nil {
			return one, err
		}
		one.Path = fmt.Sprintf("%s/%s/%d/%s/%d", d.Base, above.Collection, row.Parent, c.PathBelow(), row.ID)
	}
	return one, nil
}
