package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"portolan/internal/authn"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// Provider is an authorization server that people are sent to by the console.
type Provider struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// sentPeople is a way to a provider that a browser is on: its cookie.
type sentPeople struct {
	Provider int64 `json:"provider"`
	authn.Flow
}

// flowLife is how long somebody may take at the provider, in seconds.
const flowLife = 600

// flowName names the cookie of a way to a provider. It has to come along when the provider sends the browser back: it is Lax.
func flowName(r *http.Request) string {
	return cookieNameOf(r) + "-flow"
}

func setFlow(w http.ResponseWriter, r *http.Request, value string, age int) {
	keep(w, r, flowName(r), value, http.SameSiteLaxMode, age)
}

// backFrom is where providers send browsers back to. The manager takes the name that the browser knows it by: a provider sends nobody to an
// address that it was not told.
func backFrom(r *http.Request) string {
	scheme := "http"
	if overTLS(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host + "/sign-in/callback"
}

// Providers gives those that people can be sent to.
func (s *Service) Providers(ctx context.Context) (list []Provider, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		all, err := s.externalsIn(tx)
		for _, e := range all {
			if e.tokens != nil && e.tokens.People() {
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
			if e.id == id && e.tokens != nil && e.tokens.People() {
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
	sent := sentPeople{id, authn.Flow{State: NewSecret(), Nonce: NewSecret(), Verifier: NewSecret()}}
	var found error
	if err := s.asking.pass(r.Context(), Remote(r), func() { to, found = e.tokens.Begin(r.Context(), sent.Flow, backFrom(r)) }); err != nil {
		return "", err
	}
	if found != nil {
		s.saw(Unavailable, "", Remote(r))
		s.told(e.name, found)
		return "", errAway(e.name)
	}
	text, err := json.Marshal(sent)
	setFlow(w, r, base64.RawURLEncoding.EncodeToString(text), flowLife)
	return to, err
}

// ComeBack signs in whoever comes back from a provider: their session begins, and the browser keeps its cookie. A sign-in that did not
// begin in this browser, or that the provider or the manager does not let in, is refused with the problem
// InvalidAuthorizationCredentials.
func (s *Service) ComeBack(w http.ResponseWriter, r *http.Request) error {
	var sent sentPeople
	c, err := r.Cookie(flowName(r))
	if err == nil {
		var text []byte
		if text, err = base64.RawURLEncoding.DecodeString(c.Value); err == nil {
			err = json.Unmarshal(text, &sent)
		}
	}
	if err != nil || sent.State == "" {
		return unauthorized("InvalidAuthorizationCredentials", "the sign-in was not begun in this browser, or took too long")
	}
	setFlow(w, r, "", -1) // each is good once
	e, err := s.provider(r.Context(), sent.Provider)
	if err != nil {
		return err
	}
	p, err := s.cameBack(r.Context(), e, sent.Flow, backFrom(r), r.URL.Query(), Remote(r))
	if err != nil {
		return err
	}
	credentials, err := s.beginSession(r.Context(), p, Remote(r), r.UserAgent())
	if err == nil {
		SetCookie(w, r, credentials)
	}
	return err
}

// cameBack gives the principal of who comes back from a provider.
func (s *Service) cameBack(ctx context.Context, e *external, f authn.Flow, back string, came url.Values, remote string) (p Principal,
	err error) {
	var id authn.Identity
	var found error
	if err := s.asking.pass(ctx, remote, func() { id, found = e.tokens.Redeem(ctx, f, back, came) }); err != nil {
		return p, err
	}
	if errors.Is(found, authn.ErrAway) {
		s.saw(Unavailable, "", remote)
		s.told(e.name, found)
		return p, errAway(e.name)
	}
	if found == nil {
		p, found = s.admit(ctx, e, id, nil, true, ConsoleDoor)
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
func (s *Service) beginSession(ctx context.Context, p Principal, remote, client string) (credentials string, err error) {
	caller := CallerOf(p)
	caller.Console, caller.Remote, caller.Client = true, remote, client
	err = s.store.Update(ctx, caller.Author(""), func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: s.api.Load(), Caller: caller, Given: map[string]bool{}, Extra: map[string]string{}}
		x := &UserSession{}
		x.Type = "UserSession"
		_, err := c.Create(c.API.TypeNamed(x.Type), x)
		credentials = c.Extra[resource.Cookie]
		return err
	})
	return credentials, err
}
