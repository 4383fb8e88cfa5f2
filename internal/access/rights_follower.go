package access

import (
	"slices"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// rightsFollower sees to it that what a transaction changes is within the rights of the user that it is for, whatever led to it. What
// administrators do, the manager itself, and tokens that belong to no user, is not looked at here.
type rightsFollower struct {
	service *Service
	tx      *store.Tx
	// asked says that whose transaction it is was looked up; rights are that user's, nil where all is allowed. They are those from before
	// the transaction.
	asked  bool
	rights *Rights
	// nearest are the places that decide below resources, as far as they were looked for, since the last resource moved.
	nearest map[int64]int64
	// loosened are resources that lose references to others, and that the user may not change, by one that refers: that is what follows
	// where what they referred to is deleted, and is refused otherwise.
	loosened map[int64]error
}

func (f *rightsFollower) load() error {
	if f.asked {
		return nil
	}
	f.asked = true
	id := f.tx.Author().User
	if id == 0 {
		return nil
	}
	user, err := userOf(f.tx, id)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := f.service.principalOf(f.tx, user)
	f.rights = p.Rights
	return err
}

// governed gives what is decided about by where it lies; nil where other rules say who changes it.
func (f *rightsFollower) governed(r *store.Resource) *resource.Collection {
	api := f.service.api.Load()
	if api == nil {
		return nil
	}
	if c := api.Collection(r.Collection); c != nil && c.Guard == resource.Everybody {
		return c
	}
	return nil
}

// Changed refuses a change that is not within the rights.
func (f *rightsFollower) Changed(before, after *store.Resource) error {
	r := after
	if r == nil {
		r = before
	}
	if err := f.load(); err != nil || f.rights == nil || f.governed(r) == nil {
		return err
	}
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
	err := f.needs(after, after.Parent, Change, "change")
	if err == nil {
		return nil
	}
	lost, only := loses(before, after)
	if !only {
		return err
	}
	if f.loosened == nil {
		f.loosened = map[int64]error{}
	}
	for _, target := range lost {
		f.loosened[target] = err
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
	if err != nil || from == to {
		return err
	}
	if err := f.needs(before, before.Parent, Full, "move"); err != nil {
		return err
	}
	return f.needs(after, after.Parent, Add, "move")
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
	if f.nearest == nil || len(f.nearest) >= maxRemembered {
		f.nearest = map[int64]int64{}
	}
	f.nearest[parent] = at
	return at, nil
}

// decide decides about a resource below a parent.
func (f *rightsFollower) decide(r *store.Resource, parent int64) (decision, error) {
	if p, ok := f.rights.places[r.ID]; ok && r.ID != 0 {
		return decision{p.own(), r.ID, p}, nil
	}
	at, err := f.placeOf(parent)
	return decision{f.rights.places[at].below(r.Type), at, f.rights.places[at]}, err
}

// needs refuses what takes a level that the user does not have.
func (f *rightsFollower) needs(r *store.Resource, parent int64, level Level, what string) error {
	d, err := f.decide(r, parent)
	if err != nil {
		return err
	}
	if d.level >= level {
		return nil
	}
	name := f.tx.Author().Name
	if d.level == Hide {
		return problem.Forbidden("AccessDenied", "%s may not %s that: it would %[2]s a resource of type %s that %[1]s does not see", name,
			what, r.Type)
	}
	return problem.Forbidden("AccessDenied", "%s may not %s %s %s: that takes the level %s, and %s", name, what, r.Type, called(r), level,
		d.because())
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
	for target, refusal := range f.loosened {
		_, err := f.tx.Head(target)
		if err == nil {
			return refusal
		}
		if !store.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// deploys reports whether one of the rights lets its user deploy by a deployment of a type.
func (p place) deploys(typeName string) bool {
	return slices.ContainsFunc(p, func(r *AccessRight) bool {
		switch typeName {
		case "QuickDeployment":
			return r.QuickDeploymentsAllowed
		case "SelectiveDeployment":
			return r.SelectiveDeploymentsAllowed
		case "ValidationDeployment":
			return true
		}
		return r.DeploymentsAllowed
	})
}
