package authz

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

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
	places map[int64]*place
	// at are the resources of places, collections where they are; configurations those that they lie in, or are, 0 for those that lie in
	// none.
	at             []int64
	collections    map[int64]string
	configurations map[int64]int64
	// special are the types that an override names, each with the type that stands for it: below every place both are seen, or neither is.
	// For those that are seen where types without an override are, "" does.
	special map[string]string
	// hiding are the places that hide something, at them or below. everything says that there are none, and that nothing is hidden elsewhere.
	hiding     []int64
	everything bool
	// events and logs say that the user sees all events, and the manager's logs.
	events, logs bool
	// seen are the conditions that were worded, by the type that stands for others, and by what resources lie in: store.Expr in a seenEntry.
	seen sync.Map
}

type seenEntry struct{ expr store.Expr }

// rightTypes are the types of rights, whose rows are read outside of a request.
var (
	rightType          = schema.Declare(&AccessRight{})
	administrativeType = schema.Declare(&AdministrativeAccessRight{})
)

// rightsTopics are those on which depends what a user may do.
var rightsTopics = []string{"accessRights", "groups", "users"}

// RightsOf gives what a user may do, who is no administrator by itself; nil where a group makes the user one.
func (s *Policy) RightsOf(tx *store.Tx, user int64) (*Rights, error) {
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
	r := &Rights{user: user, subjects: []int64{user}, places: map[int64]*place{}, collections: map[int64]string{},
		configurations: map[int64]int64{}, special: map[string]string{}}
	administers := false
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("groups"),
		store.LinkedFrom{Source: user, Field: "groups"}}}, func(row *store.Resource) error {
		var group struct{ AdministratorPrivilege bool }
		if err := json.Unmarshal(row.Body, &group); err != nil {
			return fmt.Errorf("reading group %d: %w", row.ID, err)
		}
		administers = administers || group.AdministratorPrivilege
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
		r.collections[id], r.configurations[id] = h.Collection, h.Configuration
		if h.Collection == scopes {
			r.configurations[id] = id
		}
	}
	r.settle()
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
			sees := levelOf(one.AccessLevel) >= View
			r.events, r.logs = r.events || sees && one.ResourceType == "Event", r.logs || sees && one.ResourceType == "Log"
		}
		return nil
	}
	o, err := rightType.Object(row)
	if err != nil {
		return err
	}
	x := o.(*AccessRight)
	at := x.Resource.ID
	p := r.places[at]
	if p == nil {
		p = &place{}
		r.places[at] = p
		if at != 0 {
			r.at = append(r.at, at)
		}
	}
	p.rights = append(p.rights, x)
	return nil
}

// settle finds out what all requests ask of the rights that were read.
func (r *Rights) settle() {
	slices.Sort(r.at)
	for _, p := range r.places {
		p.settle()
		for name := range p.special {
			r.special[name] = ""
		}
	}
	r.everything = r.places[0] != nil
	for _, id := range slices.Sorted(maps.Keys(r.places)) {
		if p := r.places[id]; p.least < View {
			r.everything = false
			if id != 0 {
				r.hiding = append(r.hiding, id)
			}
		}
	}
	standing := map[string]string{r.shape(""): ""}
	for _, name := range slices.Sorted(maps.Keys(r.special)) {
		shape := r.shape(name)
		if _, known := standing[shape]; !known {
			standing[shape] = name
		}
		r.special[name] = standing[shape]
	}
}

// shape says below which places a type is seen: a byte for each, that of the default rights first.
func (r *Rights) shape(typeName string) string {
	shape := make([]byte, 0, len(r.at)+1)
	for _, id := range append([]int64{0}, r.at...) {
		seen := byte('0')
		if r.places[id].below(typeName) >= View {
			seen = '1'
		}
		shape = append(shape, seen)
	}
	return string(shape)
}

// Everything reports whether the user sees all resources there are, also those that are still to come.
func (r *Rights) Everything() bool { return r.everything }

// anything reports whether the user sees anything by its rights.
func (r *Rights) anything() bool {
	for _, p := range r.places {
		if p.own >= View || slices.ContainsFunc(slices.Collect(maps.Values(p.special)), func(level Level) bool { return level >= View }) {
			return true
		}
	}
	return false
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
			seen[h.ID] = r.places[at].own >= View
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
	above := map[int64]bool{}
	var err error
	if len(r.hiding) > 0 {
		if above, err = tx.Above(r.hiding); err != nil {
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
		whole[id] = !above[id] && (len(r.special) == 0 || r.places[deciding[id]].leastBelow() >= View)
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
	named := map[string][]string{}
	for _, t := range c.Types {
		standing := r.special[t.Name]
		named[standing] = append(named[standing], t.Name)
	}
	if len(named) == 1 {
		for standing := range named {
			return r.seenOf(standing, around)
		}
	}
	return r.byType(around, named)
}

// ofResources narrows rows that show resources of any type to those that are seen.
func (r *Rights) ofResources() store.Expr {
	named := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.special)) {
		named[r.special[name]] = append(named[r.special[name]], name)
	}
	e := r.byType(store.Surroundings{}, named)
	if e == nil || e == store.Nothing {
		return e
	}
	return store.OfResource{Where: e}
}

// byType words the condition that a resource is seen that lies in resources of some collections, by its type. named are types by the one
// that stands for them; "" stands for all that are not among them, too.
func (r *Rights) byType(around store.Surroundings, named map[string][]string) store.Expr {
	var either store.Any
	var rest store.All
	for _, standing := range slices.Sorted(maps.Keys(named)) {
		if standing == "" {
			continue
		}
		of := ofTypes(named[standing])
		either = append(either, store.All{of, orAll(r.seenOf(standing, around))})
		rest = append(rest, store.Not{Expr: of})
	}
	if len(either) == 0 {
		return r.seenOf("", around)
	}
	return append(either, append(rest, orAll(r.seenOf("", around))))
}

// ofTypes is the condition that a resource is of one of some types.
func ofTypes(names []string) store.Expr {
	var either store.Any
	for _, name := range names {
		either = append(either, OfType(name))
	}
	return either
}

// OfType is the condition that a resource is of a type.
func OfType(name string) store.Expr {
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
	g := store.Governed{Own: map[int64]bool{}, Below: map[int64]bool{}, Configurations: r.configurations, Collections: r.collections,
		Around:    around,
		Otherwise: r.places[0].below(typeName) >= View}
	for _, id := range r.at {
		g.Own[id], g.Below[id] = r.places[id].own >= View, r.places[id].below(typeName) >= View
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
	place *place
}

// of decides about a resource of a type, by its number and its parent's.
func (r *Rights) of(tx *store.Tx, id, parent int64, typeName string) (decision, error) {
	return r.decide(id, parent, typeName, func(parent int64) (int64, error) { return tx.Nearest(parent, r.at) })
}

// decide is of, with what finds the place that decides for what lies below a resource; 0 is nowhere.
func (r *Rights) decide(id, parent int64, typeName string, placeOf func(parent int64) (int64, error)) (decision, error) {
	if p, ok := r.places[id]; ok && id != 0 {
		return decision{p.own, id, p}, nil
	}
	at, err := placeOf(parent)
	return r.below(at, typeName), err
}

// below is what a place, or 0 for none, decides about resources of a type below it.
func (r *Rights) below(at int64, typeName string) decision {
	return decision{r.places[at].below(typeName), at, r.places[at]}
}

// because says which right decides, in words that go on from "which is".
func (d decision) because() string {
	switch {
	case d.place == nil:
		return "no access right gives more"
	case d.at == 0:
		return "access right " + numbers(d.place.ids()) + " gives " + d.level.String() + " by default"
	}
	where := ""
	if d.place.own >= View { // a place that is hidden is not told
		where = " on resource " + numbers([]int64{d.at})
	}
	return "access right " + numbers(d.place.ids()) + where + " gives " + d.level.String()
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
