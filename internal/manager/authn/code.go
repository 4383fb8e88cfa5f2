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

// Flow is one person's way to a provider and back: the authorization code flow (OpenID Connect Core section 3.1) with a proof key (RFC
// 7636). The browser keeps it meanwhile.
type Flow struct {
	// State comes back with the code, Nonce in the token; Verifier proves that who redeems the code is who asked for it.
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// People reports whether people can be sent there: the issuer says where to, and knows the manager by a name.
func (t *Tokens) People() bool { return t.Issuer != "" && t.ClientID != "" }

// Begin gives where a person is sent, to come back to an address with what Redeem takes. ErrAway says that the issuer does not answer.
func (t *Tokens) Begin(ctx context.Context, f Flow, back string) (to string, err error) {
	_, end, provider, err := t.discovered(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	return t.config(provider, back).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// Redeem gives who came back, with these parameters, from where Begin sent them. ErrWrong says that it is nobody who was sent, or whom the
// issuer does not let in; ErrAway that the issuer does not answer.
func (t *Tokens) Redeem(ctx context.Context, f Flow, back string, came url.Values) (id Identity, err error) {
	if subtle.ConstantTimeCompare([]byte(came.Get("state")), []byte(f.State)) != 1 || f.State == "" {
		return id, fmt.Errorf("%w: nobody was sent there with that state", ErrWrong)
	}
	if came.Get("code") == "" {
		return id, fmt.Errorf("%w: %s", ErrWrong, came.Get("error"))
	}
	ctx, end, provider, err := t.discovered(ctx)
	if err != nil {
		return id, err
	}
	defer end()
	// The issuer says who it is, where it has said that it does, so that no other one's code is taken to it (RFC 9207).
	var says struct {
		Issuer bool `json:"authorization_response_iss_parameter_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return id, away("%w", err)
	}
	if (says.Issuer || came.Has("iss")) && came.Get("iss") != t.Issuer {
		return id, fmt.Errorf("%w: another issuer answers", ErrWrong)
	}
	token, err := t.config(provider, back).Exchange(ctx, came.Get("code"), oauth2.VerifierOption(f.Verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		return id, fmt.Errorf("%w: %w", ErrWrong, err)
	case err != nil:
		return id, away("redeeming a code: %w", err)
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
	if claims[t.GroupClaim] == nil && provider.UserInfoEndpoint() != "" { // many providers say groups there alone
		user, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return id, away("asking who somebody is: %w", err)
		}
		if user.Subject != known.Subject { // OpenID Connect Core section 5.3.2
			return id, fmt.Errorf("%w: the issuer speaks of somebody else", ErrWrong)
		}
		var more map[string]json.RawMessage
		if err := user.Claims(&more); err != nil {
			return id, away("%w", err)
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

// rediscovered is how long what an issuer says of itself is good.
const rediscovered = 10 * time.Minute

// discovered gives what the issuer says of itself, and the context to ask it with until end is called.
func (t *Tokens) discovered(ctx context.Context) (_ context.Context, end context.CancelFunc, provider *oidc.Provider, err error) {
	if t.once.Do(t.prepare); t.failed != nil {
		return nil, nil, nil, away("%w", t.failed)
	}
	ctx, end = asking(ctx)
	ctx = oidc.ClientContext(ctx, t.client)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.provider != nil && t.Now().Sub(t.asked) < rediscovered {
		return ctx, end, t.provider, nil
	}
	if provider, err = oidc.NewProvider(ctx, t.Issuer); err != nil {
		end()
		return nil, nil, nil, away("asking %s who it is: %w", t.Issuer, err)
	}
	for _, u := range []string{provider.Endpoint().AuthURL, provider.Endpoint().TokenURL, provider.UserInfoEndpoint()} {
		if u != "" && !strings.HasPrefix(u, "https://") { // passwords and tokens travel there
			end()
			return nil, nil, nil, away("%s names %q, which is not https", t.Issuer, u)
		}
	}
	t.provider, t.asked = provider, t.Now()
	return ctx, end, provider, nil
}

// config is what the manager is to the issuer.
func (t *Tokens) config(provider *oidc.Provider, back string) *oauth2.Config {
	c := &oauth2.Config{ClientID: t.ClientID, ClientSecret: t.ClientSecret, Endpoint: provider.Endpoint(), RedirectURL: back,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if t.InForm || t.ClientSecret == "" {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return c
}
