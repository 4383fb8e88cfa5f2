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

// Rights are the effective rights of a user who is not an administrator, from the access rights of the user and the user's groups. They are
// immutable and are replaced when an access right changes.
//
// The nearest resource up the tree that has rights decides; of several rights there, the highest level counts. If there is none, the
// default rights decide, which have no resource. Without default rights the level is HIDE.
type Rights struct {
	user int64
	// subjects are the ids of the user and its groups.
	subjects []int64
	// places are the rights by resource id; 0 is the place of the default rights.
	places map[int64]*place
	// placeIDs are the resource ids in places, sorted, without 0. collections maps them to their collections. configurations maps them to
	// their configuration, or to themselves if they are configurations; 0 if they are in none.
	placeIDs       []int64
	collections    map[int64]string
	configurations map[int64]int64
	// special maps each type in an override to its representative: a type that is visible below exactly the same places. "" represents all
	// types without an override.
	special map[string]string
	// hiding are the places that hide the resource or a type below it. isUnlimited is true if there are none and the default rights hide
	// nothing.
	hiding      []int64
	isUnlimited bool
	// events and logs are true if the user sees all events, and the manager's logs.
	events, logs bool
	// seen caches conditions by representative type and surroundings, as seenEntry.
	seen sync.Map
}

type seenEntry struct{ expr store.Expr }

// rightType and administrativeType are the types for reading rows of rights outside of a request.
var (
	rightType          = schema.Declare(&AccessRight{})
	administrativeType = schema.Declare(&AdministrativeAccessRight{})
)

// rightsTopics are the cache topics that the rights of a user depend on.
var rightsTopics = []string{"accessRights", "groups", "users"}

// RightsOf returns the rights of a user who is not an administrator by itself; nil if a group makes the user an administrator.
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

// readRights reads the rights from the database. scopes is the name of the collection of configurations.
func readRights(tx *store.Tx, user int64, scopes string) (*Rights, error) {
	r := &Rights{user: user, subjects: []int64{user}, places: map[int64]*place{}, collections: map[int64]string{},
		configurations: map[int64]int64{}, special: map[string]string{}}
	administers := false
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("groups"),
		store.LinkedFrom{Source: user, Field: "groups"}}}, func(row *store.Resource) error {
		var group struct{ AdministratorPrivilege bool }
		if err := json.Unmarshal(row.Body, &group); err != nil {
			return fmt.Errorf("read group %d: %w", row.ID, err)
		}
		administers = administers || group.AdministratorPrivilege
		r.subjects = append(r.subjects, row.ID)
		return nil
	}); err != nil || administers {
		return nil, err
	}
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("accessRights"),
		store.LinksTo{Targets: r.subjects, Field: "userScope"}}}, r.addRow); err != nil {
		return nil, err
	}
	heads := map[int64]store.Head{}
	if err := tx.Heads(r.placeIDs, heads); err != nil {
		return nil, err
	}
	for id, h := range heads {
		r.collections[id], r.configurations[id] = h.Collection, h.Configuration
		if h.Collection == scopes {
			r.configurations[id] = id
		}
	}
	r.combine()
	return r, nil
}

// addRow adds the access right of a row.
func (r *Rights) addRow(row *store.Resource) error {
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
			r.placeIDs = append(r.placeIDs, at)
		}
	}
	p.rights = append(p.rights, x)
	return nil
}

// combine computes the derived fields after all rights were added.
func (r *Rights) combine() {
	slices.Sort(r.placeIDs)
	for _, p := range r.places {
		p.combine()
		for name := range p.special {
			r.special[name] = ""
		}
	}
	r.isUnlimited = r.places[0] != nil
	for _, id := range slices.Sorted(maps.Keys(r.places)) {
		if p := r.places[id]; p.lowest < View {
			r.isUnlimited = false
			if id != 0 {
				r.hiding = append(r.hiding, id)
			}
		}
	}
	standing := map[string]string{r.visibility(""): ""}
	for _, name := range slices.Sorted(maps.Keys(r.special)) {
		shape := r.visibility(name)
		if _, known := standing[shape]; !known {
			standing[shape] = name
		}
		r.special[name] = standing[shape]
	}
}

// visibility returns a key for the places that show a type: one byte per place, starting with the default rights.
func (r *Rights) visibility(typeName string) string {
	shape := make([]byte, 0, len(r.placeIDs)+1)
	for _, id := range append([]int64{0}, r.placeIDs...) {
		seen := byte('0')
		if r.places[id].levelBelow(typeName) >= View {
			seen = '1'
		}
		shape = append(shape, seen)
	}
	return string(shape)
}

// SeesEverything reports whether the user sees all existing and future resources.
func (r *Rights) SeesEverything() bool { return r.isUnlimited }

// seesAnything reports whether the user sees any resource.
func (r *Rights) seesAnything() bool {
	for _, p := range r.places {
		if p.own >= View || slices.ContainsFunc(slices.Collect(maps.Values(p.special)), func(level Level) bool { return level >= View }) {
			return true
		}
	}
	return false
}

// Sees implements resource.Rights.
func (r *Rights) Sees(tx *store.Tx, heads []store.Head) (map[int64]bool, error) {
	ids := make([]int64, len(heads))
	for i, h := range heads {
		ids[i] = h.ID
	}
	deciding, err := tx.FindNearestOfEach(ids, r.placeIDs)
	seen := make(map[int64]bool, len(heads))
	for _, h := range heads {
		at := deciding[h.ID]
		if level := r.places[at].levelBelow(h.Type); at == h.ID {
			seen[h.ID] = r.places[at].own >= View
		} else {
			seen[h.ID] = level >= View
		}
	}
	return seen, err
}

// SeesParent implements resource.Rights. It returns true without overrides and without a right of the resource itself: then the same rights
// decide about the resource and its parent.
func (r *Rights) SeesParent(id int64) bool {
	return len(r.special) == 0 && r.places[id] == nil
}

// Whole implements resource.Rights. A visible resource is governed by a place that does not hide it. Without overrides that place hides
// nothing below itself either.
func (r *Rights) Whole(tx *store.Tx, ids []int64) (map[int64]bool, error) {
	above := map[int64]bool{}
	var err error
	if len(r.hiding) > 0 {
		if above, err = tx.ListAncestors(r.hiding); err != nil {
			return nil, err
		}
	}
	deciding := map[int64]int64{}
	if len(r.special) > 0 {
		if deciding, err = tx.FindNearestOfEach(ids, r.placeIDs); err != nil {
			return nil, err
		}
	}
	whole := make(map[int64]bool, len(ids))
	for _, id := range ids {
		whole[id] = !above[id] && (len(r.special) == 0 || r.places[deciding[id]].minBelow() >= View)
	}
	return whole, nil
}

// visible returns the condition for the visible resources of a collection; nil for all. If alone is true, only this collection is queried,
// and the condition uses its surroundings (store.Governed).
func (r *Rights) visible(c *resource.Collection, alone bool) store.Expr {
	switch {
	case c.Guard == resource.Along:
		return r.visibleAlong()
	case c.From != store.Resources:
		return r.visibleResources()
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
			return r.seenCondition(standing, around)
		}
	}
	return r.byType(around, named)
}

// visibleResources returns the condition for rows that show resources of any type; nil for all.
func (r *Rights) visibleResources() store.Expr {
	e := r.ofAnyType()
	if e == nil || e == store.False {
		return e
	}
	return store.ResourceCondition{Where: e}
}

// visibleAlong returns the condition for rows that are visible with their parents; nil for all.
func (r *Rights) visibleAlong() store.Expr {
	e := r.ofAnyType()
	if e == nil || e == store.False {
		return e
	}
	return store.Through{Ref: "parent", Column: true, Where: e}
}

// ofAnyType returns the condition for visible resources of any type; nil for all.
func (r *Rights) ofAnyType() store.Expr {
	named := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.special)) {
		named[r.special[name]] = append(named[r.special[name]], name)
	}
	return r.byType(store.Surroundings{}, named)
}

// byType returns the condition for visible resources, by type. named maps representative types to the types they represent. "" also
// represents all types that are not listed.
func (r *Rights) byType(around store.Surroundings, named map[string][]string) store.Expr {
	var either store.Any
	var rest store.All
	for _, standing := range slices.Sorted(maps.Keys(named)) {
		if standing == "" {
			continue
		}
		of := ofTypes(named[standing])
		either = append(either, store.All{of, orAll(r.seenCondition(standing, around))})
		rest = append(rest, store.Not{Expr: of})
	}
	if len(either) == 0 {
		return r.seenCondition("", around)
	}
	return append(either, append(rest, orAll(r.seenCondition("", around))))
}

// ofTypes returns the condition that a resource has one of the types.
func ofTypes(names []string) store.Expr {
	var either store.Any
	for _, name := range names {
		either = append(either, OfType(name))
	}
	return either
}

// OfType returns the condition that a resource has the type.
func OfType(name string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: name}
}

// orAll returns e, or a condition that matches everything if e is nil.
func orAll(e store.Expr) store.Expr {
	if e == nil {
		return store.All{}
	}
	return e
}

// seenCondition returns the condition that a resource of a type is visible; nil if all are.
func (r *Rights) seenCondition(typeName string, around store.Surroundings) store.Expr {
	key := fmt.Sprint(typeName, around)
	if known, ok := r.seen.Load(key); ok {
		return known.(seenEntry).expr //nolint:forcetypeassert // it contains only this type
	}
	g := store.Governed{Own: map[int64]bool{}, Below: map[int64]bool{}, Configurations: r.configurations, Collections: r.collections,
		Around:    around,
		Otherwise: r.places[0].levelBelow(typeName) >= View}
	for _, id := range r.placeIDs {
		g.Own[id], g.Below[id] = r.places[id].own >= View, r.places[id].levelBelow(typeName) >= View
	}
	e := g.Expr()
	r.seen.Store(key, seenEntry{e})
	return e
}

// decision is the level for a resource and the place that it comes from.
type decision struct {
	level Level
	// resource is the resource whose rights decide; 0 for the default rights, or if there are none.
	resource int64
	place    *place
}

// decisionFor returns the decision for a resource of a type, given its id and its parent's.
func (r *Rights) decisionFor(tx *store.Tx, id, parent int64, typeName string) (decision, error) {
	return r.decide(id, parent, typeName, func(parent int64) (int64, error) { return tx.FindNearest(parent, r.placeIDs) })
}

// decide is decisionFor with a function that returns the place that governs everything below a resource; 0 for none.
func (r *Rights) decide(id, parent int64, typeName string, placeOf func(parent int64) (int64, error)) (decision, error) {
	if p, ok := r.places[id]; ok && id != 0 {
		return decision{p.own, id, p}, nil
	}
	at, err := placeOf(parent)
	return r.decideBelow(at, typeName), err
}

// decideBelow returns the decision for resources of a type below a place; 0 is the place of the default rights.
func (r *Rights) decideBelow(at int64, typeName string) decision {
	return decision{r.places[at].levelBelow(typeName), at, r.places[at]}
}

// reason names the access rights that decide, for error messages.
func (d decision) reason() string {
	switch {
	case d.place == nil:
		return "no access right gives more"
	case d.resource == 0:
		return "access right " + joinIDs(d.place.ids()) + " gives " + d.level.String() + " by default"
	}
	where := ""
	if d.place.own >= View { // do not reveal a hidden resource
		where = " on resource " + joinIDs([]int64{d.resource})
	}
	return "access right " + joinIDs(d.place.ids()) + where + " gives " + d.level.String()
}

// joinIDs joins ids with commas.
func joinIDs(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ", ")
}

// privileges are the values of User.securityPrivilege. Each includes the lower ones.
var privileges = []string{"NO_ACCESS", "VIEW_MY_ACCESS_RIGHTS", "VIEW_OTHERS_ACCESS_RIGHTS", "CHANGE_ACCESS_RIGHTS", "ADD_ACCESS_RIGHTS",
	"DELETE_ACCESS_RIGHTS", "ADMINISTRATOR"}

// hasPrivilege reports whether a caller has a privilege.
func hasPrivilege(c resource.Caller, needed string) bool {
	return c.Administrator || cmp.Compare(slices.Index(privileges, c.Security), slices.Index(privileges, needed)) >= 0
}

// requirePrivilege returns an error if the caller does not have a privilege.
func requirePrivilege(c resource.Caller, needed string) error {
	if hasPrivilege(c, needed) {
		return nil
	}
	return problem.Forbidden("AccessDenied", "%s requires the securityPrivilege %s for this", c.Name, needed)
}
