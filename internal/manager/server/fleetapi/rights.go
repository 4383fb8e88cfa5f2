package fleetapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/identity"
)

// instancesPath is the collection of service points.
const instancesPath = root + "/fleetInstances"

// limitedKey is the key of limited in the context of a request.
type limitedKey struct{}

// limited holds a user's fleet rights on labels: scopes are all of them, level applies to the service point in the request.
type limited struct {
	scopes []authz.FleetScope
	level  authz.Level
}

// limitsOf gives the rights by labels that a request is within; nil where it is of an administrator, or reads what it sees all of.
func limitsOf(ctx context.Context) *limited {
	l, _ := ctx.Value(limitedKey{}).(*limited)
	return l
}

// limitByLabels holds a request against rights on labels, and gives it with them. sees says that its user sees the whole fleet otherwise.
// Invisible resources do not exist for it (404), and changes of visible ones beyond its rights are refused (403).
func (a *API) limitByLabels(r *http.Request, p authz.Principal, needed authz.Level, sees bool) (*http.Request, error) {
	scopes, err := a.Scopes(r.Context(), p)
	if err != nil {
		return nil, err
	}
	if len(scopes) == 0 {
		if sees {
			return nil, identity.Forbidden(p)
		}
		return nil, problem.Forbidden("AccessDenied", "you do not have permission to view the fleet: it requires access rights on "+
			"everything, or rights on labels (fleetRights)")
	}
	l := &limited{scopes: scopes}
	r = r.WithContext(context.WithValue(r.Context(), limitedKey{}, l))
	if r.URL.Path == instancesPath {
		return r, nil
	}
	if !strings.HasPrefix(r.URL.Path, instancesPath+"/") {
		return nil, problem.Forbidden("AccessDenied", "%s can only use %s, because its rights are limited to labels (fleetRights)", p.Name,
			instancesPath)
	}
	id := r.PathValue("id")
	labels, err := a.Fleet.Labels(r.Context(), id)
	if err != nil {
		return nil, err
	}
	best := authz.Hide
	defer func() { l.level = best }()
	for _, s := range scopes {
		if s.Covers(labels) {
			best = max(best, s.Level)
		}
	}
	switch {
	case best >= needed:
		return r, nil
	case best == authz.Hide && !sees:
		return nil, fleet.UnknownProblem(id)
	}
	return nil, problem.Forbidden("AccessDenied", "%s has the level %s for this service point; this requires %s (fleetRights)", p.Name,
		max(best, authz.View), needed)
}

// levelFor returns the level that a change requires: FULL for a new enrolment or a deletion, otherwise CHANGE.
func levelFor(r *http.Request) authz.Level {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, instancesPath+"/"), "/")
	if len(parts) == 1 && r.Method == http.MethodDelete || len(parts) > 1 && slices.Contains([]string{"registrationKey", "nodes"}, parts[1]) {
		return authz.Full
	}
	return authz.Change
}
