package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/authz"
)

// An external authenticator verifies the password or token and reports the groups of the user. The permissions are managed here, by the
// user and the groups. The user is created at the first sign-in if one of the reported groups exists here.

// passwordChecker verifies a name and a password.
type passwordChecker interface {
	Check(ctx context.Context, name, password string) (authn.Identity, error)
}

// external is an authenticator that queries an external server.
type external struct {
	id, version int64
	name        string
	// checks verifies passwords; nil if the authenticator supports only tokens.
	checks passwordChecker
	// tokens verifies tokens; nil if the authenticator supports only passwords.
	tokens *authn.Tokens
	// saml is the SAML identity provider; nil for other authenticators.
	saml *authn.SAML
	// certificates verifies client certificates; nil for other authenticators.
	certificates *authn.Certificates
	// issuer is the issuer of the tokens that the manager verifies itself.
	issuer string
	// secondary is used if the authenticator cannot be reached; nil if there is none.
	secondary *external
	// sameGroup reports whether the name of a group here matches the name of a group at the authenticator.
	sameGroup func(here, there string) bool
	// hasGroups is true if at least one group here belongs to the authenticator.
	hasGroups bool
}

// externalCacheLife is the lifetime of a cached password or token. It is also the maximum delay until a lock at the authenticator takes
// effect here.
const externalCacheLife = time.Minute

// externals caches the external authenticators and the results of their checks.
type externals struct {
	known *store.Cache[struct{}, []*external]
	// mu guards verified and used. verified holds verified passwords and tokens, with their user and expiry. used holds the request ids of
	// identity provider answers that were already redeemed, with their expiry.
	mu       sync.Mutex
	verified map[[32]byte]remembered
	used     map[string]time.Time
}

type remembered struct {
	until time.Time
	user  int64
}

func newExternals(s *store.Store) *externals {
	return &externals{known: store.NewCache[struct{}](s, store.CacheOptions[[]*external]{
		Topics: []string{"authenticators", "groups", "settings"},
		Max:    1}),
		verified: map[[32]byte]remembered{}, used: map[string]time.Time{}}
}

// cachedUser returns the user of a cached password or token; 0 if it is not cached.
func (e *externals) cachedUser(key [32]byte, now time.Time) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.verified[key]; now.Before(r.until) {
		return r.user
	}
	return 0
}

// markUsed records that the answer to a request was redeemed. It returns false if it had been redeemed before.
func (e *externals) markUsed(request string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for other, until := range e.used {
		if now.After(until) {
			delete(e.used, other)
		}
	}
	_, was := e.used[request]
	e.used[request] = now.Add(arrivalLife * time.Second)
	return !was
}

func (e *externals) remember(key [32]byte, user int64, now, until time.Time) {
	if latest := now.Add(externalCacheLife); until.IsZero() || until.After(latest) {
		until = latest
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.verified) >= maxRemembered {
		clear(e.verified)
	}
	e.verified[key] = remembered{until, user}
}

// loadExternals returns the external authenticators with their secrets.
func (s *Service) loadExternals(tx *store.Tx) ([]*external, error) {
	if known, ok := s.externals.known.Get(tx, struct{}{}); ok {
		return known, nil
	}
	api := authz.PolicyOf(s.store).API()
	if api == nil {
		return nil, nil
	}
	var all []*external
	service, err := s.loadSAML(tx)
	if err != nil {
		return nil, err
	}
	seconds := map[int64]int64{}
	if err := tx.List(store.Query{From: store.Resources, Where: store.InCollection(authenticators)}, func(r *store.Resource) error {
		o, err := api.Object(r)
		if err != nil {
			return err
		}
		secrets, err := api.Secrets(tx, o)
		if err != nil {
			return err
		}
		e := externalOf(o, secrets, service, s.store)
		if e == nil {
			return nil
		}
		e.id, e.version, e.name = r.ID, r.Version, r.Name
		seconds[r.ID] = r.Ref("secondaryAuthenticator")
		all = append(all, e)
		return nil
	}); err != nil {
		return nil, err
	}
	for _, e := range all {
		for _, other := range all {
			if other.id == seconds[e.id] && other.checks != nil {
				e.secondary = other
			}
		}
	}
	if err := eachRemoteGroup(tx, func(_ *store.Resource, authenticator int64) {
		for _, e := range all {
			e.hasGroups = e.hasGroups || e.id == authenticator
		}
	}); err != nil {
		return nil, err
	}
	s.externals.known.Put(tx, struct{}{}, all)
	return all, nil
}

// externalOf returns the client of an authenticator; nil if it is disabled or not external.
func externalOf(o schema.Object, secrets map[string]string, service authn.SAMLService, at *store.Store) *external {
	same := func(here, there string) bool { return here == there }
	switch x := o.(type) {
	case *LDAPAuthenticator:
		return &external{checks: x.directory(secrets["adminPassword"]), sameGroup: authn.SameDN}
	case *RADIUSAuthenticator:
		return &external{checks: authn.RADIUS{Host: x.Hostname, Port: x.Port, Secret: secrets["sharedSecret"],
			Signed: x.MessageAuthenticatorRequired, CHAP: x.AuthenticationProtocol == "CHAP", Timeout: schema.LengthOf(x.Timeout),
			Retries: int(x.Retries)},
			sameGroup: func(string, string) bool { return false }}
	case *TACACSPlusAuthenticator:
		t := authn.TACACS{Host: x.Hostname, Port: x.Port, Secret: secrets["sharedSecret"], CHAP: x.AuthenticationProtocol == "CHAP",
			Timeout: schema.LengthOf(x.Timeout), GroupAttribute: x.GroupAttribute}
		for _, a := range x.Attributes {
			t.Arguments = append(t.Arguments, a.Name+"="+a.Value)
		}
		return &external{checks: t, sameGroup: same}
	case *KerberosAuthenticator:
		e := &external{sameGroup: func(string, string) bool { return false }}
		if keys, err := authn.ParseKeytab(secrets["keytab"]); err != nil { // it was validated when it was saved: it cannot be decrypted
			e.checks = authn.Unusable{Reason: fmt.Errorf("the keytab cannot be read: %w", err)}
		} else {
			e.checks = authn.Kerberos{Host: x.Hostname, Realm: x.Realm, Keytab: keys}
		}
		return e
	case *OAuthAuthorizationServer:
		if !x.Enabled {
			return nil
		}
		e := &external{tokens: x.tokens(secrets["clientSecret"], at.Now), sameGroup: same}
		if x.ValidationMethod == localValidation {
			e.issuer = x.Issuer
		}
		return e
	case *X509Authenticator:
		if known := x.certificates(at.Now); known != nil {
			return &external{certificates: known, sameGroup: func(string, string) bool { return false }}
		}
		return nil
	case *SAMLIdentityProvider:
		if !x.Enabled || service.Host == "" {
			return nil
		}
		return &external{saml: x.provider(service, at), sameGroup: same}
	}
	return nil
}

// errUnavailable reports that the authenticator of name cannot be reached.
func errUnavailable(name string) error {
	return problem.New(http.StatusServiceUnavailable, "AuthenticatorUnavailable",
		"the authenticator of %s is unreachable: its users cannot sign in until it is available again", name)
}

// check verifies a password with an authenticator, or with its secondary authenticators if it is unreachable. isPrimary reports that the
// first authenticator answered; only its groups are used.
func (s *Service) check(ctx context.Context, e *external, name, password, remote string) (id authn.Identity, isPrimary bool, err error) {
	asked := map[int64]bool{}
	for at := e; at != nil && at.checks != nil && !asked[at.id]; at = at.secondary {
		asked[at.id] = true
		if refused := s.lookups.run(ctx, remote, func() { id, err = at.checks.Check(ctx, name, password) }); refused != nil {
			return id, false, refused
		}
		if !errors.Is(err, authn.ErrUnavailable) {
			return id, at == e, err
		}
		s.reportUnavailable(at.name, err)
	}
	return id, false, err
}

// externalLogin describes a sign-in that external authenticators check.
type externalLogin struct {
	// candidates are the authenticators to try: that of the user, or, for an unknown name, all that check passwords and own groups here.
	candidates []*external
	user       *User // nil if the user does not exist yet
}

// externalLoginFor returns how a sign-in is checked externally; nil if the manager checks the password itself.
func (s *Service) externalLoginFor(tx *store.Tx, user *User) (*externalLogin, error) {
	all, err := s.loadExternals(tx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if user.ID == 0 {
		ask := slices.DeleteFunc(slices.Clone(all), func(e *external) bool { return e.checks == nil || !e.hasGroups })
		if len(ask) == 0 {
			return nil, nil
		}
		return &externalLogin{candidates: ask}, nil
	}
	for _, e := range all {
		if e.id == user.Authenticator.ID {
			return &externalLogin{candidates: []*external{e}, user: user}, nil
		}
	}
	return nil, nil
}

// loginExternal checks a name and a password with external authenticators. A user that does not exist yet is created if a group matches
// (admit).
func (s *Service) loginExternal(ctx context.Context, w *externalLogin, name, password, remote string, throttle throttlePolicy,
	by authz.Interface) (authz.Principal, error) {
	now := s.store.Now()
	away := 0
	for _, e := range w.candidates {
		key := s.passwordKey(fmt.Sprint(e.id, ".", e.version, " ", name), password)
		recalled := s.externals.cachedUser(key, now)
		if err := s.throttle.check(name, remote, throttle, recalled != 0); err != nil {
			s.reportSignIn(Throttled, s.shownName(name, w.user != nil), remote)
			return authz.Principal{}, err
		}
		if recalled != 0 {
			if p, err := s.signInPrincipal(ctx, recalled, e.id, by); err == nil {
				return e.withPassword(p), nil
			}
		}
		if e.checks == nil {
			continue // users of this authenticator sign in with tokens only
		}
		id, isPrimary, err := s.check(ctx, e, name, password, remote)
		if errors.Is(err, authn.ErrUnavailable) {
			away++
			continue
		}
		if errors.Is(err, authn.ErrWrong) {
			continue
		}
		if err != nil {
			return authz.Principal{}, err
		}
		p, err := s.admit(ctx, e, id, w.user, isPrimary, by)
		if errors.Is(err, errLogin) {
			continue
		}
		if err != nil {
			return authz.Principal{}, err
		}
		s.throttle.succeeded(name, remote)
		s.reportSignIn(Accepted, name, remote)
		s.externals.remember(key, p.User, now, time.Time{})
		return e.withPassword(p), nil
	}
	if away == len(w.candidates) { // no authenticator has rejected the password
		s.reportSignIn(Unavailable, s.shownName(name, w.user != nil), remote)
		return authz.Principal{}, errUnavailable(name)
	}
	if _, err := s.verify(ctx, "", password, remote); err != nil { // equalizes the time with that of a local user
		return authz.Principal{}, err
	}
	s.throttle.countFailure(name, remote, throttle)
	s.reportSignIn(Refused, s.shownName(name, w.user != nil), remote)
	return authz.Principal{}, errLogin
}

// withPassword sets the credential of a principal whose password the authenticator has verified.
func (e *external) withPassword(p authz.Principal) authz.Principal {
	p.Credential = "password of " + e.name
	return p
}

// externalToken returns the principal of a token that an authorization server issued; errToken if no server accepts it.
func (s *Service) externalToken(ctx context.Context, token, remote string) (p authz.Principal, err error) {
	var all []*external
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = s.loadExternals(tx)
		return err
	}); err != nil {
		return p, err
	}
	issuer := authn.IssuerOf(token)
	now := s.store.Now()
	for _, e := range all {
		if !e.mayHaveIssued(issuer, all) {
			continue
		}
		key := sha256.Sum256([]byte(fmt.Sprint(e.id, ".", e.version, " ", token)))
		if user := s.externals.cachedUser(key, now); user != 0 {
			if p, err = s.signInPrincipal(ctx, user, e.id, authz.APIInterface); err == nil {
				return e.withProvider(p), nil
			}
		}
		var id authn.Identity
		var until time.Time
		var found error
		if err := s.lookups.run(ctx, remote, func() { id, until, found = e.tokens.Verify(ctx, token) }); err != nil {
			return p, err
		}
		switch {
		case errors.Is(found, authn.ErrUnavailable):
			s.reportSignIn(Unavailable, "", remote)
			s.reportUnavailable(e.name, found)
			return p, errUnavailable("the token")
		case errors.Is(found, authn.ErrWrong):
			continue
		case found != nil:
			return p, found
		}
		if p, err = s.admit(ctx, e, id, nil, true, authz.APIInterface); errors.Is(err, errLogin) {
			break
		} else if err != nil {
			return p, err
		}
		s.reportSignIn(Accepted, id.Name, remote)
		s.externals.remember(key, p.User, now, until)
		return e.withProvider(p), nil
	}
	s.reportSignIn(Refused, "", remote)
	return p, errToken
}

// mayHaveIssued reports whether this authenticator may have issued a token. issuer is the issuer in the token; empty if the token does not
// name one. Only the named issuer is asked, so that other servers do not see the token.
func (e *external) mayHaveIssued(issuer string, all []*external) bool {
	switch {
	case e.tokens == nil:
		return false
	case e.issuer != "" || e.tokens.Issuer != "":
		return issuer == e.tokens.Issuer || issuer == "" && e.issuer == ""
	}
	return issuer == "" || !slices.ContainsFunc(all, func(other *external) bool {
		return other.tokens != nil &&
			other.tokens.Issuer == issuer
	})
}

// withProvider sets the credential of a principal that signed in with a token of an authorization server or by an identity provider.
func (e *external) withProvider(p authz.Principal) authz.Principal {
	kind := "oauth "
	if e.saml != nil {
		kind = "saml "
	}
	p.Credential = kind + e.name
	return p
}

// reportUnavailable notifies the observer that an authenticator cannot be reached.
func (s *Service) reportUnavailable(authenticator string, err error) {
	if s.observer.Unreachable != nil {
		s.observer.Unreachable(authenticator, err)
	}
}
