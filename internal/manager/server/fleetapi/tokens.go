package fleetapi

import (
	"encoding/json"
	"net/http"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/manager/identity"
)

// tokenPaths is the exchange of a key set for an access token.
func (a *API) tokenPaths() []family.Path {
	text := family.Text()
	credentials := family.Object(family.Schema{"grantType": family.Schema{"const": "ClientCredentials"},
		"clientCredentials": family.Object(family.Schema{"clientId": text, "clientSecret": text}, "clientId", "clientSecret")},
		"grantType", "clientCredentials")
	token := family.Object(family.Schema{"accessToken": text, "expiresIn": family.Schema{"type": "integer"}, "tokenType": text},
		"accessToken", "expiresIn", "tokenType")
	return []family.Path{{Pattern: "/v1/api/authentication/token", Operations: []family.Operation{{
		Method: http.MethodPost, ID: "exchangeToken", Summary: "Get an access token for a key set",
		Description: "Gives a bearer token that is good for five minutes.",
		Body: &family.Body{Schema: credentials, Example: family.Schema{"grantType": "ClientCredentials",
			"clientCredentials": family.Schema{"clientId": "id", "clientSecret": "secret"}}},
		Success: family.Success{Status: http.StatusOK, Description: "The token.", Schema: token},
		Handle:  a.exchangeToken,
	}}}}
}

// exchangeToken gives an access token for a key set (reference/fleet.md).
func (a *API) exchangeToken(w http.ResponseWriter, r *family.Request) error {
	values, err := r.Strings("grantType")
	if err != nil {
		return err
	}
	raw, ok := r.Members["clientCredentials"]
	if values["grantType"] == "" || !ok {
		return family.Missing("grantType", "clientCredentials")
	}
	if values["grantType"] != "ClientCredentials" {
		return problem.Invalid("grantType", "must be ClientCredentials, not %q", values["grantType"])
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(raw, &inner) != nil {
		return problem.Invalid("clientCredentials", "must be an object")
	}
	credentials, err := family.Strings(inner, "clientId", "clientSecret")
	if err != nil {
		return err
	}
	if credentials["clientId"] == "" || credentials["clientSecret"] == "" {
		return family.Missing("clientCredentials.clientId", "clientCredentials.clientSecret")
	}
	token, life, err := a.Identity.Exchange(r.Context(), credentials["clientId"], credentials["clientSecret"], identity.Remote(r.Request))
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, struct {
		AccessToken string `json:"accessToken"`
		ExpiresIn   int    `json:"expiresIn"`
		TokenType   string `json:"tokenType"`
	}{token, int(life.Seconds()), "Bearer"})
	return nil
}
