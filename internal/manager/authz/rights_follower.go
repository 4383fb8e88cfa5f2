package authz

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// rightsFollower checks that all changes of a transaction are within the rights of its author, whichever request caused them. Changes by
// administrators, by the manager itself, and by tokens without a user are not checked.
type rightsFollower struct {
	service *Policy
	tx      *store.Tx
	// rights are the rights of the user when the transaction began; nil if everything is allowed. err is set if they could not be read.
	rights *Rights
	err    error
	// nearest caches the place that governs everything below a resource. It is reset when a resource moves.
	nearest map[int64]int64
	// requester is the follower of the user who requested the approved change; nil if the change was not requested. name is the user whose
	// rights are checked; empty for the author.
	requester *rightsFollower
	name      string
	// deferred are errors for resources that only lose references, by the id of the former target. Such a change is allowed if the target
	// is deleted in the same transaction. removedLinks are links that are deleted; that is allowed if one of their ends is deleted.
	deferred     map[int64]error
	removedLinks []removedLink
}

// removedLink is a deleted link between two resources, with the error if both ends still exist at the end.
type removedLink struct {
	ends    []int64
	refusal error
}

// follow starts to follow a transaction, with the rights from before it.
func (s *Policy) follow(tx *store.Tx) store.Follower {
	f := &rightsFollower{service: s, tx: tx}
	id := tx.Author().User
	if id == 0 {
		return f
	}
	p, err := s.principal(tx, id)
	if store.IsNotFound(err) { // a deleted user has no rights
		f.rights = &Rights{}
		return f
	}
	f.rights, f.err = p.Rights, err
	return f
}

// Changed rejects a change that is not within the rights.
func (f *rightsFollower) Changed(before, after *store.Resource) error {
	if err := f.mayChange(before, after); err != nil {
		return err
	}
	return f.changedWith(before, after)
}

// mayChange rejects a change of a resource that is not within the rights, or that needs an approval.
func (f *rightsFollower) mayChange(before, after *store.Resource) error {
	if f.err != nil {
		return f.err
	}
	r := after
	if r == nil {
		r = before
	}
	if err := f.checkFourEyes(r); err != nil {
		return err
	}
	if requester, err := f.requesterFollower(); err != nil {
		return err
	} else if requester != nil {
		if err := requester.Changed(before, after); err != nil {
			return err
		}
	}
	if f.rights == nil {
		return nil
	}
	api := f.service.api.Load()
	if api == nil || api.Collection(r.Collection) == nil {
		return fmt.Errorf("no access rule for changes of %s", r.Collection)
	}
	switch c := api.Collection(r.Collection); c.Guard {
	case resource.AnyCaller:
		return f.checkPlaced(before, after)
	case resource.Between:
		return f.checkLink(before, after)
	case resource.Managed, resource.Common, resource.Administration, resource.Logs:
		refusal := problem.Forbidden("AccessDenied", "%s may not change %s: only administrators can", f.userName(), c.Name)
		if after == nil && before.Parent > resource.RootID { // allowed if its parent is deleted
			f.removedLinks = append(f.removedLinks, removedLink{[]int64{before.Parent}, refusal})
			return nil
		}
		return f.deferLostReferences(before, after, refusal)
	case resource.Accounts:
		if r.ID != f.rights.user {
			return f.deferLostReferences(before, after, problem.Forbidden("AccessDenied", "%s may not change another user", f.userName()))
		}
	}
	return nil // other collections have their own rules
}

// changedWith rejects a change that also changes resources that refer to this one, if their changes need an approval. An example is a
// reservation or a host that changes with its address.
func (f *rightsFollower) changedWith(before, after *store.Resource) error {
	if before == nil || after == nil || before.Key == after.Key && bytes.Equal(before.Low, after.Low) && bytes.Equal(before.High, after.High) {
		return nil
	}
	if _, approved := f.tx.Approved(); approved {
		return nil
	}
	if asks, err := f.mayNeedApproval(after.Configuration); err != nil || !asks {
		return err
	}
	var referring []*store.Resource
	if err := f.tx.List(store.Query{From: store.Resources, Where: store.LinksTo{Targets: []int64{after.ID}}},
		func(r *store.Resource) error {
			if f.service.workflowOf(r) != "" {
				referring = append(referring, r.Clone())
			}
			return nil
		}); err != nil {
		return err
	}
	for _, r := range referring {
		err := f.checkFourEyes(r)
		if err == nil && f.rights != nil {
			var d decision
			if d, err = f.rights.decide(r.ID, r.Parent, r.Type, f.placeOf); err == nil {
				err = f.checkApproval(r, d, Change)
			}
		}
		if errors.Is(err, resource.ErrApproval) {
			return problem.Forbidden("AccessDenied", "%s %s also changes %s %s, which requires approval: request a change of that resource instead",
				after.Type, problem.Describe(after.ID, labelOf(after)), r.Type, problem.Describe(r.ID, labelOf(r)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayNeedApproval reports whether a change of any resource of a configuration may need an approval.
func (f *rightsFollower) mayNeedApproval(configuration int64) (bool, error) {
	if f.rights != nil {
		for _, p := range f.rights.places {
			if p.recommends {
				return true, nil
			}
		}
	}
	if configuration == 0 {
		return false, nil
	}
	types, err := f.service.fourEyesTypes(f.tx, configuration)
	return len(types) > 0, err
}

// checkPlaced rejects a change of a resource that access rights govern by its place in the tree.
func (f *rightsFollower) checkPlaced(before, after *store.Resource) error {
	switch {
	case before == nil:
		return f.requireLevel(after, after.Parent, Add, "make")
	case after == nil:
		return f.requireLevel(before, before.Parent, Full, "delete")
	}
	if before.Parent != after.Parent {
		if err := f.checkMove(before, after); err != nil {
			return err
		}
	}
	if err := f.requireLevel(after, after.Parent, Change, "change"); err != nil {
		return f.deferLostReferences(before, after, err)
	}
	return f.checkGrowth(before, after)
}

// deferLostReferences returns the error, unless the resource only loses references. Then the error is kept for Refuse. A missing approval
// is always returned, because a protected resource also changes with its references.
func (f *rightsFollower) deferLostReferences(before, after *store.Resource, refusal error) error {
	lost, only := lostReferences(before, after)
	if !only || errors.Is(refusal, resource.ErrApproval) {
		return refusal
	}
	if f.deferred == nil {
		f.deferred = map[int64]error{}
	}
	for _, target := range lost {
		f.deferred[target] = refusal
	}
	return nil
}

// checkLink rejects the creation or deletion of a link if the user may not change the source of the link.
func (f *rightsFollower) checkLink(before, after *store.Resource) error {
	for _, link := range []*store.Resource{before, after} {
		if link == nil {
			continue
		}
		source, err := f.tx.Get(link.Ref("source"))
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = f.requireLevel(source, source.Parent, Change, "change")
		switch {
		case err != nil && after == nil && !errors.Is(err, resource.ErrApproval):
			f.removedLinks = append(f.removedLinks, removedLink{[]int64{link.Ref("source"), link.Ref("destination")}, err})
		case err != nil:
			return err
		}
	}
	return nil
}

// checkMove requires the rights to delete a resource at its old place and to add it at the new one, unless the same right governs both.
func (f *rightsFollower) checkMove(before, after *store.Resource) error {
	from, err := f.placeOf(before.Parent)
	if err != nil {
		return err
	}
	f.nearest = nil // the tree below it has moved
	to, err := f.placeOf(after.Parent)
	if _, own := f.rights.places[after.ID]; err != nil || from == to && !own {
		return err
	}
	if from != to {
		if err := f.requireLevel(before, before.Parent, Full, "move"); err != nil {
			return err
		}
	}
	// A right at the resource itself does not decide about its new place.
	return f.requireAdd(after, to, "move", "where it goes")
}

// checkGrowth requires the right to add a resource at its place if it becomes larger, or if it is renamed and other names depend on its
// name, as with a zone. A right at the resource itself does not decide about that.
func (f *rightsFollower) checkGrowth(before, after *store.Resource) error {
	larger := bytes.Compare(after.Low, before.Low) < 0 || bytes.Compare(after.High, before.High) > 0
	renamed := before.Name != after.Name && before.Key != after.Key
	if f.rights.places[after.ID] == nil || before.Parent != after.Parent || !larger && !renamed {
		return nil
	}
	at, err := f.placeOf(after.Parent)
	if err != nil {
		return err
	}
	what := "rename"
	if larger {
		what = "enlarge or move"
	}
	return f.requireAdd(after, at, what, "where it lies")
}

// placeOf returns the place that governs everything below a resource.
func (f *rightsFollower) placeOf(parent int64) (int64, error) {
	if at, ok := f.nearest[parent]; ok {
		return at, nil
	}
	at, err := f.tx.FindNearest(parent, f.rights.placeIDs)
	if err != nil {
		return 0, err
	}
	if f.nearest == nil || len(f.nearest) >= maxCached {
		f.nearest = map[int64]int64{}
	}
	f.nearest[parent] = at
	return at, nil
}

// requireLevel rejects a change if the user does not have the level, or if the change needs an approval.
func (f *rightsFollower) requireLevel(r *store.Resource, parent int64, level Level, what string) error {
	d, err := f.rights.decide(r.ID, parent, r.Type, f.placeOf)
	if err != nil {
		return err
	}
	if err := f.checkLevel(r, d, level, what); err != nil {
		return err
	}
	return f.checkApproval(r, d, level)
}

// checkApproval rejects an unapproved change that needs an approval.
func (f *rightsFollower) checkApproval(r *store.Resource, d decision, level Level) error {
	typeName := r.Type
	if d.resource == r.ID && d.resource != 0 && f.rights.places[r.ID] == d.place {
		typeName = ""
	}
	if f.service.workflowOf(r) == "" || !d.place.requiresApproval(typeName, level) {
		return nil
	}
	if _, approved := f.tx.Approved(); approved {
		f.tx.NoteApproval()
		return nil
	}
	return needsApproval("%s may not change %s %s without approval: %s, with the workflow level RECOMMEND", f.userName(), r.Type,
		problem.Describe(r.ID, labelOf(r)), d.reason())
}

// checkLevel rejects a change if the decision gives a lower level.
func (f *rightsFollower) checkLevel(r *store.Resource, d decision, level Level, what string) error {
	if d.level >= level {
		return nil
	}
	name := f.userName()
	if d.level == Hide {
		return problem.Forbidden("AccessDenied", "%s may not %s this: it would %[2]s a resource that is hidden from %[1]s", name,
			what)
	}
	return problem.Forbidden("AccessDenied", "%s may not %s %s %s: this requires the level %s, but %s", name, what, r.Type,
		problem.Describe(r.ID, labelOf(r)), level,
		d.reason())
}

// requireAdd rejects moving a visible resource to a place where the user may not add it.
func (f *rightsFollower) requireAdd(r *store.Resource, at int64, what, where string) error {
	d := f.rights.decideBelow(at, r.Type)
	if d.level != Hide {
		if err := f.checkLevel(r, d, Add, what); err != nil {
			return err
		}
		return f.checkApproval(r, d, Add)
	}
	name := f.userName()
	return problem.Forbidden("AccessDenied", "%s may not %s %s %s: this requires the level ADD %s, but %[1]s has no access there", name, what,
		r.Type,
		problem.Describe(r.ID, labelOf(r)), where)
}

// labelOf returns the name or the id of a visible resource, for error messages.
func labelOf(r *store.Resource) string {
	if r.Name != "" {
		return r.Name
	}
	if r.ID != 0 {
		return joinIDs([]int64{r.ID})
	}
	return "there"
}

// lostReferences returns the targets of the references that a resource has lost. only is true if nothing else has changed.
func lostReferences(before, after *store.Resource) (lost []int64, only bool) {
	if before == nil || after == nil {
		return nil, false
	}
	if before.Name != after.Name || before.Parent != after.Parent || before.Key != after.Key || string(before.Body) != string(after.Body) ||
		before.Type != after.Type {
		return nil, false
	}
	for _, list := range [][2][]store.Ref{{before.Refs, after.Refs}, {before.Links, after.Links}} {
		for _, ref := range list[0] {
			if !slices.Contains(list[1], ref) {
				lost = append(lost, ref.Target)
			}
		}
		for _, ref := range list[1] {
			if !slices.Contains(list[0], ref) {
				return nil, false
			}
		}
	}
	return lost, len(lost) > 0
}

// BeforeCommit does nothing.
func (f *rightsFollower) BeforeCommit() error { return nil }

// Refuse returns an error if a reference or link was removed without the right to do so, and its target was not deleted.
func (f *rightsFollower) Refuse() error {
	if f.requester != nil {
		if err := f.requester.Refuse(); err != nil {
			return err
		}
	}
	for target, refusal := range f.deferred {
		f.removedLinks = append(f.removedLinks, removedLink{[]int64{target}, refusal})
	}
	for _, p := range f.removedLinks {
		gone := false
		for _, end := range p.ends {
			_, err := f.tx.Head(end)
			if err != nil && !store.IsNotFound(err) {
				return err
			}
			gone = gone || err != nil
		}
		if !gone {
			return p.refusal
		}
	}
	return nil
}
