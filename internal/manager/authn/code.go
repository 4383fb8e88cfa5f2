package authn

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Flow is the state of one sign-in at a provider: the authorization code flow (OpenID Connect Core section 3.1) with PKCE (RFC 7636). It is
// kept in the browser.
type Flow struct {
	// State is returned with the code, Nonce in the token. Verifier proves that the code is redeemed by the client that requested it.
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// People reports whether browsers can sign in at the issuer: issuer and client ID are set.
func (t *Tokens) People() bool { return t.Issuer != "" && t.ClientID != "" }

// StartSignIn returns the URL of the sign-in page of the issuer. back is the redirect URL, whose parameters Redeem takes. It returns
// ErrUnavailable if the issuer does not answer.
func (t *Tokens) StartSignIn(ctx context.Context, f Flow, back string) (to string, err error) {
	_, end, provider, err := t.discover(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	return t.config(provider, back).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// Redeem exchanges the code in the parameters came of a returning browser for the user. It returns ErrWrong if the sign-in was not started
// with this Flow or the issuer refuses it, and ErrUnavailable if the issuer does not answer.
func (t *Tokens) Redeem(ctx context.Context, f Flow, back string, came url.Values) (id Identity, err error) {
	if subtle.ConstantTimeCompare([]byte(came.Get("state")), []byte(f.State)) != 1 || f.State == "" {
		return id, fmt.Errorf("%w: the state is unknown", ErrWrong)
	}
	if came.Get("code") == "" {
		return id, fmt.Errorf("%w: %s", ErrWrong, came.Get("error"))
	}
	ctx, end, provider, err := t.discover(ctx)
	if err != nil {
		return id, err
	}
	defer end()
	// RFC 9207: the response must name the issuer if the issuer announces that. Otherwise a code of another issuer could be sent to it.
	var says struct {
		Issuer bool `json:"authorization_response_iss_parameter_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return id, unavailable("%w", err)
	}
	if (says.Issuer || came.Has("iss")) && came.Get("iss") != t.Issuer {
		return id, fmt.Errorf("%w: another issuer responded", ErrWrong)
	}
	token, err := t.config(provider, back).Exchange(ctx, came.Get("code"), oauth2.VerifierOption(f.Verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		return id, fmt.Errorf("%w: %w", ErrWrong, err)
	case err != nil:
		return id, unavailable("redeeming a code: %w", err)
	}
	text, _ := token.Extra("id_token").(string)
	keys, err := t.keySet(ctx)
	if err != nil {
		return id, err
	}
	known, err := t.verifier(t.ClientID, keys).Verify(ctx, text)
	if err != nil || subtle.ConstantTimeCompare([]byte(known.Nonce), []byte(f.Nonce)) != 1 {
		return id, fmt.Errorf("%w: the token that was issued: %w", ErrWrong, errors.Join(err, errors.New("or it is of another sign-in")))
	}
	var claims map[string]json.RawMessage
	if err := known.Claims(&claims); err != nil {
		return id, fmt.Errorf("%w: %w", ErrWrong, err)
	}
	if claims[t.GroupClaim] == nil && provider.UserInfoEndpoint() != "" { // many providers return groups only there
		user, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return id, unavailable("querying the user info: %w", err)
		}
		if user.Subject != known.Subject { // OpenID Connect Core section 5.3.2
			return id, fmt.Errorf("%w: the issuer returned another user", ErrWrong)
		}
		var more map[string]json.RawMessage
		if err := user.Claims(&more); err != nil {
			return id, unavailable("%w", err)
		}
		for name, value := range more {
			if claims[name] == nil {
				claims[name] = value
			}
		}
	}
	if id = t.identity(claims); id.Name == "" {
		return id, fmt.Errorf("%w: the token has no %s", ErrWrong, t.UserClaim)
	}
	return id, nil
}

// discoveryLife is the lifetime of the cached discovery document.
const discoveryLife = 10 * time.Minute

// discover returns the discovery document of the issuer, and the context for requests to it until end is called.
func (t *Tokens) discover(ctx context.Context) (_ context.Context, end context.CancelFunc, provider *oidc.Provider, err error) {
	if t.once.Do(t.prepare); t.failed != nil {
		return nil, nil, nil, unavailable("%w", t.failed)
	}
	ctx, end = withAskTime(ctx)
	ctx = oidc.ClientContext(ctx, t.client)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.provider != nil && t.Now().Sub(t.asked) < discoveryLife {
		return ctx, end, t.provider, nil
	}
	if provider, err = oidc.NewProvider(ctx, t.Issuer); err != nil {
		end()
		return nil, nil, nil, unavailable("query the issuer %s: %w", t.Issuer, err)
	}
	for _, u := range []string{provider.Endpoint().AuthURL, provider.Endpoint().TokenURL, provider.UserInfoEndpoint()} {
		if u != "" && !strings.HasPrefix(u, "https://") { // passwords and tokens are sent there
			end()
			return nil, nil, nil, unavailable("%s names %q, which is not https", t.Issuer, u)
		}
	}
	t.provider, t.asked = provider, t.Now()
	return ctx, end, provider, nil
}

// config returns the client settings for the issuer.
func (t *Tokens) config(provider *oidc.Provider, back string) *oauth2.Config {
	c := &oauth2.Config{ClientID: t.ClientID, ClientSecret: t.ClientSecret, Endpoint: provider.Endpoint(), RedirectURL: back,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if t.InForm || t.ClientSecret == "" {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return c
}
