// Package signin handles sign-in and sign-out in a browser through identity providers (OpenID Connect, SAML; docs/sign-in.md).
package signin

import (
	"net/http"
	"net/url"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server/middleware"
)

// API serves the requests of browsers before and after sign-in.
type API struct {
	Chain    *middleware.Chain
	Identity *identity.Service
}

// listProviders lists the identity providers for sign-in in a browser. It needs no authentication.
func (a *API) listProviders(w http.ResponseWriter, r *http.Request) error {
	list, err := a.Identity.Providers(r.Context())
	if err == nil {
		family.WriteJSON(w, http.StatusOK, map[string]any{"data": append([]identity.Provider{}, list...)})
	}
	return err
}

// sendTo redirects a browser to a provider. A rejected user is redirected to the console, which shows the reason.
func (a *API) sendTo(w http.ResponseWriter, r *http.Request) error {
	id, err := providerOf(r)
	to := ""
	if err == nil {
		to, err = a.Identity.SendTo(w, r, id)
	}
	return toConsole(w, r, to, err)
}

// completeSignIn signs in a user that a provider has redirected back.
func (a *API) completeSignIn(w http.ResponseWriter, r *http.Request) error {
	id, err := providerOf(r)
	if err == nil {
		err = a.Identity.CompleteSignIn(w, r, id)
	}
	return toConsole(w, r, "/", err)
}

// providerOf returns the provider named in a path.
func providerOf(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, problem.NotFound("%s does not exist", r.URL.Path)
	}
	return id, nil
}

// toConsole sends a browser on, or to the sign-in page with the code of what was refused.
func toConsole(w http.ResponseWriter, r *http.Request, to string, err error) error {
	if p, ok := problem.As(err); ok {
		to, err = "/#refused="+url.QueryEscape(p.Code), nil
	}
	if err == nil {
		http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // to a page of our own, or where the provider says that people are sent
	}
	return err
}

// Routes adds the paths that the console, identity providers and the browsers that they send know.
func (a *API) Routes(mux middleware.Mux) {
	console := middleware.Plain("console")
	mux.Handle("/sign-in/providers", a.Chain.Reading(console, a.listProviders))
	mux.Handle("/sign-in/{id}/callback", a.Chain.Reading(console, a.completeSignIn))
	mux.Handle("/sign-in/{id}", a.Chain.Reading(console, a.sendTo))
	mux.Handle(authn.SAMLMetadataPath, a.Chain.Reading(console, func(w http.ResponseWriter, r *http.Request) error {
		metadata, err := a.Identity.SAMLMetadata(r.Context())
		if err == nil {
			w.Header().Set("Content-Type", "application/samlmetadata+xml")
			_, err = w.Write(metadata)
		}
		return err
	}))
	mux.Handle(authn.SAMLConsumePath, a.Chain.Handler(console, func(w http.ResponseWriter, r *http.Request) error {
		switch r.Method {
		case http.MethodPost:
			to, err := a.Identity.Consume(w, r)
			return toConsole(w, r, to, err)
		case http.MethodGet:
			return toConsole(w, r, "/", a.Identity.CompleteSAMLSignIn(w, r))
		}
		return family.WrongMethod(w, r, http.MethodGet, http.MethodPost)
	}))
	mux.Handle(authn.SAMLLogoutPath, a.Chain.Handler(console, func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodPost {
			return family.WrongMethod(w, r, http.MethodGet, http.MethodPost)
		}
		to, err := a.Identity.EndSAMLSession(w, r)
		return toConsole(w, r, to, err)
	}))
	mux.Handle("/sign-out", a.Chain.Reading(console, a.signOutAt))
}

// signOutAt returns the address at which the user also signs out of the identity provider.
func (a *API) signOutAt(w http.ResponseWriter, r *http.Request) error {
	p, err := a.Identity.AuthenticateAny(r)
	if err != nil {
		return err
	}
	to, err := a.Identity.SignOutAt(r.Context(), p)
	if err == nil {
		family.WriteJSON(w, http.StatusOK, map[string]string{"to": to})
	}
	return err
}
