package addressapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server/middleware"
)

// tokensPath is the path at which users create and revoke bearer tokens and key sets (Portolan extension). A token never exceeds the
// rights of its user.
// Administrators see and revoke all tokens but create none for others: with a token of another administrator they could approve their
// own changes.
const tokensPath = published.Base + "/tokens"

// maxTokenDays is the maximum lifetime of a token created through the API, in days.
const maxTokenDays = 3650

// madeToken is the response to the creation of a token or key set. Only this response contains the secret.
type madeToken struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Scopes  []string  `json:"scopes,omitempty"`
	User    string    `json:"user,omitempty"`
	Expires time.Time `json:"expires"`
	// Token is a bearer token's; ClientID and ClientSecret are a key set's.
	Token        string `json:"token,omitempty"`
	ClientID     string `json:"clientId,omitempty"`
	ClientSecret string `json:"clientSecret,omitempty"`
}

// tokenPaths declares the operations on tokens.
func (a *API) tokenPaths() []family.Path {
	text := family.Text()
	access := family.Access{Schemes: schemes, Admit: a.admit}
	made := family.Object(family.Schema{"name": family.Schema{"type": "string", "minLength": 1, "maxLength": 128},
		"kind":    family.Schema{"enum": []string{identity.BearerToken, identity.KeySet}},
		"role":    family.Schema{"enum": []string{authz.Analyst, authz.Administrator}},
		"expires": family.Schema{"type": "string", "format": "date-time"},
		"scopes": family.Schema{"type": "array", "items": text, "description": "Further limits beside its role: " +
			"address, fleet, or collections whose resources it may change. None: no limits."}}, "name")
	return []family.Path{
		{Pattern: tokensPath, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "listTokens", Summary: "List the bearer tokens and key sets (Portolan extension)", Access: access,
			Description: "Lists the caller's tokens, or all of them for administrators, without their secrets.",
			Success:     family.Success{Status: http.StatusOK, Description: "The tokens.", Schema: family.DataOf("Token")},
			Handle:      a.listTokens,
		}, {
			Method: http.MethodPost, ID: "makeToken", Summary: "Create a bearer token or a key set (Portolan extension)", Access: access,
			Description: "It belongs to the caller, who must be signed in by a session or a password, and never has more rights than that " +
				"user. Its secret is shown once. It is valid for 90 days unless expires is set.",
			Body:     &family.Body{Schema: made, Example: family.Schema{"name": "ci", "role": authz.Analyst}},
			Success:  family.Success{Status: http.StatusCreated, Description: "The token, with its secret.", Schema: family.Ref("MadeToken")},
			Problems: []int{403, 409}, Handle: a.makeToken,
		}}},
		{Pattern: tokensPath + "/{id}", Parameters: []family.Parameter{{Name: "id", Description: "The id of the token or key set."}},
			Operations: []family.Operation{{
				Method: http.MethodDelete, ID: "revokeToken", Summary: "Revoke a bearer token or a key set (Portolan extension)",
				Access:      family.Access{Schemes: schemes, Admit: a.admitRevoking},
				Description: "The token and the access tokens exchanged for it are refused from then on.",
				Success:     family.Success{Status: http.StatusNoContent, Description: "It is revoked."},
				Problems:    []int{403, 404}, Handle: a.revokeToken,
			}}},
	}
}

// admitRevoking admits also a token that is not for the address API where it is to be revoked itself.
func (a *API) admitRevoking(r *http.Request) (*http.Request, error) {
	return a.checkAccess(r, func(p authz.Principal, caller resource.Caller) error {
		if caller.Token != "" && caller.Token == r.PathValue("id") {
			return nil
		}
		return p.OpensAddress()
	})
}

// seenTokens returns the tokens visible to a caller: all for an administrator, otherwise the caller's own.
func (a *API) seenTokens(r *family.Request, caller resource.Caller) (list []identity.Token, err error) {
	all, err := a.Identity.Tokens(r.Context())
	list = []identity.Token{}
	for _, t := range all {
		if caller.Administrator || caller.User != 0 && t.UserID == caller.User || caller.Token != "" && t.ID == caller.Token {
			list = append(list, t)
		}
	}
	return list, err
}

func (a *API) listTokens(w http.ResponseWriter, r *family.Request) error {
	caller := callerOf(r)
	list, err := a.seenTokens(r, caller)
	if err == nil {
		family.WriteJSON(w, http.StatusOK, map[string]any{"count": len(list), "data": list})
	}
	return err
}

// mayMakeTokens rejects programs as callers: their new tokens would outlive the token that they use.
func mayMakeTokens(caller resource.Caller) error {
	switch {
	case caller.User == 0 || caller.Token != "" || strings.HasPrefix(caller.Credential, "oauth "):
		return problem.Forbidden("AccessDenied", "a token cannot create or revoke tokens: sign in with a session or a password")
	case caller.ReadOnly:
		return problem.Forbidden("ReadOnlySession", "this session or token may only read")
	}
	return nil
}

func (a *API) makeToken(w http.ResponseWriter, r *family.Request) error {
	caller := callerOf(r)
	if err := mayMakeTokens(caller); err != nil {
		return err
	}
	values, err := r.Strings("name", "kind", "role", "expires")
	if err != nil {
		return err
	}
	if r.Header.Get("x-portolan-dry-run") != "" {
		return problem.BadRequest("InvalidHeaderValue", "x-portolan-dry-run: the creation of a token does not support a dry run")
	}
	scopes, err := a.scopes(r.Members["scopes"])
	if err != nil {
		return err
	}
	kind, role := values["kind"], values["role"]
	if kind == "" {
		kind = identity.BearerToken
	}
	if kind != identity.BearerToken && kind != identity.KeySet {
		return problem.Invalid("kind", "must be %s or %s, not %q", identity.BearerToken, identity.KeySet, kind)
	}
	if role == "" {
		role = authz.Analyst
	}
	now := a.Address.Store.Now()
	ends := now.Add(identity.DefaultLife)
	if text := values["expires"]; text != "" {
		if ends, err = time.Parse(time.RFC3339, text); err != nil || !ends.After(now) || ends.After(now.AddDate(0, 0, maxTokenDays)) {
			return problem.Invalid("expires", "%q is not a future time within ten years, such as 2026-12-31T12:00:00Z", text)
		}
	}
	made := madeToken{Kind: kind, Name: values["name"], Role: role, Scopes: scopes.List(), User: caller.Name,
		Expires: ends.UTC().Truncate(time.Second)}
	by, err := middleware.Author(r.Request, caller)
	if err != nil {
		return err
	}
	grant := identity.Grant{Name: made.Name, Role: role, Scopes: scopes, Life: ends.Sub(now), By: by, Of: &identity.Maker{User: caller.User,
		Session: caller.Session, Remote: identity.Remote(r.Request)}}
	if kind == identity.BearerToken {
		made.ID, made.Token, err = a.Identity.CreateBearer(r.Context(), grant)
	} else {
		made.ClientID, made.ClientSecret, err = a.Identity.CreateKeySet(r.Context(), grant)
		made.ID = made.ClientID
	}
	if err != nil {
		return err
	}
	a.Log.Info("token created", "id", made.ID, "kind", kind, "name", made.Name, "role", role, "scopes", string(scopes), "user", caller.Name,
		"remote",
		identity.Remote(r.Request))
	w.Header().Set("Location", fmt.Sprint(tokensPath, "/", made.ID))
	family.WriteJSON(w, http.StatusCreated, made)
	return nil
}

// scopes reads the member scopes of a body.
func (a *API) scopes(raw json.RawMessage) (authz.Scopes, error) {
	var words []string
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if json.Unmarshal(raw, &words) != nil {
		return "", problem.Invalid("scopes", "must be a list of strings")
	}
	return authz.ScopesOf(words, authz.ScopeNames(a.Address))
}

func (a *API) revokeToken(w http.ResponseWriter, r *family.Request) error {
	caller, id := callerOf(r), r.PathValue("id")
	if err := mayMakeTokens(caller); err != nil && (caller.Token == "" || id != caller.Token) { // whoever has a token may end it
		return err
	}
	list, err := a.seenTokens(r, caller)
	if err != nil {
		return err
	}
	by, err := middleware.Author(r.Request, caller)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.ID == id {
			if err := a.Identity.Revoke(r.Context(), id, by); err != nil {
				return err
			}
			a.Log.Info("token revoked", "id", id, "name", t.Name, "user", t.User, "by", caller.Name, "remote", identity.Remote(r.Request))
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return problem.NotFound("token or key set %q does not exist", id)
}
