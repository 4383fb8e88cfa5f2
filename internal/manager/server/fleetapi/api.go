// Package fleetapi is the fleet API: fleet service points, their nodes and applications, Service Points v4, releases and rollouts
// (spec.md section 4, reference/fleet.md). Each file declares the operations that it handles.
package fleetapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// API is the fleet API of a manager.
type API struct {
	Fleet    *fleet.Service
	Identity *identity.Service
	// Scopes returns the parts of the fleet that a principal has rights on.
	Scopes func(ctx context.Context, p authz.Principal) ([]authz.FleetScope, error)
	// Endpoint returns the address at which service points enrol.
	Endpoint func() string
	// Releases returns the releases of this manager; release.ErrNone where it has none.
	Releases func() (release.State, error)
	Log      *slog.Logger
}

// root is the path of the collections of the fleet API.
const root = "/user/api/v1"

// Family declares the API.
func (a *API) Family() *family.Family {
	return &family.Family{Name: "fleet", Root: root, Tag: "fleet", Errors: family.BriefErrors(),
		Paths: slices.Concat(a.instancePaths(), a.applicationPaths(), a.servicePointPaths(), a.releasePaths(), a.rolloutPaths(),
			a.tokenPaths()),
		Schemas: map[string]any{
			"FleetServicePoint": fleet.Instance{}, "FleetServicePointDetail": fleet.Detail{}, "FleetServicePointCreated": fleet.Created{},
			"FleetApplication": fleet.ApplicationDetail{}, "FleetApplicationKind": fleet.Kind{}, "FleetEvent": fleet.Event{},
			"FleetRollout":       fleet.Rollout{},
			"FleetRolloutMember": fleet.Member{}, "FleetRelease": release.Release{}, "ServicePointV4": fleet.ServicePoint{},
			"AnycastService": checkin.AnycastService{}, "ApplicationLimits": checkin.Limits{}}}
}

// reading is the access of operations that change nothing, changing that of the others.
func (a *API) reading() family.Access  { return family.Access{Schemes: bearer, Admit: a.admitReader} }
func (a *API) changing() family.Access { return family.Access{Schemes: bearer, Admit: a.admitChanger} }

var bearer = []string{"bearer"}

// caller returns the principal of a request, which has a bearer token for the fleet API.
func (a *API) caller(r *http.Request) (authz.Principal, error) {
	p, err := a.Identity.Bearer(r)
	middleware.NoteUser(r.Context(), p.Name)
	if err == nil {
		err = p.OpensFleet()
	}
	return p, err
}

// admitReader admits every caller with a bearer token. Users without rights on everything need rights on labels, because service points are
// not part of the resource tree.
func (a *API) admitReader(r *http.Request) (*http.Request, error) {
	p, err := a.caller(r)
	if err == nil && p.Rights != nil && !p.Rights.SeesEverything() {
		return a.limitByLabels(r, p, authz.View, false)
	}
	return r, err
}

// admitChanger admits administrators with a bearer token, and users with rights on labels.
func (a *API) admitChanger(r *http.Request) (*http.Request, error) {
	p, err := a.caller(r)
	if err != nil {
		return nil, err
	}
	switch {
	case p.Role == authz.Administrator && p.ReadOnly:
		return nil, problem.Forbidden("ReadOnlySession", "this session or token may only read")
	case p.Role == authz.Administrator:
	case p.ReadOnly || p.User == 0:
		return nil, identity.Forbidden(p)
	default:
		if r, err = a.limitByLabels(r, p, levelFor(r), p.Rights == nil || p.Rights.SeesEverything()); err != nil {
			return nil, err
		}
	}
	author, err := middleware.Author(r, authz.CallerOf(p))
	if err != nil {
		return nil, err
	}
	return r.WithContext(fleet.WithAuthor(r.Context(), author)), nil
}

// repeatable returns the caller with the Idempotency-Key of its request; empty where it has none.
func (a *API) repeatable(r *http.Request) (string, error) {
	key, err := rest.IdempotencyKey(r)
	if key == "" || err != nil {
		return "", err
	}
	p, err := a.Identity.Bearer(r)
	return p.Name + "\n" + key, err
}

// valueOf returns the value of a name; nil where it has none.
func valueOf(values map[string]string, name string) *string {
	text, ok := values[name]
	if !ok {
		return nil
	}
	return &text
}

// nameSchema and the schemas after it are shared by several operations.
func nameSchema() family.Schema {
	return family.Schema{"type": "string", "minLength": 1, "maxLength": 128}
}

func descriptionSchema() family.Schema {
	return family.Schema{"type": []string{"string", "null"}, "maxLength": 4000}
}

func nodeCountSchema() family.Schema {
	return family.Schema{"type": "integer", "minimum": 1, "maximum": fleet.MaxNodeCount}
}

func textsSchema() family.Schema { return family.List(family.Text()) }

// pathParameter is the parameter id of a path.
func pathParameter(description string) []family.Parameter {
	return []family.Parameter{{Name: "id", Description: description}}
}

const servicePointID = "The id of the service point."
