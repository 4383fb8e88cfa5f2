package identity

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/secrets"
)

// Provider is an authorization server where users of the console can sign in.
type Provider struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// flowState describes a sign-in at a provider that a browser has started. It is kept in a sealed cookie, so that a client cannot forge it.
type flowState struct {
	Provider int64 `json:"provider"`
	// Until is when the sign-in expires, in Unix seconds.
	Until int64 `json:"until"`
	authn.Flow
}

// flowUse is the purpose that the cookie is sealed for.
const flowUse = "sign-in at a provider"

// flowLife is the maximum duration of a sign-in at the provider, in seconds.
const flowLife = 600

// flowName returns the name of the cookie of a sign-in at a provider. The cookie is SameSite=Lax, because the browser must send it when the
// provider redirects back.
func flowName(r *http.Request) string {
	return cookieNameOf(r) + "-flow"
}

func setFlow(w http.ResponseWriter, r *http.Request, value string, age int) {
	setCookie(w, r, flowName(r), value, http.SameSiteLaxMode, age)
}

// callbackURL returns the URL that a provider redirects the browser back to. Each provider has its own, so that a code of one provider is
// never sent to another (RFC 9700 section 4.4.2). The host is the one in the browser's request; a provider only redirects to registered
// URLs.
func callbackURL(r *http.Request, provider int64) string {
	scheme := "http"
	if overTLS(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host + "/sign-in/" + strconv.FormatInt(provider, 10) + "/callback"
}

// supportsBrowsers reports whether the authenticator can sign in users of a browser.
func (e *external) supportsBrowsers() bool {
	return e.saml != nil || e.certificates != nil || e.tokens != nil && e.tokens.People()
}

// Providers returns the authenticators that can sign in users of a browser.
func (s *Service) Providers(ctx context.Context) (list []Provider, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		all, err := s.loadExternals(tx)
		for _, e := range all {
			if e.supportsBrowsers() {
				list = append(list, Provider{e.id, e.name})
			}
		}
		return err
	})
	return list, err
}

// provider returns one of them; the problem ResourceNotFound if it does not exist.
func (s *Service) provider(ctx context.Context, id int64) (found *external, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		all, err := s.loadExternals(tx)
		for _, e := range all {
			if e.id == id && e.supportsBrowsers() {
				found = e
			}
		}
		return err
	})
	if err == nil && found == nil {
		err = problem.NotFound("authenticator %d does not support sign-in in a browser", id)
	}
	return found, err
}

// SendTo returns the URL that the browser is redirected to for the sign-in at a provider, and sets the cookie of the sign-in.
func (s *Service) SendTo(w http.ResponseWriter, r *http.Request, id int64) (to string, err error) {
	e, err := s.provider(r.Context(), id)
	if err != nil {
		return "", err
	}
	if e.certificates != nil { // the certificate is already known
		return "/", s.signInByCertificate(w, r, e)
	}
	sent := flowState{id, s.store.Now().Unix() + flowLife, authn.Flow{State: secrets.New(), Nonce: secrets.New(), Verifier: secrets.New()}}
	var found error
	if err := s.lookups.run(r.Context(), Remote(r), func() {
		if e.saml != nil {
			to, sent.Nonce, found = e.saml.StartSignIn(sent.State)
			return
		}
		to, found = e.tokens.StartSignIn(r.Context(), sent.Flow, callbackURL(r,
			id))
	}); err != nil {
		return "", err
	}
	if found != nil {
		s.reportSignIn(Unavailable, "", Remote(r))
		s.reportUnavailable(e.name, found)
		return "", errUnavailable(e.name)
	}
	sealed, err := s.seal(r.Context(), flowUse, sent)
	if err != nil {
		return "", err
	}
	setFlow(w, r, sealed, flowLife)
	return to, nil
}

// errFlow reports that a browser returned from a provider without a valid sign-in cookie.
var errFlow = unauthorized("InvalidAuthorizationCredentials", "the sign-in was not started in this browser or has expired")

// flowOf returns the sign-in state of a browser that returns from a provider.
func (s *Service) flowOf(r *http.Request, provider int64) (sent flowState, err error) {
	c, err := r.Cookie(flowName(r))
	if err != nil {
		return sent, errFlow
	}
	if err := s.unseal(r.Context(), flowUse, c.Value, &sent); err != nil {
		return sent, err
	}
	if sent.Provider != provider || sent.Until <= s.store.Now().Unix() {
		return sent, errFlow
	}
	return sent, nil
}

// CompleteSignIn signs in a browser that returns from a provider, starts a session and sets its cookie. The problem
// InvalidAuthorizationCredentials is returned if the sign-in was not started in this browser, or if the provider or the manager refuses it.
func (s *Service) CompleteSignIn(w http.ResponseWriter, r *http.Request, provider int64) error {
	sent, err := s.flowOf(r, provider)
	if err != nil {
		return err
	}
	setFlow(w, r, "", -1) // valid once
	e, err := s.provider(r.Context(), sent.Provider)
	if err != nil {
		return err
	}
	p, err := s.redeem(r.Context(), e, sent.Flow, callbackURL(r, provider), r.URL.Query(), Remote(r))
	if err != nil {
		return err
	}
	return s.startBrowserSession(w, r, p)
}

// startBrowserSession starts a console session and sets its cookie.
func (s *Service) startBrowserSession(w http.ResponseWriter, r *http.Request, p authz.Principal) error {
	credentials, err := s.startSession(r.Context(), p, Remote(r), r.UserAgent())
	if err == nil {
		SetCookie(w, r, credentials)
	}
	return err
}

// redeem exchanges the code of a returning browser for the principal.
func (s *Service) redeem(ctx context.Context, e *external, f authn.Flow, back string, came url.Values, remote string) (p authz.Principal,
	err error) {
	var id authn.Identity
	var found error
	if e.tokens == nil {
		return p, errFlow
	}
	if err := s.lookups.run(ctx, remote, func() { id, found = e.tokens.Redeem(ctx, f, back, came) }); err != nil {
		return p, err
	}
	return s.finishSignIn(ctx, e, id, found, remote)
}

// finishSignIn returns the principal of an identity that a provider verified. found is the provider's error, if any.
func (s *Service) finishSignIn(ctx context.Context, e *external, id authn.Identity, found error, remote string) (p authz.Principal,
	err error) {
	if errors.Is(found, authn.ErrUnavailable) {
		s.reportSignIn(Unavailable, "", remote)
		s.reportUnavailable(e.name, found)
		return p, errUnavailable(e.name)
	}
	if found == nil {
		p, found = s.admit(ctx, e, id, nil, true, authz.ConsoleInterface)
	}
	if errors.Is(found, authn.ErrWrong) || errors.Is(found, errLogin) {
		s.reportSignIn(Refused, id.Name, remote)
		return p, errLogin
	}
	if found == nil {
		s.reportSignIn(Accepted, p.Name, remote)
	}
	return e.withProvider(p), found
}

// startSession starts a console session and returns the credentials for its cookie.
func (s *Service) startSession(ctx context.Context, p authz.Principal, remote, client string) (credentials string, err error) {
	caller := authz.CallerOf(p)
	caller.Console, caller.Remote, caller.Client = true, remote, client
	err = s.store.Update(ctx, caller.Author(""), func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: authz.PolicyOf(s.store).API(), Caller: caller, SetFields: map[string]bool{},
			Extra: map[string]string{}}
		x := &UserSession{}
		x.Type = "UserSession"
		_, err := c.Create(c.API.TypeNamed(x.Type), x)
		credentials = c.Extra[resource.Cookie]
		return err
	})
	return credentials, err
}
