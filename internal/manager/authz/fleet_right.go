package authz

import (
	"context"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// fleetRights is the name of their collection.
const fleetRights = "fleetRights"

// registerFleetRights declares the collection of rights on the fleet, which is ours.
func registerFleetRights(r *resource.Registry) {
	r.Collection(resource.Collection{Name: fleetRights, Ours: true, Guard: resource.Administration, Parents: []string{""}}, &FleetRight{})
}

// FleetRight says what a user, or the members of a group, may do with the service points that have some labels. Users who see everything,
// and administrators, need none to see them. It is ours.
type FleetRight struct {
	schema.Head `head:"readOnly"`
	// UserScope is the user or the group.
	UserScope schema.Ref `api:"userScope,post,createOnly" ref:"User|UserGroup" onDelete:"cascade"`
	// Labels are the labels that a service point has to have, all of them: NAME=VALUE, or NAME for any value.
	Labels []string `api:"labels,required" example:"site=north"`
	// AccessLevel is what may be done with them: VIEW sees them with their applications and logs; CHANGE names, updates and configures them
	// and their applications, too; FULL has them enrol anew, changes their nodes and deletes them, too.
	AccessLevel string `api:"accessLevel,required" enum:"VIEW|CHANGE|FULL"`
}

// FleetScope is a right on the fleet, as it is held against service points.
type FleetScope struct {
	// Labels are the labels that a service point has to have, with their values; an empty one is any.
	Labels map[string]string
	// Level is VIEW, CHANGE or FULL.
	Level Level
}

// Covers reports whether the right is for a service point with these labels.
func (s FleetScope) Covers(labels map[string]string) bool {
	for name, value := range s.Labels {
		if has, ok := labels[name]; !ok || value != "" && has != value {
			return false
		}
	}
	return true
}

// selector reads the labels of a right; the problem of what is no label.
func (x *FleetRight) selector() (map[string]string, error) {
	all := map[string]string{}
	for _, text := range x.Labels {
		name, value, valued := strings.Cut(strings.TrimSpace(text), "=")
		if name == "" || valued && value == "" {
			return nil, problem.Invalid("labels", "%q is no label: NAME=VALUE, or NAME for any value", text)
		}
		if _, twice := all[name]; twice {
			return nil, problem.Invalid("labels", "%s is given twice: nothing has two values of a label", name)
		}
		all[name] = value
	}
	return all, nil
}

// Validate refuses labels that nothing can have. One without labels would be for the whole fleet, which an access right is for.
func (x *FleetRight) Validate(*resource.Change) error {
	if len(x.Labels) == 0 {
		return problem.Invalid("labels", "must name a label: who is to see the whole fleet gets an access right for everything")
	}
	_, err := x.selector()
	return err
}

// fleetLevels are the levels of the published access rights that those of the fleet are.
var fleetLevels = map[string]Level{"VIEW": View, "CHANGE": Change, "FULL": Full}

// FleetScopes gives what a user may do with the fleet by rights on labels: the user's own and those of the groups.
func (s *Policy) FleetScopes(ctx context.Context, p Principal) (all []FleetScope, err error) {
	if p.User == 0 {
		return nil, nil
	}
	err = s.store.View(ctx, func(tx *store.Tx) error {
		all = nil
		groups, err := tx.Links(p.User, "groups")
		if err != nil {
			return err
		}
		return tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(fleetRights),
			store.LinksTo{Targets: append(groups, p.User), Field: "userScope"}}}, func(r *store.Resource) error {
			o, err := fleetRightType.Object(r)
			if err != nil {
				return err
			}
			x := o.(*FleetRight)
			labels, err := x.selector()
			if err == nil {
				all = append(all, FleetScope{Labels: labels, Level: fleetLevels[x.AccessLevel]})
			}
			return err
		})
	})
	return all, err
}

// fleetRightType is their type, whose rows are read outside of a request.
var fleetRightType = schema.Declare(&FleetRight{})
