package access

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// Level is what may be done with resources: each has what those before it have.
type Level int

// The levels (defaultAccessLevel of an access right).
const (
	Hide Level = iota
	View
	Change
	Add
	Full
)

// levels are their names.
var levels = []string{"HIDE", "VIEW", "CHANGE", "ADD", "FULL"}

func (l Level) String() string { return levels[l] }

// levelOf gives the level of a name, which was checked.
func levelOf(name string) Level { return Level(max(0, slices.Index(levels, name))) }

// Rights are what a user who is no administrator may do, by the access rights of the user and of the groups that the user is in. They stay
// as they are; others take their place when one of those changes.
//
// The nearest place up the tree with a right decides, and of several rights there the one that gives most. Where there is none the default
// rights do, which have no resource, and where those are missing, too, the level is HIDE.
type Rights struct {
	user int64
	// subjects are the user and its groups.
	subjects []int64
	// places are what is said, by the resource; 0 is what is said by default.
	places map[int64]place
	// at are the resources of places, configurations those that they lie in, or are; 0 for those that lie in none.
	at             []int64
	configurations map[int64]int64
	// special are the types that an override names.
	special []string
	// events says that the user sees all events.
	events bool
	// seen are the conditions that were worded, by the special type, or "" for all others, and by what resources lie in: store.Expr in a
	// seenEntry.
	seen sync.Map
}

type seenEntry struct{ expr store.Expr }

// place is what is said at one resource.
type place []*AccessRight

// own is the level of the resource itself.
func (p place) own() (l Level) {
	for _, r := range p {
		l = max(l, levelOf(r.DefaultAccessLevel))
	}
	return l
}

// below is the level of resources of a type below it.
func (p place) below(typeName string) (l Level) {
	for _, r := range p {
		level := r.DefaultAccessLevel
		for _, o := range r.AccessOverrides {
			if o.ResourceType == typeName {
				level = o.AccessLevel
			}
		}
		l = max(l, levelOf(level))
	}
	return l
}

// ids are the numbers of its rights.
func (p place) ids() (all []int64) {
	for _, r := range p {
		all = append(all, r.ID)
	}
	return all
}

// rightTypes are the types of rights, whose rows are read outside of a request.
var (
	rightType          = schema.Declare(&AccessRight{})
	administrativeType = schema.Declare(&AdministrativeAccessRight{})
)

// rightsTopics are those on which depends what a user may do.
var rightsTopics = []string{"accessRights", "groups", "users"}

// rightsOf gives what a user may do, who is no administrator by itself; nil where a group makes the user one.
func (s *Service) rightsOf(tx *store.Tx, user int64) (*Rights, error) {
	if known, ok := s.rights.Get(tx, user); ok {
		return known, nil
	}
	r, err := readRights(tx, user, s.store.Layout().Scopes)
	if err == nil {
		s.rights.Put(tx, user, r)
	}
	return r, err
}

// readRights reads them; scopes is the collection of the configurations.
func readRights(tx *store.Tx, user int64, scopes string) (*Rights, error) {
	r := &Rights{user: user, subjects: []int64{user}, places: map[int64]place{}, configurations: map[int64]int64{}}
	administers := false
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("groups"),
		store.LinkedFrom{Source: user, Field: "groups"}}}, func(row *store.Resource) error {
		o, err := groupType.Object(row)
		if err != nil {
			return err
		}
		administers = administers || o.(*UserGroup).AdministratorPrivilege
		r.subjects = append(r.subjects, row.ID)
		return nil
	}); err != nil || administers {
		return nil, err
	}
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("accessRights"),
		store.LinksTo{Targets: r.subjects, Field: "userScope"}}}, r.take); err != nil {
		return nil, err
	}
	heads := map[int64]store.Head{}
	if err := tx.Heads(r.at, heads); err != nil {
		return nil, err
	}
	for id, h := range heads {
		r.configurations[id] = h.Configuration
		if h.Collection == scopes {
			r.configurations[id] = id
		}
	}
	slices.Sort(r.at)
	slices.Sort(r.special)
	r.special = slices.Compact(r.special)
	return r, nil
}

// take takes the right of a row.
func (r *Rights) take(row *store.Resource) error {
	if row.Type == administrativeType.Name {
		o, err := administrativeType.Object(row)
		if err != nil {
			return err
		}
		for _, one := range o.(*AdministrativeAccessRight).AdministrativeAccessRights {
			r.events = r.events || one.ResourceType == "Event" && levelOf(one.AccessLevel) >= View
		}
		return nil
	}
	o, err := rightType.Object(row)
	if err != nil {
		return err
	}
	x := o.(*AccessRight)
	at := x.Resource.ID
	if at != 0 && r.places[at] == nil {
		r.at = append(r.at, at)
	}
	r.places[at] = append(r.places[at], x)
	for _, o := range x.AccessOverrides {
		r.special = append(r.special, o.ResourceType)
	}
	return nil
}

// Everything reports whether the user sees all resources there are, also those that are still to come.
func (r *Rights) Everything() bool {
	if len(r.places[0]) == 0 {
		return false
	}
	for _, p := range r.places {
		if r.hides(p) {
			return false
		}
	}
	return true
}

// leastBelow is the lowest level of any type below a place.
func (r *Rights) leastBelow(p place) Level {
	l := p.below("")
	for _, name := range r.special {
		l = min(l, p.below(name))
	}
	return l
}

// hides reports whether something that lies at a place, or below it, is hidden, apart from what other rights say further below.
func (r *Rights) hides(p place) bool {
	return p.own() < View || r.hidesBelow(p)
}

func (r *Rights) hidesBelow(p place) bool {
	return r.leastBelow(p) < View
}

// Sees is resource.Rights.
func (r *Rights) Sees(tx *store.Tx, heads []store.Head) (map[int64]bool, error) {
	ids := make([]int64, len(heads))
	for i, h := range heads {
		ids[i] = h.ID
	}
	deciding, err := tx.Deciding(ids, r.at)
	seen := make(map[int64]bool, len(heads))
	for _, h := range heads {
		at := deciding[h.ID]
		if level := r.places[at].below(h.Type); at == h.ID {
			seen[h.ID] = r.places[at].own() >= View
		} else {
			seen[h.ID] = level >= View
		}
	}
	return seen, err
}

// SeesParent is resource.Rights: without overrides and a right of its own, what decides about a resource decides about its parent.
func (r *Rights) SeesParent(id int64) bool {
	return len(r.special) == 0 && r.places[id] == nil
}

// Whole is resource.Rights. What is seen is decided by a place that does not hide it; without overrides that place hides nothing below
// itself.
func (r *Rights) Whole(tx *store.Tx, ids []int64) (map[int64]bool, error) {
	var hiding []int64
	for _, id := range r.at {
		if r.hides(r.places[id]) {
			hiding = append(hiding, id)
		}
	}
	above := map[int64]bool{}
	var err error
	if len(hiding) > 0 {
		if above, err = tx.Above(hiding); err != nil {
			return nil, err
		}
	}
	deciding := map[int64]int64{}
	if len(r.special) > 0 {
		if deciding, err = tx.Deciding(ids, r.at); err != nil {
			return nil, err
		}
	}
	whole := make(map[int64]bool, len(ids))
	for _, id := range ids {
		whole[id] = !above[id] && (len(r.special) == 0 || !r.hidesBelow(r.places[deciding[id]]))
	}
	return whole, nil
}

// sees narrows the resources of a collection to those that are seen, by where they lie; nil is all. Whoever asks for one collection alone
// has what its resources lie in looked through once (store.Governed).
func (r *Rights) sees(c *resource.Collection, alone bool) store.Expr {
	if c.From != store.Resources {
		return r.ofResources()
	}
	var around store.Surroundings
	if alone {
		around = c.Around
	}
	var special store.Any
	var others []string
	for _, t := range c.Types {
		if !slices.Contains(r.special, t.Name) {
			others = append(others, t.Name)
			continue
		}
		special = append(special, store.All{ofType(t.Name), orAll(r.seenOf(t.Name, around))})
	}
	if len(special) == 0 {
		return r.seenOf("", around)
	}
	if len(others) > 0 {
		var either store.Any
		for _, name := range others {
			either = append(either, ofType(name))
		}
		special = append(special, store.All{either, orAll(r.seenOf("", around))})
	}
	return special
}

// ofResources narrows rows that show resources of any type to those that are seen.
func (r *Rights) ofResources() store.Expr {
	e := r.seenOf("", store.Surroundings{})
	if len(r.special) == 0 {
		if e == nil || e == store.Nothing {
			return e
		}
		return store.OfResource{Where: e}
	}
	others := store.All{orAll(e)}
	either := store.Any{}
	for _, name := range r.special {
		others = append(others, store.Not{Expr: ofType(name)})
		either = append(either, store.All{ofType(name), orAll(r.seenOf(name, store.Surroundings{}))})
	}
	return store.OfResource{Where: append(either, others)}
}

func ofType(name string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: name}
}

// orAll gives a condition for nil.
func orAll(e store.Expr) store.Expr {
	if e == nil {
		return store.All{}
	}
	return e
}

// seenOf is the condition that a resource of a type is seen, that lies in resources of some collections.
func (r *Rights) seenOf(typeName string, around store.Surroundings) store.Expr {
	key := fmt.Sprint(typeName, around)
	if known, ok := r.seen.Load(key); ok {
		return known.(seenEntry).expr //nolint:forcetypeassert // there is nothing else in it
	}
	g := store.Governed{Own: map[int64]bool{}, Below: map[int64]bool{}, Configurations: r.configurations, Around: around,
		Otherwise: r.places[0].below(typeName) >= View}
	for _, id := range r.at {
		g.Own[id], g.Below[id] = r.places[id].own() >= View, r.places[id].below(typeName) >= View
	}
	e := g.Expr()
	r.seen.Store(key, seenEntry{e})
	return e
}

// decision is what decides about a resource.
type decision struct {
	level Level
	// at is the resource whose rights decide; 0 for those that are given by default, or where there are none.
	at    int64
	place place
}

// of decides about a resource of a type, by its number and its parent's.
func (r *Rights) of(tx *store.Tx, id, parent int64, typeName string) (decision, error) {
	if p, ok := r.places[id]; ok && id != 0 {
		return decision{p.own(), id, p}, nil
	}
	at, err := tx.Nearest(parent, r.at)
	return decision{r.places[at].below(typeName), at, r.places[at]}, err
}

// because says which right decides, in words that go on from "which is".
func (d decision) because() string {
	switch {
	case len(d.place) == 0:
		return "no access right gives more"
	case d.at == 0:
		return "access right " + numbers(d.place.ids()) + " gives " + d.level.String() + " by default"
	}
	return "access right " + numbers(d.place.ids()) + " on resource " + numbers([]int64{d.at}) + " gives " + d.level.String()
}

// numbers lists numbers.
func numbers(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ", ")
}

// privileges are what a user may do about access rights (User.securityPrivilege): each has what those before it have.
var privileges = []string{"NO_ACCESS", "VIEW_MY_ACCESS_RIGHTS", "VIEW_OTHERS_ACCESS_RIGHTS", "CHANGE_ACCESS_RIGHTS", "ADD_ACCESS_RIGHTS",
	"DELETE_ACCESS_RIGHTS", "ADMINISTRATOR"}

// privileged reports whether a caller has a privilege.
func privileged(c resource.Caller, needed string) bool {
	return c.Administrator || cmp.Compare(slices.Index(privileges, c.Security), slices.Index(privileges, needed)) >= 0
}

// lacking refuses what takes a privilege that a caller does not have.
func lacking(c resource.Caller, needed string) error {
	if privileged(c, needed) {
		return nil
	}
	return problem.Forbidden("AccessDenied", "%s needs the securityPrivilege %s for this", c.Name, needed)
}
