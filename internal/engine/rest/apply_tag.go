package rest

import (
	"encoding/json"
	"fmt"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// addTag adds the tag to a resource that does not have it, within the rights of the caller.
func (d *applying) addTag(row *store.Resource, one *appliedResource) error {
	if d.tag == nil {
		return nil
	}
	marked, err := d.Mark(d.changeOf(d.tx, d.rq, nil, nil), row, d.tag)
	if err != nil || !marked || one.Did == "CREATED" { // the fields of a created resource are not listed
		return err
	}
	name, err := json.Marshal(d.tag.Name)
	one.Did, one.Changes = "CHANGED", append(one.Changes, resource.FieldChange{Field: "tags", After: name})
	return err
}

// checkRight returns an error if the caller lacks the right for an action.
func (d *applying) checkRight(action resource.Action, on resource.Subject) error {
	if d.May == nil {
		return nil
	}
	_, err := d.May(d.rq.caller, action, on)
	return err
}

// parentsOfKept returns the ids of all resources above those of the document.
func (d *applying) parentsOfKept() (map[int64]bool, error) {
	above := map[int64]bool{}
	for id := range d.kept {
		for {
			head, err := d.tx.Head(id)
			if store.IsNotFound(err) { // it was deleted together with another one
				break
			}
			if err != nil {
				return nil, err
			}
			if id = head.Parent; id == 0 || id == resource.RootID || above[id] {
				break
			}
			above[id] = true
		}
	}
	return above, nil
}

// isBelowBase reports whether a resource is below the base of the document.
func (d *applying) isBelowBase(row *store.Resource) (bool, error) {
	if d.base == 0 || row.Configuration == d.base {
		return true, nil
	}
	for id := row.Parent; id != 0 && id != resource.RootID; {
		if id == d.base {
			return true, nil
		}
		head, err := d.tx.Head(id)
		if err != nil {
			return false, err
		}
		id = head.Parent
	}
	return false, nil
}

// prune deletes the resources that have the tag, are below the base of the document, and are not in the document. Resources above those
// of the document stay.
func (d *applying) prune() error {
	above, err := d.parentsOfKept()
	if err != nil {
		return err
	}
	c := d.changeOf(d.tx, d.rq, nil, nil)
	if err := d.eachAbsent(func(row *store.Resource) error {
		one, err := d.appliedRow("DELETED", row)
		if err != nil {
			return err
		}
		if above[row.ID] {
			one.Did = "UNCHANGED"
			one.Notes = append(one.Notes, "has the tag and is not in the document, but stays because it contains resources of the document")
			d.kept[row.ID], d.stay[row.ID] = true, true
			d.pruned = append(d.pruned, one)
			return nil
		}
		return d.remove(c, row, one)
	}); err != nil {
		return err
	}
	return d.checkLost()
}

// listAbsent adds the absent resources to the answer. It is called instead of prune if resources were refused.
func (d *applying) listAbsent() error {
	return d.eachAbsent(func(row *store.Resource) error {
		one, err := d.appliedRow("ABSENT", row)
		d.pruned = append(d.pruned, one)
		return err
	})
}

// eachAbsent calls fn with each resource that has the tag, is below the base of the document, and is not in the document.
func (d *applying) eachAbsent(fn func(row *store.Resource) error) error {
	sources, err := d.tx.Referring(d.tag.ID)
	if err != nil {
		return err
	}
	for _, link := range sources {
		if link.Field != "tags" || d.kept[link.Target] {
			continue
		}
		row, err := d.Visible(d.tx, link.Target, d.rq.caller)
		if problem.IsNotFound(err) { // deleted together with a parent, or hidden from the caller
			continue
		}
		if err != nil {
			return err
		}
		if below, err := d.isBelowBase(row); err != nil || !below {
			if err != nil {
				return err
			}
			continue
		}
		if err := fn(row); err != nil {
			return err
		}
	}
	return nil
}

// checkLost returns errApplyAgain if deletions have deleted resources of the document, such as a host with its last address. The next
// attempt makes the deletions first, and creates these resources again.
func (d *applying) checkLost() error {
	var deletedIDs []int64
	for _, one := range d.pruned {
		if one.Did == "DELETED" && len(one.Notes) > 0 && !slices.Contains(d.attempt.first, one.ID) {
			deletedIDs = append(deletedIDs, one.ID)
		}
	}
	if len(deletedIDs) == 0 {
		return nil
	}
	for id := range d.kept {
		if _, err := d.tx.Head(id); store.IsNotFound(err) {
			d.attempt.first = append(d.attempt.first, deletedIDs...)
			return errApplyAgain
		} else if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a resource that is not in the document, and everything below it.
func (d *applying) remove(c *resource.Change, row *store.Resource, one appliedResource) error {
	if err := d.checkRight(resource.ActionDelete, resource.Subject{Collection: d.Collection(row.Collection), ID: row.ID}); err != nil {
		return err
	}
	before, err := d.tx.Tally()
	if err != nil {
		return err
	}
	unmarked, err := d.ListUnmarked(c, row, d.tag)
	if err != nil {
		return err
	}
	if err := c.Delete(row); err != nil {
		if p, ok := problem.As(err); ok {
			p.Message = fmt.Sprintf("%s %s is not in the document and cannot be deleted: %s", row.Type, one.Key, p.Message)
		}
		return err
	}
	after, err := d.tx.Tally()
	if err != nil {
		return err
	}
	if n := after.Deleted - before.Deleted - 1; n > 0 {
		note := fmt.Sprintf("with %d resources below it or dependent on it", n)
		if unmarked != "" {
			note += ", including resources without the tag: " + unmarked
		}
		one.Notes = append(one.Notes, note)
	}
	d.pruned = append(d.pruned, one)
	return nil
}

// removeFirst deletes the resources that block the document, as an earlier transaction found.
func (d *applying) removeFirst() error {
	for _, id := range d.attempt.first {
		row, err := d.Visible(d.tx, id, d.rq.caller)
		if problem.IsNotFound(err) { // deleted together with a parent
			continue
		}
		if err != nil {
			return err
		}
		tags, err := d.tx.Links(id, "tags")
		if err != nil {
			return err
		}
		if below, err := d.isBelowBase(row); err != nil || !below || !slices.Contains(tags, d.tag.ID) { // changed since
			if err != nil {
				return err
			}
			continue
		}
		one, err := d.appliedRow("DELETED", row)
		if err == nil {
			err = d.remove(d.changeOf(d.tx, d.rq, nil, nil), row, one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// occupyingPlaces returns the ids of the resources that are in stay and that the refusals name: they occupy the range of a resource of the
// document, such as a network that was split.
func (d *applying) occupyingPlaces(refused []int) (all []int64) {
	for _, i := range refused {
		for _, id := range d.refusals[i].Named {
			if d.stay[id] && !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	}
	return all
}
