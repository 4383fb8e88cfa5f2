package authz

import (
	"encoding/json"
	"maps"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// registerAccessReport declares the report of everything that a user may see and change.
func registerAccessReport(r *resource.Registry) {
	r.Report("users", resource.Report{Name: "access", Summary: "The effective access of a user",
		Description: "What the user sees of each collection and may do with each type, the places of the user's access rights, and the rights" +
			" on the fleet, by the functions that decide on requests. For another user, the caller needs the privilege" +
			" VIEW_OTHERS_ACCESS_RIGHTS.",
		Answer: UserAccess{},
		Of: func(tx *store.Tx, a *resource.API, caller resource.Caller, of *store.Resource) (any, error) {
			return PolicyOf(a.Store).describeAccess(tx, a, caller, of.ID)
		}})
}

// UserAccess is the effective access of a user.
type UserAccess struct {
	User          int64 `json:"user"`
	Administrator bool  `json:"administrator"`
	// SecurityPrivilege and HistoryPrivilege are those in effect, from the user and its groups.
	SecurityPrivilege string `json:"securityPrivilege"`
	HistoryPrivilege  string `json:"historyPrivilege"`
	// Everything is true if the user sees all existing and future resources.
	Everything bool `json:"everything"`
	// Fleet is ALL, SOME or NONE. FleetRights are the rights on labels that give SOME.
	Fleet       string             `json:"fleet"`
	FleetRights []FleetAccess      `json:"fleetRights"`
	Collections []CollectionAccess `json:"collections"`
	Types       []TypeAccess       `json:"types"`
	// Places are the resources with access rights of the user; the first one without a resource has the default rights.
	Places []PlaceAccess `json:"places"`
}

// FleetAccess is a right on the service points with some labels.
type FleetAccess struct {
	Labels      map[string]string `json:"labels"`
	AccessLevel string            `json:"accessLevel"`
}

// CollectionAccess is the access of a user to a collection.
type CollectionAccess struct {
	Collection string `json:"collection"`
	// Visible is ALL, NONE, or SOME if it depends on the resource.
	Visible string `json:"visible"`
	// Changeable is true if some of the resources may be changed.
	Changeable bool `json:"changeable"`
}

// TypeAccess is the access of a user to resources of a type that access rights govern.
type TypeAccess struct {
	ResourceType string `json:"resourceType"`
	// DefaultLevel applies outside of all places with rights, HighestLevel is the highest level of all places.
	DefaultLevel string `json:"defaultLevel"`
	HighestLevel string `json:"highestLevel"`
}

// PlaceAccess are the effective rights at a resource with access rights, and below it.
type PlaceAccess struct {
	// Resource is null for the default rights, and for a resource that the caller does not see.
	Resource *PlaceResource `json:"resource"`
	Default  bool           `json:"default"`
	resource.Effective
}

// PlaceResource identifies the resource of a place. Label is its range, address or absolute name, otherwise its name.
type PlaceResource struct {
	ID         int64  `json:"id"`
	Collection string `json:"collection"`
	Type       string `json:"type"`
	Name       string `json:"name"`
	Label      string `json:"label"`
}

// The values of CollectionAccess.Visible and UserAccess.Fleet.
const (
	seesAll  = "ALL"
	seesSome = "SOME"
	seesNone = "NONE"
)

// describeAccess returns the effective access of a user.
func (s *Policy) describeAccess(tx *store.Tx, a *resource.API, caller resource.Caller, user int64) (*UserAccess, error) {
	if user != caller.User {
		if err := requirePrivilege(caller, "VIEW_OTHERS_ACCESS_RIGHTS"); err != nil {
			return nil, err
		}
	}
	p, err := s.principal(tx, user)
	if err != nil {
		return nil, err
	}
	as := CallerOf(p)
	x := &UserAccess{User: user, Administrator: as.Administrator, SecurityPrivilege: p.Security, HistoryPrivilege: p.History, Fleet: seesNone,
		FleetRights: []FleetAccess{}, Collections: []CollectionAccess{}, Types: []TypeAccess{}, Places: []PlaceAccess{}}
	r := rightsIn(as)
	x.Everything = r == nil || r.SeesEverything()
	if err := x.addFleet(tx, user); err != nil {
		return nil, err
	}
	for _, c := range a.Collections() {
		one, err := collectionAccess(a, as, c)
		if err != nil {
			return nil, err
		}
		x.Collections = append(x.Collections, one)
		if c.Guard == resource.AnyCaller && !c.Inner {
			for _, t := range c.Types {
				x.Types = append(x.Types, TypeAccess{t.Name, r.defaultLevel(t.Name).String(), r.highestLevel(t.Name).String()})
			}
		}
	}
	if r != nil {
		x.Places, err = s.placesOf(tx, a, caller, as, r)
	}
	return x, err
}

// addFleet adds the access to the fleet.
func (x *UserAccess) addFleet(tx *store.Tx, user int64) error {
	scopes, err := fleetScopes(tx, user)
	if err != nil {
		return err
	}
	for _, s := range scopes {
		x.FleetRights = append(x.FleetRights, FleetAccess{s.Labels, s.Level.String()})
		x.Fleet = seesSome
	}
	if x.Everything {
		x.Fleet = seesAll
	}
	return nil
}

// collectionAccess returns the access of a caller to a collection, as May decides it.
func collectionAccess(a *resource.API, as resource.Caller, c *resource.Collection) (CollectionAccess, error) {
	x := CollectionAccess{Collection: c.Name, Visible: seesSome}
	seen, err := May(as, resource.ActionFind, resource.Subject{Collection: c})
	if err != nil {
		return x, err
	}
	r := rightsIn(as)
	governed := r != nil && c.Guard == resource.AnyCaller && c.From == store.Resources
	switch {
	case seen == nil:
		x.Visible = seesAll
	case seen == store.False, governed && r.highestIn(a, c) < View:
		x.Visible = seesNone
	}
	_, err = May(as, resource.ActionChange, resource.Subject{Collection: c, ID: resource.RootID})
	x.Changeable = err == nil && x.Visible != seesNone && (!governed || r.highestIn(a, c) >= Change)
	return x, nil
}

// highestIn returns the highest level for resources of a collection: at places in the collection, and below places in collections above it.
func (r *Rights) highestIn(a *resource.API, c *resource.Collection) (most Level) {
	for _, t := range c.Types {
		most = max(most, r.places[0].levelBelow(t.Name))
		for _, id := range r.placeIDs {
			if of := r.collections[id]; of == c.Name {
				most = max(most, r.places[id].own, r.places[id].levelBelow(t.Name))
			} else if a.CanContain(c, of) {
				most = max(most, r.places[id].levelBelow(t.Name))
			}
		}
	}
	return most
}

// defaultLevel returns the level for a type outside of all places with rights. Without limits it is Full.
func (r *Rights) defaultLevel(typeName string) Level {
	if r == nil {
		return Full
	}
	return r.places[0].levelBelow(typeName)
}

// highestLevel returns the highest level for a type at any place.
func (r *Rights) highestLevel(typeName string) Level {
	most := r.defaultLevel(typeName)
	if r != nil {
		for _, id := range r.placeIDs {
			most = max(most, r.places[id].levelBelow(typeName))
		}
	}
	return most
}

// placesOf returns the effective rights at each place, the default rights first. A place that caller does not see has no resource.
func (s *Policy) placesOf(tx *store.Tx, a *resource.API, caller, as resource.Caller, r *Rights) ([]PlaceAccess, error) {
	all := []PlaceAccess{}
	if p := r.places[0]; p != nil {
		all = append(all, PlaceAccess{Default: true, Effective: p.effective(as.User, p.own)})
	}
	heads := map[int64]store.Head{}
	if err := tx.Heads(r.placeIDs, heads); err != nil {
		return nil, err
	}
	seen, err := a.VisibleResources(tx, caller, r.placeIDs)
	if err != nil {
		return nil, err
	}
	for _, id := range r.placeIDs {
		h := heads[id]
		d, err := r.decisionFor(tx, id, h.Parent, h.Type)
		if err != nil {
			return nil, err
		}
		one := PlaceAccess{Effective: d.place.effective(as.User, d.level)}
		if seen[id] != nil {
			one.Resource = &PlaceResource{h.ID, h.Collection, h.Type, h.Name, label(h)}
			one.DecidedBy.Resource = &h.ID
		}
		all = append(all, one)
	}
	return all, nil
}

// label returns the inlined member of a head, otherwise its name.
func label(h store.Head) string {
	var text string
	if h.Inline != "" && json.Unmarshal([]byte(h.Inline), &text) == nil && text != "" {
		return text
	}
	return h.Name
}

// effective returns the rights of a user by the rights of the place. level is the level of the resource itself.
func (p *place) effective(user int64, level Level) resource.Effective {
	e := resource.Effective{User: &user, AccessLevel: level.String(), LevelBelow: p.levelBelow("").String(),
		AccessOverrides: []resource.TypeLevel{}, WorkflowLevel: noWorkflow}
	if p == nil {
		return e
	}
	for _, name := range slices.Sorted(maps.Keys(p.special)) {
		e.AccessOverrides = append(e.AccessOverrides, resource.TypeLevel{ResourceType: name, AccessLevel: p.special[name].String()})
	}
	e.WorkflowLevel = p.workflow("", level)
	e.DeploymentsAllowed, e.QuickDeploymentsAllowed = p.allowsDeployment("FullDeployment"), p.allowsDeployment("QuickDeployment")
	e.SelectiveDeploymentsAllowed = p.allowsDeployment("SelectiveDeployment")
	e.DecidedBy = &resource.DecidedBy{AccessRights: p.ids()}
	return e
}
