package authz

import (
	"context"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// fleetRights is the name of the collection.
const fleetRights = "fleetRights"

// registerFleetRights declares the collection of rights on the fleet, a Portolan extension.
func registerFleetRights(r *resource.Registry) {
	r.Collection(resource.Collection{Name: fleetRights, Unpublished: true, Guard: resource.Administration, Parents: []string{""}},
		&FleetRight{})
}

// FleetRight sets what a user, or the members of a group, may do with the service points that have certain labels. Administrators, and
// users who see everything, see all service points without it. Portolan extension.
type FleetRight struct {
	schema.Head `head:"readOnly"`
	// UserScope is the user or group that the right is granted to.
	UserScope schema.Ref `api:"userScope,post,createOnly" ref:"User|UserGroup" onDelete:"cascade"`
	// Labels are the labels that a service point must all have: NAME=VALUE, or NAME for any value.
	Labels []string `api:"labels,required" example:"site=north"`
	// AccessLevel is the access level. VIEW shows the service points with their applications and logs. CHANGE also renames, updates and
	// configures them and their applications. FULL also enrolls them again, changes their nodes and deletes them.
	AccessLevel string `api:"accessLevel,required" enum:"VIEW|CHANGE|FULL"`
}

// FleetScope is a FleetRight in parsed form.
type FleetScope struct {
	// Labels are the required labels with their values; an empty value matches any value.
	Labels map[string]string
	// Level is View, Change or Full.
	Level Level
}

// Covers reports whether the right covers a service point with these labels.
func (s FleetScope) Covers(labels map[string]string) bool {
	for name, value := range s.Labels {
		if has, ok := labels[name]; !ok || value != "" && has != value {
			return false
		}
	}
	return true
}

// selector parses the labels of the right. It returns a problem for an invalid or repeated label.
func (x *FleetRight) selector() (map[string]string, error) {
	all := map[string]string{}
	for _, text := range x.Labels {
		name, value, valued := strings.Cut(strings.TrimSpace(text), "=")
		if name == "" || valued && value == "" {
			return nil, problem.Invalid("labels", "%q is not a label: use NAME=VALUE, or NAME for any value", text)
		}
		if _, twice := all[name]; twice {
			return nil, problem.Invalid("labels", "%s is listed twice: a label has only one value", name)
		}
		all[name] = value
	}
	return all, nil
}

// Validate rejects invalid labels. A right without labels would cover the whole fleet; an access right does that.
func (x *FleetRight) Validate(*resource.Change) error {
	if len(x.Labels) == 0 {
		return problem.Invalid("labels", "must contain a label: for the whole fleet, create an access right for everything")
	}
	_, err := x.selector()
	return err
}

// fleetLevels maps the levels of fleet rights to those of access rights.
var fleetLevels = map[string]Level{"VIEW": View, "CHANGE": Change, "FULL": Full}

// FleetScopes returns the fleet rights of a user and of the user's groups.
func (s *Policy) FleetScopes(ctx context.Context, p Principal) (all []FleetScope, err error) {
	if p.User == 0 {
		return nil, nil
	}
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = fleetScopes(tx, p.User)
		return err
	})
	return all, err
}

// fleetScopes returns the fleet rights of a user and of the user's groups.
func fleetScopes(tx *store.Tx, user int64) (all []FleetScope, err error) {
	groups, err := tx.Links(user, "groups")
	if err != nil {
		return nil, err
	}
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(fleetRights),
		store.LinksTo{Targets: append(groups, user), Field: "userScope"}}}, func(r *store.Resource) error {
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
	return all, err
}

// fleetRightType is the type for reading rows outside of a request.
var fleetRightType = schema.Declare(&FleetRight{})
