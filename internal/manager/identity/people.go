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

// Provider is an authorization server that people are sent to by the console.
type Provider struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// sentPeople is a way to a provider that a browser is on. Its cookie is sealed: nobody else says where somebody was sent.
type sentPeople struct {
	Provider int64 `json:"provider"`
	// Until is when it is too late to come back, in seconds since 1970.
	Until int64 `json:"until"`
	authn.Flow
}

// flowUse is what the cookie is sealed for.
const flowUse = "sign-in at a provider"

// flowLife is how long somebody may take at the provider, in seconds.
const flowLife = 600

// flowName names the cookie of a way to a provider. It has to come along when the provider sends the browser back: it is Lax.
func flowName(r *http.Request) string {
	return cookieNameOf(r) + "-flow"
}

func setFlow(w http.ResponseWriter, r *http.Request, value string, age int) {
	keep(w, r, flowName(r), value, http.SameSiteLaxMode, age)
}

// backFrom is where a provider sends browsers back to: each to a place of its own, so that no other one's codes are taken to it (RFC 9700
// section 4.4.2). The manager takes the name that the browser knows it by: a provider sends nobody to an
// address that it was not told.
func backFrom(r *http.Request, provider int64) string {
	scheme := "http"
	if overTLS(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host + "/sign-in/" + strconv.FormatInt(provider, 10) + "/callback"
}

// people reports whether people can be sent there.
func (e *external) people() bool {
	return e.saml != nil || e.certificates != nil || e.tokens != nil && e.tokens.People()
}

// Providers gives those that people can be sent to.
func (s *Service) Providers(ctx context.Context) (list []Provider, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		all, err := s.externalsIn(tx)
		for _, e := range all {
			if e.people() {
				list = append(list, Provider{e.id, e.name})
			}
		}
		return err
	})
	return list, err
}

// provider gives one of them; the problem ResourceNotFound where there is none.
func (s *Service) provider(ctx context.Context, id int64) (found *external, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		all, err := s.externalsIn(tx)
		for _, e := range all {
			if e.id == id && e.people() {
				found = e
			}
		}
		return err
	})
	if err == nil && found == nil {
		err = problem.NotFound("nobody is signed in by authenticator %d in a browser", id)
	}
	return found, err
}

// SendTo gives where a browser is sent to sign in at a provider, and has it remember that.
func (s *Service) SendTo(w http.ResponseWriter, r *http.Request, id int64) (to string, err error) {
	e, err := s.provider(r.Context(), id)
	if err != nil {
		return "", err
	}
	if e.certificates != nil { // whoever shows one is in
		return "/", s.enterByCertificate(w, r, e)
	}
	sent := sentPeople{id, s.store.Now().Unix() + flowLife, authn.Flow{State: secrets.New(), Nonce: secrets.New(), Verifier: secrets.New()}}
	var found error
	if err := s.asking.pass(r.Context(), Remote(r), func() {
		if e.saml != nil {
			to, sent.Nonce, found = e.saml.Begin(sent.State)
			return
		}
		to, found = e.tokens.Begin(r.Context(), sent.Flow, backFrom(r,
			id))
	}); err != nil {
		return "", err
	}
	if found != nil {
		s.saw(Unavailable, "", Remote(r))
		s.told(e.name, found)
		return "", errAway(e.name)
	}
	sealed, err := s.sealed(r.Context(), flowUse, sent)
	if err != nil {
		return "", err
	}
	setFlow(w, r, sealed, flowLife)
	return to, nil
}

// errFlow is the refusal of who comes back without having been sent.
var errFlow = unauthorized("InvalidAuthorizationCredentials", "the sign-in was not begun in this browser, or took too long")

// flowOf gives where a browser was sent that comes back from a provider.
func (s *Service) flowOf(r *http.Request, provider int64) (sent sentPeople, err error) {
	c, err := r.Cookie(flowName(r))
	if err != nil {
		return sent, errFlow
	}
	if err := s.unsealed(r.Context(), flowUse, c.Value, &sent); err != nil {
		return sent, err
	}
	if sent.Provider != provider || sent.Until <= s.store.Now().Unix() {
		return sent, errFlow
	}
	return sent, nil
}

// ComeBack signs in whoever comes back from a provider: their session begins, and the browser keeps its cookie. A sign-in that did not
// begin in this browser, or that the provider or the manager does not let in, is refused with the problem
// InvalidAuthorizationCredentials.
func (s *Service) ComeBack(w http.ResponseWriter, r *http.Request, provider int64) error {
	sent, err := s.flowOf(r, provider)
	if err != nil {
		return err
	}
	setFlow(w, r, "", -1) // each is good once
	e, err := s.provider(r.Context(), sent.Provider)
	if err != nil {
		return err
	}
	p, err := s.cameBack(r.Context(), e, sent.Flow, backFrom(r, provider), r.URL.Query(), Remote(r))
	if err != nil {
		return err
	}
	return s.enterBrowser(w, r, p)
}

// enterBrowser begins a session at the console, and has the browser keep its cookie.
func (s *Service) enterBrowser(w http.ResponseWriter, r *http.Request, p authz.Principal) error {
	credentials, err := s.beginSession(r.Context(), p, Remote(r), r.UserAgent())
	if err == nil {
		SetCookie(w, r, credentials)
	}
	return err
}

// cameBack gives the principal of who comes back from a provider.
func (s *Service) cameBack(ctx context.Context, e *external, f authn.Flow, back string, came url.Values, remote string) (p authz.Principal,
	err error) {
	var id authn.Identity
	var found error
	if e.tokens == nil {
		return p, errFlow
	}
	if err := s.asking.pass(ctx, remote, func() { id, found = e.tokens.Redeem(ctx, f, back, came) }); err != nil {
		return p, err
	}
	return s.arrived(ctx, e, id, found, remote)
}

// arrived gives the principal of whom a provider has let in, or found not to be let in.
func (s *Service) arrived(ctx context.Context, e *external, id authn.Identity, found error, remote string) (p authz.Principal, err error) {
	if errors.Is(found, authn.ErrAway) {
		s.saw(Unavailable, "", remote)
		s.told(e.name, found)
		return p, errAway(e.name)
	}
	if found == nil {
		p, found = s.admit(ctx, e, id, nil, true, authz.ConsoleDoor)
	}
	if errors.Is(found, authn.ErrWrong) || errors.Is(found, errLogin) {
		s.saw(Refused, id.Name, remote)
		return p, errLogin
	}
	if found == nil {
		s.saw(Accepted, p.Name, remote)
	}
	return e.as(p), found
}

// beginSession begins a session at the console, and gives the credentials of its cookie.
func (s *Service) beginSession(ctx context.Context, p authz.Principal, remote, client string) (credentials string, err error) {
	caller := authz.CallerOf(p)
	caller.Console, caller.Remote, caller.Client = true, remote, client
	err = s.store.Update(ctx, caller.Author(""), func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: authz.PolicyOf(s.store).API(), Caller: caller, Given: map[string]bool{}, Extra: map[string]string{}}
		x := &UserSession{}
		x.Type = "UserSession"
		_, err := c.Create(c.API.TypeNamed(x.Type), x)
		credentials = c.Extra[resource.Cookie]
		return err
	})
	return credentials, err
}
