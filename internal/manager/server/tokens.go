package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
)

// tokensPath is where people make and revoke bearer tokens and key sets (ours). Those belong to them and never do more than they may.
// Administrators see and revoke all; they make none for others: whoever made one of another administrator would approve the own changes
// with it.
const tokensPath = Base + "/tokens"

// mostTokenDays is how long a token that is made over the API is good at most, in days.
const mostTokenDays = 3650

// madeToken is a token or key set as it is answered when it is made: its secret is shown once.
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

// tokens answers /api/v2/tokens and what is below it.
func (m *Manager) tokens(w http.ResponseWriter, r *http.Request) error {
	p, err := m.anybody(r)
	if err != nil {
		return err
	}
	caller := authz.CallerOf(p)
	id := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, tokensPath), "/")
	if err := p.OpensAddress(); err != nil && (r.Method != http.MethodDelete || id == "" || id != caller.Token) { // which it may end
		return err
	}
	if caller.MustReset {
		return problem.Forbidden("PasswordResetRequired", "%s has to set a new password first: PATCH %s/users/%d with the field password",
			caller.Name,
			Base, caller.User)
	}
	switch {
	case id == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return m.listTokens(w, r, caller)
	case id == "" && r.Method == http.MethodPost:
		return m.makeToken(w, r, caller)
	case id != "" && !strings.Contains(id, "/") && r.Method == http.MethodDelete:
		return m.revokeToken(w, r, caller, id)
	case id == "":
		return wrongMethod(w, r, http.MethodGet, http.MethodHead, http.MethodPost)
	case strings.Contains(id, "/"):
		return problem.NotFound("there is nothing at %s", r.URL.Path)
	}
	return wrongMethod(w, r, http.MethodDelete)
}

// seenTokens are those that a caller sees: an administrator all of them, a user the own ones.
func (m *Manager) seenTokens(r *http.Request, caller resource.Caller) (list []identity.Token, err error) {
	all, err := m.Identity.Tokens(r.Context())
	list = []identity.Token{}
	for _, t := range all {
		if caller.Administrator || caller.User != 0 && t.UserID == caller.User || caller.Token != "" && t.ID == caller.Token {
			list = append(list, t)
		}
	}
	return list, err
}

func (m *Manager) listTokens(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	list, err := m.seenTokens(r, caller)
	if err == nil {
		writeJSON(w, http.StatusOK, map[string]any{"count": len(list), "data": list})
	}
	return err
}

// mayMakeTokens refuses who may make none: programs, whose tokens would outlive the one that they were made with.
func mayMakeTokens(caller resource.Caller) error {
	switch {
	case caller.User == 0 || caller.Token != "" || strings.HasPrefix(caller.Credential, "oauth "):
		return problem.Forbidden("AccessDenied", "people make and revoke tokens, signed in by a session or a password; a token does not")
	case caller.ReadOnly:
		return problem.Forbidden("ReadOnlySession", "this session or token may only read")
	}
	return nil
}

func (m *Manager) makeToken(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	if err := mayMakeTokens(caller); err != nil {
		return err
	}
	members, _, err := readJSON(w, r, rest.SmallBody)
	if err != nil {
		return err
	}
	values, err := texts(members, "name", "kind", "role", "expires")
	if err != nil {
		return err
	}
	if r.Header.Get("x-portolan-dry-run") != "" {
		return problem.BadRequest("InvalidHeaderValue", "x-portolan-dry-run: a token is not tried")
	}
	scopes, err := m.scopes(members["scopes"])
	if err != nil {
		return err
	}
	kind, role := values["kind"], values["role"]
	if kind == "" {
		kind = identity.BearerToken
	}
	if kind != identity.BearerToken && kind != identity.KeySet {
		return problem.Invalid("kind", "%q is neither %s nor %s", kind, identity.BearerToken, identity.KeySet)
	}
	if role == "" {
		role = authz.Analyst
	}
	now := m.Store.Now()
	ends := now.Add(identity.DefaultLife)
	if text := values["expires"]; text != "" {
		if ends, err = time.Parse(time.RFC3339, text); err != nil || !ends.After(now) || ends.After(now.AddDate(0, 0, mostTokenDays)) {
			return problem.Invalid("expires", "%q is no time to come (2026-12-31T12:00:00Z) within ten years", text)
		}
	}
	made := madeToken{Kind: kind, Name: values["name"], Role: role, Scopes: scopes.List(), User: caller.Name,
		Expires: ends.UTC().Truncate(time.Second)}
	by, err := authorOf(r, caller)
	if err != nil {
		return err
	}
	grant := identity.Grant{Name: made.Name, Role: role, Scopes: scopes, Life: ends.Sub(now), By: by, Of: &identity.Maker{User: caller.User,
		Session: caller.Session, Remote: identity.Remote(r)}}
	if kind == identity.BearerToken {
		made.ID, made.Token, err = m.Identity.CreateBearer(r.Context(), grant)
	} else {
		made.ClientID, made.ClientSecret, err = m.Identity.CreateKeySet(r.Context(), grant)
		made.ID = made.ClientID
	}
	if err != nil {
		return err
	}
	m.log.Info("a token was made", "id", made.ID, "kind", kind, "name", made.Name, "role", role, "scopes", string(scopes), "user", caller.Name,
		"remote",
		identity.Remote(r))
	w.Header().Set("Location", fmt.Sprint(tokensPath, "/", made.ID))
	writeJSON(w, http.StatusCreated, made)
	return nil
}

// scopes reads the member scopes of a body.
func (m *Manager) scopes(raw json.RawMessage) (authz.Scopes, error) {
	var words []string
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if json.Unmarshal(raw, &words) != nil {
		return "", problem.Invalid("scopes", "must be a list of strings")
	}
	return authz.ScopesOf(words, authz.ScopeNames(m.Address))
}

func (m *Manager) revokeToken(w http.ResponseWriter, r *http.Request, caller resource.Caller, id string) error {
	if err := mayMakeTokens(caller); err != nil && (caller.Token == "" || id != caller.Token) { // whoever has a token may end it
		return err
	}
	list, err := m.seenTokens(r, caller)
	if err != nil {
		return err
	}
	by, err := authorOf(r, caller)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.ID == id {
			if err := m.Identity.Revoke(r.Context(), id, by); err != nil {
				return err
			}
			m.log.Info("a token was revoked", "id", id, "name", t.Name, "user", t.User, "by", caller.Name, "remote", identity.Remote(r))
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return problem.NotFound("there is no token or key set %q", id)
}
