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

// rightsFollower sees to it that what a transaction changes is within the rights of the user that it is for, whatever led to it. What
// administrators do, the manager itself, and tokens that belong to no user, is not looked at here.
type rightsFollower struct {
	service *Policy
	tx      *store.Tx
	// rights are those of the user, as they were when the transaction began; nil where all is allowed. err is why they are not known.
	rights *Rights
	err    error
	// nearest are the places that decide below resources, as far as they were looked for, since the last resource moved.
	nearest map[int64]int64
	// asker is the same for the user who asked for what is changed now; nil where nobody did. name is whose rights these are; empty: the
	// author's.
	asker *rightsFollower
	name  string
	// loosened are why the user may not change resources that lose references, by what they referred to: that follows where that is deleted,
	// and is refused otherwise. parted are links that go: that follows where one of their ends goes.
	loosened map[int64]error
	parted   []parted
}

// parted is a link between two resources that goes, and why the user may not take it away.
type parted struct {
	ends    []int64
	refusal error
}

// follow begins to follow a transaction, with the rights of before.
func (s *Policy) follow(tx *store.Tx) store.Follower {
	f := &rightsFollower{service: s, tx: tx}
	id := tx.Author().User
	if id == 0 {
		return f
	}
	p, err := s.principal(tx, id)
	if store.IsNotFound(err) { // who is gone may nothing
		f.rights = &Rights{}
		return f
	}
	f.rights, f.err = p.Rights, err
	return f
}

// Changed refuses a change that is not within the rights.
func (f *rightsFollower) Changed(before, after *store.Resource) error {
	if err := f.mayChange(before, after); err != nil {
		return err
	}
	return f.changedWith(before, after)
}

// mayChange refuses a change of a resource that is not within the rights, or that others have to approve.
func (f *rightsFollower) mayChange(before, after *store.Resource) error {
	if f.err != nil {
		return f.err
	}
	r := after
	if r == nil {
		r = before
	}
	if err := f.fourEyes(r); err != nil {
		return err
	}
	if asker, err := f.askedBy(); err != nil {
		return err
	} else if asker != nil {
		if err := asker.Changed(before, after); err != nil {
			return err
		}
	}
	if f.rights == nil {
		return nil
	}
	api := f.service.api.Load()
	if api == nil || api.Collection(r.Collection) == nil {
		return fmt.Errorf("who may change %s is not known", r.Collection)
	}
	switch c := api.Collection(r.Collection); c.Guard {
	case resource.Everybody:
		return f.lies(before, after)
	case resource.Between:
		return f.between(before, after)
	case resource.Managed, resource.Common, resource.Administration, resource.Logs:
		refusal := problem.Forbidden("AccessDenied", "%s may not change %s: administrators do", f.called(), c.Name)
		if after == nil && before.Parent > resource.RootID { // it goes with what it lies in, or not at all
			f.parted = append(f.parted, parted{[]int64{before.Parent}, refusal})
			return nil
		}
		return f.loosens(before, after, refusal)
	case resource.Accounts:
		if r.ID != f.rights.user {
			return f.loosens(before, after, problem.Forbidden("AccessDenied", "%s may not change another user", f.called()))
		}
	}
	return nil // the rules of the others say who changes them
}

// changedWith refuses a change by which resources that refer to this one change, such as a reservation with the address of its client, or a
// host with its address, where others have to approve changes of those.
func (f *rightsFollower) changedWith(before, after *store.Resource) error {
	if before == nil || after == nil || before.Key == after.Key && bytes.Equal(before.Low, after.Low) && bytes.Equal(before.High, after.High) {
		return nil
	}
	if _, approved := f.tx.Approved(); approved {
		return nil
	}
	if asks, err := f.asksAnywhere(after.Configuration); err != nil || !asks {
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
		err := f.fourEyes(r)
		if err == nil && f.rights != nil {
			var d decision
			if d, err = f.rights.decide(r.ID, r.Parent, r.Type, f.placeOf); err == nil {
				err = f.askedFor(r, d, Change)
			}
		}
		if errors.Is(err, resource.ErrApproval) {
			return problem.Forbidden("AccessDenied", "%s %s changes %s %s with it, which takes an approval: ask for a change of that instead",
				after.Type, problem.About(after.ID, called(after)), r.Type, problem.About(r.ID, called(r)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// asksAnywhere reports whether there may be a resource of a configuration whose changes others have to approve.
func (f *rightsFollower) asksAnywhere(configuration int64) (bool, error) {
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

// lies refuses a change of what is decided about by where it lies.
func (f *rightsFollower) lies(before, after *store.Resource) error {
	switch {
	case before == nil:
		return f.needs(after, after.Parent, Add, "make")
	case after == nil:
		return f.needs(before, before.Parent, Full, "delete")
	}
	if before.Parent != after.Parent {
		if err := f.moved(before, after); err != nil {
			return err
		}
	}
	if err := f.needs(after, after.Parent, Change, "change"); err != nil {
		return f.loosens(before, after, err)
	}
	return f.grown(before, after)
}

// loosens refuses a change, unless a resource loses references alone: those are looked at in the end. A missing approval is no matter of
// references: a protected resource changes with what it refers to.
func (f *rightsFollower) loosens(before, after *store.Resource, refusal error) error {
	lost, only := loses(before, after)
	if !only || errors.Is(refusal, resource.ErrApproval) {
		return refusal
	}
	if f.loosened == nil {
		f.loosened = map[int64]error{}
	}
	for _, target := range lost {
		f.loosened[target] = refusal
	}
	return nil
}

// between refuses a link between two resources that is made, or goes, where the user may not change the one that it leads from.
func (f *rightsFollower) between(before, after *store.Resource) error {
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
		err = f.needs(source, source.Parent, Change, "change")
		switch {
		case err != nil && after == nil && !errors.Is(err, resource.ErrApproval):
			f.parted = append(f.parted, parted{[]int64{link.Ref("source"), link.Ref("destination")}, err})
		case err != nil:
			return err
		}
	}
	return nil
}

// moved asks for the rights to take a resource away where it lies, and to make it where it goes, unless the same right decides there.
func (f *rightsFollower) moved(before, after *store.Resource) error {
	from, err := f.placeOf(before.Parent)
	if err != nil {
		return err
	}
	f.nearest = nil // what lies below it lies elsewhere
	to, err := f.placeOf(after.Parent)
	if _, own := f.rights.places[after.ID]; err != nil || from == to && !own {
		return err
	}
	if from != to {
		if err := f.needs(before, before.Parent, Full, "move"); err != nil {
			return err
		}
	}
	// A right of its own says nothing of where it goes.
	return f.made(after, to, "move", "where it goes")
}

// grown asks for the right to make a resource where it lies, if it takes more space there than it had, or another name that others are
// made of, as a zone does: a right of its own says nothing of that.
func (f *rightsFollower) grown(before, after *store.Resource) error {
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
	return f.made(after, at, what, "where it lies")
}

// placeOf gives the place that decides for what lies below a resource.
func (f *rightsFollower) placeOf(parent int64) (int64, error) {
	if at, ok := f.nearest[parent]; ok {
		return at, nil
	}
	at, err := f.tx.Nearest(parent, f.rights.at)
	if err != nil {
		return 0, err
	}
	if f.nearest == nil || len(f.nearest) >= maxCached {
		f.nearest = map[int64]int64{}
	}
	f.nearest[parent] = at
	return at, nil
}

// needs refuses what takes a level that the user does not have.
func (f *rightsFollower) needs(r *store.Resource, parent int64, level Level, what string) error {
	d, err := f.rights.decide(r.ID, parent, r.Type, f.placeOf)
	if err != nil {
		return err
	}
	if err := f.within(r, d, level, what); err != nil {
		return err
	}
	return f.askedFor(r, d, level)
}

// askedFor refuses a change that others have to approve, unless they do.
func (f *rightsFollower) askedFor(r *store.Resource, d decision, level Level) error {
	typeName := r.Type
	if d.at == r.ID && d.at != 0 && f.rights.places[r.ID] == d.place {
		typeName = ""
	}
	if f.service.workflowOf(r) == "" || !d.place.asks(typeName, level) {
		return nil
	}
	if _, approved := f.tx.Approved(); approved {
		f.tx.NoteApproval()
		return nil
	}
	return needsApproval("%s may not change %s %s without an approval: %s, with the workflow level RECOMMEND", f.called(), r.Type,
		problem.About(r.ID, called(r)), d.because())
}

// within refuses what takes a level that a decision does not give.
func (f *rightsFollower) within(r *store.Resource, d decision, level Level, what string) error {
	if d.level >= level {
		return nil
	}
	name := f.called()
	if d.level == Hide {
		return problem.Forbidden("AccessDenied", "%s may not %s that: it would %[2]s a resource that %[1]s does not see", name,
			what)
	}
	return problem.Forbidden("AccessDenied", "%s may not %s %s %s: that takes the level %s, and %s", name, what, r.Type,
		problem.About(r.ID, called(r)), level,
		d.because())
}

// made refuses to take a resource, which is seen, to where the user may make none.
func (f *rightsFollower) made(r *store.Resource, at int64, what, where string) error {
	d := f.rights.below(at, r.Type)
	if d.level != Hide {
		if err := f.within(r, d, Add, what); err != nil {
			return err
		}
		return f.askedFor(r, d, Add)
	}
	name := f.called()
	return problem.Forbidden("AccessDenied", "%s may not %s %s %s: that takes the level ADD %s, and %[1]s sees nothing there", name, what,
		r.Type,
		problem.About(r.ID, called(r)), where)
}

// called names a resource that is seen.
func called(r *store.Resource) string {
	if r.Name != "" {
		return r.Name
	}
	if r.ID != 0 {
		return numbers([]int64{r.ID})
	}
	return "there"
}

// loses gives the references that a resource has lost; only says that it has changed in nothing else.
func loses(before, after *store.Resource) (lost []int64, only bool) {
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

// BeforeCommit keeps nothing.
func (f *rightsFollower) BeforeCommit() error { return nil }

// Refuse refuses references that were taken away from what the user may not change, unless what they led to is gone.
func (f *rightsFollower) Refuse() error {
	if f.asker != nil {
		if err := f.asker.Refuse(); err != nil {
			return err
		}
	}
	for target, refusal := range f.loosened {
		f.parted = append(f.parted, parted{[]int64{target}, refusal})
	}
	for _, p := range f.parted {
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
