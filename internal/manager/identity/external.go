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

// Who signs in by an authenticator is asked for there, and not here: whether the password, or the token, is right, and which groups they
// are in. What they may do is said here: by the user, who is made when somebody first signs in who is in a group that is known here, and
// by the groups.

// passwordChecker asks whether a name and a password are right.
type passwordChecker interface {
	Check(ctx context.Context, name, password string) (authn.Identity, error)
}

// external is an authenticator that asks others.
type external struct {
	id, version int64
	name        string
	// checks asks about passwords; nil where it knows tokens alone.
	checks passwordChecker
	// tokens verifies tokens; nil where it knows passwords alone.
	tokens *authn.Tokens
	// saml is the identity provider that people are sent to; nil where it is none.
	saml *authn.SAML
	// certificates verifies those that browsers show; nil where it knows none.
	certificates *authn.Certificates
	// issuer is the issuer of the tokens that are verified here.
	issuer string
	// secondary is the one that is asked where nobody answers; nil where there is none.
	secondary *external
	// sameGroup reports whether a group's name here is that of a group there.
	sameGroup func(here, there string) bool
	// groups says that there are groups here that it knows the members of.
	groups bool
}

// rememberedFor is how long it is remembered that a password, or a token, was right: who is locked out elsewhere is so here by then.
const rememberedFor = time.Minute

// externals remembers what was found out by others.
type externals struct {
	known *store.Cache[struct{}, []*external]
	// mu guards right: until when a password or a token is remembered to be right, and whose it is; and spent: until when an answer of an
	// identity provider is remembered to have let somebody in, by the number of its request.
	mu    sync.Mutex
	right map[[32]byte]remembered
	spent map[string]time.Time
}

type remembered struct {
	until time.Time
	user  int64
}

func newExternals(s *store.Store) *externals {
	return &externals{known: store.NewCache[struct{}](s, store.CacheOptions[[]*external]{
		Topics: []string{"authenticators", "groups", "settings"},
		Max:    1}),
		right: map[[32]byte]remembered{}, spent: map[string]time.Time{}}
}

// recall gives whose password or token was right; 0 where that is not remembered.
func (e *externals) recall(key [32]byte, now time.Time) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.right[key]; now.Before(r.until) {
		return r.user
	}
	return 0
}

// spend notes that an answer lets somebody in, and reports whether it had not yet.
func (e *externals) spend(request string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for other, until := range e.spent {
		if now.After(until) {
			delete(e.spent, other)
		}
	}
	_, was := e.spent[request]
	e.spent[request] = now.Add(arrivalLife * time.Second)
	return !was
}

func (e *externals) remember(key [32]byte, user int64, now, until time.Time) {
	if latest := now.Add(rememberedFor); until.IsZero() || until.After(latest) {
		until = latest
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.right) >= maxRemembered {
		clear(e.right)
	}
	e.right[key] = remembered{until, user}
}

// externalsIn gives the authenticators that ask others, with their secrets.
func (s *Service) externalsIn(tx *store.Tx) ([]*external, error) {
	if known, ok := s.externals.known.Get(tx, struct{}{}); ok {
		return known, nil
	}
	api := authz.PolicyOf(s.store).API()
	if api == nil {
		return nil, nil
	}
	var all []*external
	service, err := s.samlIn(tx)
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
			e.groups = e.groups || e.id == authenticator
		}
	}); err != nil {
		return nil, err
	}
	s.externals.known.Put(tx, struct{}{}, all)
	return all, nil
}

// externalOf gives what an authenticator asks; nil for one that asks nobody.
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
		if keys, err := authn.ParseKeytab(secrets["keytab"]); err != nil { // it was checked when it was sent, and cannot be unsealed
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

// errAway is the answer where nobody can be asked who somebody is.
func errAway(name string) error {
	return problem.New(http.StatusServiceUnavailable, "AuthenticatorUnavailable",
		"the authenticator of %s cannot be reached: nobody of it can sign in until it is back", name)
}

// check asks an authenticator, or the one behind it, whether a password is right; whole says that it was the first one that answered,
// which knows the groups, too.
func (s *Service) check(ctx context.Context, e *external, name, password, remote string) (id authn.Identity, whole bool, err error) {
	asked := map[int64]bool{}
	for at := e; at != nil && at.checks != nil && !asked[at.id]; at = at.secondary {
		asked[at.id] = true
		if refused := s.asking.pass(ctx, remote, func() { id, err = at.checks.Check(ctx, name, password) }); refused != nil {
			return id, false, refused
		}
		if !errors.Is(err, authn.ErrAway) {
			return id, at == e, err
		}
		s.told(at.name, err)
	}
	return id, false, err
}

// elsewhere is what a sign-in asks others.
type elsewhere struct {
	// ask are those who may know the name: that of the user, or, where there is no user, all that have groups here.
	ask  []*external
	user *User // nil where there is none yet
}

// elsewhereOf gives whom a sign-in is asked of; nil where the manager itself knows.
func (s *Service) elsewhereOf(tx *store.Tx, user *User) (*elsewhere, error) {
	all, err := s.externalsIn(tx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if user.ID == 0 {
		ask := slices.DeleteFunc(slices.Clone(all), func(e *external) bool { return e.checks == nil || !e.groups })
		if len(ask) == 0 {
			return nil, nil
		}
		return &elsewhere{ask: ask}, nil
	}
	for _, e := range all {
		if e.id == user.Authenticator.ID {
			return &elsewhere{ask: []*external{e}, user: user}, nil
		}
	}
	return nil, nil
}

// loginElsewhere checks a name and a password with others. Whoever is known there and is to be a user here is made one.
func (s *Service) loginElsewhere(ctx context.Context, w *elsewhere, name, password, remote string, guesses patience,
	by authz.Door) (authz.Principal, error) {
	now := s.store.Now()
	away := 0
	for _, e := range w.ask {
		key := s.passwordKey(fmt.Sprint(e.id, ".", e.version, " ", name), password)
		recalled := s.externals.recall(key, now)
		if err := s.guesses.may(name, remote, guesses, recalled != 0); err != nil {
			s.saw(Throttled, s.shownName(name, w.user != nil), remote)
			return authz.Principal{}, err
		}
		if recalled != 0 {
			if p, err := s.usableBy(ctx, recalled, e.id, by); err == nil {
				return e.knows(p), nil
			}
		}
		if e.checks == nil {
			continue // such a user has tokens alone
		}
		id, whole, err := s.check(ctx, e, name, password, remote)
		if errors.Is(err, authn.ErrAway) {
			away++
			continue
		}
		if errors.Is(err, authn.ErrWrong) {
			continue
		}
		if err != nil {
			return authz.Principal{}, err
		}
		p, err := s.admit(ctx, e, id, w.user, whole, by)
		if errors.Is(err, errLogin) {
			continue
		}
		if err != nil {
			return authz.Principal{}, err
		}
		s.guesses.succeeded(name, remote)
		s.saw(Accepted, name, remote)
		s.externals.remember(key, p.User, now, time.Time{})
		return e.knows(p), nil
	}
	if away == len(w.ask) { // nobody has said that it is wrong
		s.saw(Unavailable, s.shownName(name, w.user != nil), remote)
		return authz.Principal{}, errAway(name)
	}
	if _, err := s.verify(ctx, "", password, remote); err != nil { // which takes as long as for a user of the manager's own
		return authz.Principal{}, err
	}
	s.guesses.failed(name, remote, guesses)
	s.saw(Refused, s.shownName(name, w.user != nil), remote)
	return authz.Principal{}, errLogin
}

// knows gives a principal whose password an authenticator has found right.
func (e *external) knows(p authz.Principal) authz.Principal {
	p.Credential = "password of " + e.name
	return p
}

// externalToken gives the principal of a token that an authorization server has issued; errToken where it is none.
func (s *Service) externalToken(ctx context.Context, token, remote string) (p authz.Principal, err error) {
	var all []*external
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = s.externalsIn(tx)
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
		if user := s.externals.recall(key, now); user != 0 {
			if p, err = s.usableBy(ctx, user, e.id, authz.APIDoor); err == nil {
				return e.as(p), nil
			}
		}
		var id authn.Identity
		var until time.Time
		var found error
		if err := s.asking.pass(ctx, remote, func() { id, until, found = e.tokens.Verify(ctx, token) }); err != nil {
			return p, err
		}
		switch {
		case errors.Is(found, authn.ErrAway):
			s.saw(Unavailable, "", remote)
			s.told(e.name, found)
			return p, errAway("the token")
		case errors.Is(found, authn.ErrWrong):
			continue
		case found != nil:
			return p, found
		}
		if p, err = s.admit(ctx, e, id, nil, true, authz.APIDoor); errors.Is(err, errLogin) {
			break
		} else if err != nil {
			return p, err
		}
		s.saw(Accepted, id.Name, remote)
		s.externals.remember(key, p.User, now, until)
		return e.as(p), nil
	}
	s.saw(Refused, "", remote)
	return p, errToken
}

// mayHaveIssued reports whether a token of an issuer, empty where it does not say, may be of this authenticator: who says to have issued
// it is asked, and nobody else.
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

// as gives a principal that has shown a token of an authorization server, or comes from an identity provider.
func (e *external) as(p authz.Principal) authz.Principal {
	kind := "oauth "
	if e.saml != nil {
		kind = "saml "
	}
	p.Credential = kind + e.name
	return p
}

// told tells the observer that an authenticator cannot be asked.
func (s *Service) told(authenticator string, err error) {
	if s.observer.Away != nil {
		s.observer.Away(authenticator, err)
	}
}
