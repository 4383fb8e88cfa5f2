// Package addressapi is the address API: it finds the caller of a request and hands the request to the resource engine, whose operations
// follow from the declared types. Tokens and the status are operations of its own.
package addressapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/figures"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server/middleware"
)

// API is the address API of a manager.
type API struct {
	REST     *rest.Server
	Address  *resource.API
	Identity *identity.Service
	// Status returns the status of the manager. Its type is a component of the OpenAPI document.
	Status func(ctx context.Context) (any, error)
	// Figures are the figures over time; nil without them. SeesServicePoint returns an error if a user does not see a service point.
	Figures          figures.Store
	SeesServicePoint ServicePointCheck
	trends           trends
	// Sample is a value of the type that Status returns.
	Sample any
	// NameServer returns the address and port at which a server answers DNS queries.
	NameServer func(ctx context.Context, server *store.Resource) (netip.AddrPort, error)
	// Resolver is the name server for look-ups of the manager itself; the zero value means that of the system.
	Resolver netip.AddrPort
	// Rehearse starts the rehearsal of a backup, Rehearsal returns the running or last one.
	Rehearse  func(row *store.Resource) error
	Rehearsal func() Rehearsal
	Log       *slog.Logger
}

// Family declares the operations that follow from no declared type.
func (a *API) Family() *family.Family {
	return &family.Family{Name: "address", Root: published.Base, Tag: "tokens", Errors: family.PlainErrors(),
		Paths: slices.Concat(a.tokenPaths(), a.preferencePaths(), []family.Path{a.statusPath(), a.explanationPath(), a.figuresDeclaration(),
			a.forecastDeclaration(), a.lookupDeclaration(), a.rehearsalDeclaration()}),
		Schemas: map[string]any{"Token": identity.Token{}, "MadeToken": madeToken{}, "Status": a.Sample,
			"DhcpExplanation": dhcppublish.Explanation{}, "Preference": identity.Preference{}, "Figures": Figures{},
			"SpaceForecast": SpaceForecast{}, "DnsLookup": Lookup{}, "BackupRehearsal": Rehearsal{}}}
}

// Serve handles a request to the resource engine. A login request has no credentials, or those to verify.
func (a *API) Serve(w http.ResponseWriter, r *http.Request) error {
	var caller resource.Caller
	if r.Method != http.MethodPost || r.URL.Path != published.Base+"/sessions" {
		var err error
		if caller, err = a.Caller(r); err != nil {
			return err
		}
	} else if len(r.Header.Values("Authorization")) > 1 {
		return problem.BadRequest("InvalidHeaderValue", "Authorization: given more than once")
	}
	caller.Remote, caller.Client = identity.Remote(r), r.UserAgent()
	return a.REST.Serve(w, r, caller)
}

// Caller returns the caller of a request.
func (a *API) Caller(r *http.Request) (resource.Caller, error) {
	p, err := a.anyPrincipal(r)
	if err == nil {
		err = p.OpensAddress()
	}
	return authz.CallerOf(p), err
}

// anyPrincipal returns the principal of a request, even if its token is for another API.
func (a *API) anyPrincipal(r *http.Request) (authz.Principal, error) {
	if r.URL.Path == published.Base+"/changes" { // an open page reconnects without a user's action
		r = identity.Quietly(r)
	}
	p, err := a.Identity.AuthenticateAny(r)
	middleware.NoteUser(r.Context(), p.Name)
	return p, err
}

// callerKey is the key of the caller in the context of a request.
type callerKey struct{}

// callerOf returns the caller that admit found.
func callerOf(r *family.Request) resource.Caller {
	caller, _ := r.Context().Value(callerKey{}).(resource.Caller)
	return caller
}

// schemes are the authentication schemes that the caller may use.
var schemes = []string{"basic", "bearer"}

// admit admits the callers of the address API, but for those who have to set a new password first.
func (a *API) admit(r *http.Request) (*http.Request, error) {
	return a.checkAccess(r, func(p authz.Principal, _ resource.Caller) error { return p.OpensAddress() })
}

func (a *API) checkAccess(r *http.Request, opens func(p authz.Principal, caller resource.Caller) error) (*http.Request, error) {
	p, err := a.anyPrincipal(r)
	if err != nil {
		return nil, err
	}
	caller := authz.CallerOf(p)
	if err := opens(p, caller); err != nil {
		return nil, err
	}
	if caller.MustReset {
		return nil, problem.Forbidden("PasswordResetRequired", "%s must set a new password first: PATCH %s/users/%d with the field password",
			caller.Name, published.Base, caller.User)
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)), nil
}

// IsOwn reports whether a path is one of Family's: a multiplexer finds its operation.
func IsOwn(at string) bool {
	if slices.Contains([]string{statusPath, explainPath, lookupPath, rehearsalPath, tokensPath, preferencesPath, figuresPath,
		forecastPath}, at) {
		return true
	}
	id, below := strings.CutPrefix(at, tokensPath+"/")
	if !below {
		id, below = strings.CutPrefix(at, preferencesPath+"/")
	}
	return below && id != "" && id != "." && id != ".." && !strings.Contains(id, "/")
}

// statusPath is the path of the status.
const statusPath = published.Base + "/status"

// statusPath declares the status of the manager.
func (a *API) statusPath() family.Path {
	return family.Path{Pattern: statusPath, Operations: []family.Operation{{
		Method: http.MethodGet, ID: "getStatus", Summary: "Status of the manager, with its alarms (Portolan extension)",
		Description: "Versions, the database, backups, the fleet, nearly full networks, certificates, and alarms. Requires rights on " +
			"everything.",
		Access:   family.Access{Schemes: schemes, Admit: a.admit},
		Success:  family.Success{Status: http.StatusOK, Description: "The status.", Schema: family.Ref("Status")},
		Problems: []int{403}, Handle: a.showStatus,
	}}}
}

// showStatus returns the status to callers that may see all data.
func (a *API) showStatus(w http.ResponseWriter, r *family.Request) error {
	if caller := callerOf(r); caller.Limited() {
		return problem.Forbidden("AccessDenied", "%s does not have permission to view the status: this requires access rights to everything",
			caller.Name)
	}
	s, err := a.Status(r.Context())
	if err == nil {
		family.WriteJSON(w, http.StatusOK, s)
	}
	return err
}
