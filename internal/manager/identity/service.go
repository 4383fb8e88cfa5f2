package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/secrets"
)

// Kinds of credentials.
const (
	kindPassword = "password"
	kindSession  = "session"
	kindBearer   = "bearer"
	kindKeySet   = "keyset"
	kindAccess   = "access"
	kindLink     = "link"
)

// doorOf gives the door that a credential opens: sessions that were begun at the console are noted with it in place of a role.
func doorOf(kind, role string) authz.Door {
	if kind == kindSession && role == string(authz.ConsoleDoor) {
		return authz.ConsoleDoor
	}
	return authz.APIDoor
}

// topic is what a transaction touches that takes a credential away (store.Tx.Touch): what was
// remembered of it must be forgotten. New credentials need no such thing.
const topic = "credentials"

// tokenTopics are the topics on which depends whose token it is.
var tokenTopics = []string{topic, "users", "sessions", "groups", "accessRights", authenticators}

// Lifetimes: a session's token (reference/address-manager-behaviour.md) and an access token of the
// exchange (reference/fleet.md).
const (
	SessionLife = 24 * time.Hour
	AccessLife  = 5 * time.Minute
)

// Service checks credentials against the store.
type Service struct {
	store *store.Store
	// strangers and friends bound how many passwords are hashed at a time, and how many may wait: for addresses
	// that somebody has signed in from, and for others, so that a flood of those does not keep everybody out.
	strangers, friends *gate
	// asking bounds how many questions are put to authenticators at a time.
	asking *gate
	// pepper keys the memory of checked passwords; it never leaves the process.
	pepper []byte
	// knownMu guards known, which maps HMAC(pepper, user and password) to the stored hash it was checked
	// against.
	knownMu sync.Mutex
	known   map[[32]byte]string
	// tokens are what looking up tokens gave.
	tokens *store.Cache[tokenKey, tokenEntry]
	// guesses slows down who guesses; observer is told of it.
	guesses  *guesses
	observer Observer
	// wish says whether browsers are asked for certificates.
	wish certificateWish
	// manners are what the settings say of sessions and guesses.
	manners *manners
	// externals are the authenticators that ask others, and what they said.
	externals *externals
	// noting are the sessions and tokens of which is being noted that they are used.
	noting sync.Map
}

// tokenKey is a token by its hash, with the user's name it came with; tokenEntry is whose it is.
type tokenKey struct {
	hash [32]byte
	name string
}

type tokenEntry struct {
	principal authz.Principal
	expires   int64 // in seconds since 1970; 0 where it does not expire
	// note is when it is to be noted that it is used, in seconds since 1970; 0 where that is not noted.
	note int64
}

// newService makes the service.
func newService(s *store.Store) *Service {
	return &Service{store: s, strangers: newGate(maxOfOne), friends: newGate(maxHashing + maxWaiting),
		asking: newGateOf(maxAsking, maxAskWaiting, maxAskOfOne), pepper: secrets.RandomBytes(32),
		known: map[[32]byte]string{}, tokens: store.NewCache[tokenKey](s,
			store.CacheOptions[tokenEntry]{Topics: tokenTopics, Max: maxRemembered}), guesses: newGuesses(s.Now),
		manners: newManners(s), externals: newExternals(s)}
}

// Observer is told of sign-ins, by a password or a key set.
type Observer struct {
	// SignIn is told what came of one: accepted, refused, or throttled, where it was not looked at.
	SignIn func(result, name, remote string)
	// Guessing is told when somebody begins to be made to wait, and after how many failures.
	Guessing func(name, remote string, failures int)
	// Away is told that an authenticator could not be asked, and why.
	Away func(authenticator string, err error)
	// NotTaken is told that what an authenticator has sent of somebody was not taken, and why.
	NotTaken func(authenticator string, err error)
	// Nobody is called for a sign-in that an authenticator accepts and the manager refuses: the name is not a user, and none of groups exists.
	Nobody func(authenticator, name string, groups []string)
}

// Results of a sign-in.
const (
	Accepted  = "accepted"
	Refused   = "refused"
	Throttled = "throttled"
	// Unavailable: whoever knows the user could not be asked.
	Unavailable = "unavailable"
)

// Observe sets who is told. It is called before the service is used.
func (s *Service) Observe(o Observer) { s.observer, s.guesses.guessing = o, o.Guessing }

// saw tells the observer.
func (s *Service) saw(result, name, remote string) {
	if s.observer.SignIn != nil {
		s.observer.SignIn(result, name, remote)
	}
}

func unauthorized(code, message string) *problem.Problem {
	return problem.New(http.StatusUnauthorized, code, "%s", message)
}

// The refusals of credentials.
var (
	errMissing = unauthorized("InvalidAuthorizationToken", "the request has no Authorization header")
	errToken   = unauthorized("InvalidAuthorizationToken", "the token is unknown, expired or revoked")
	errLogin   = unauthorized("InvalidAuthorizationCredentials",
		"the user name or the password is wrong, or the account is locked or not meant for the API")
	errScheme = problem.Forbidden("InvalidAuthorizationScheme", "the Authorization header has another scheme than Basic and Bearer")
	errForm   = unauthorized("InvalidAuthorizationToken", "the Authorization header is malformed")
)

// maxHeader bounds what follows the scheme, in bytes: a token of somebody in a hundred groups is long.
const maxHeader = 16 << 10

// header splits the one Authorization header a request may have.
func header(r *http.Request) (scheme, rest string, err error) {
	values := r.Header.Values("Authorization")
	switch {
	case len(values) == 0:
		if hasCookie(r) {
			return cookieScheme, "", nil
		}
		return "", "", errMissing
	case len(values) > 1:
		return "", "", problem.BadRequest("InvalidHeaderValue", "Authorization: given %d times", len(values))
	}
	scheme, rest, ok := strings.Cut(values[0], " ")
	if rest = strings.TrimSpace(rest); !ok || rest == "" || len(rest) > maxHeader {
		return "", "", errForm
	}
	return strings.ToLower(scheme), rest, nil
}

// Bearer gives the principal of a request that must have a bearer token, or the cookie of a session.
func (s *Service) Bearer(r *http.Request) (authz.Principal, error) {
	r = asks(r)
	scheme, token, err := header(r)
	if err != nil {
		return authz.Principal{}, err
	}
	var p authz.Principal
	switch scheme {
	case "bearer":
		p, err = s.bearer(r, token)
	case cookieScheme:
		p, err = s.cookie(r)
	default:
		err = unauthorized("InvalidAuthorizationToken", "a bearer token is needed here")
	}
	if err == nil && p.MustReset {
		err = problem.Forbidden("PasswordResetRequired", "%s has to set a new password first, by the address API", p.Name)
	}
	return p, err
}

// Any gives the principal of a request with any credential of the address API: Basic with an API
// token, Basic with the password, a bearer token, or the cookie of a session.
func (s *Service) Any(r *http.Request) (authz.Principal, error) {
	r = asks(r)
	scheme, rest, err := header(r)
	if err != nil {
		return authz.Principal{}, err
	}
	switch scheme {
	case "bearer":
		return s.bearer(r, rest)
	case "basic":
		name, secret, err := basic(rest)
		if err != nil {
			return authz.Principal{}, err
		}
		p, err := s.session(r.Context(), name, secret, authz.APIDoor)
		if errors.Is(err, errToken) && strings.HasPrefix(secret, sessionPrefix) { // a session that has ended is no guess
			return authz.Principal{}, errLogin
		}
		if errors.Is(err, errToken) {
			return s.Login(r.Context(), name, secret, Remote(r), authz.APIDoor)
		}
		return p, err
	case cookieScheme:
		return s.cookie(r)
	}
	return authz.Principal{}, errScheme
}

// session gives whose session it is that was begun at a door.
func (s *Service) session(ctx context.Context, name, token string, by authz.Door) (authz.Principal, error) {
	p, err := s.token(ctx, token, name, kindSession)
	if err == nil && p.Door != by {
		return authz.Principal{}, errToken
	}
	return p, err
}

// bearer gives whose bearer token it is: one of the manager's own, the token of a session, or one that an authorization server has issued.
func (s *Service) bearer(r *http.Request, token string) (authz.Principal, error) {
	if strings.HasPrefix(token, sessionPrefix) {
		return s.session(r.Context(), "", token, authz.APIDoor)
	}
	p, err := s.token(r.Context(), token, "", kindBearer, kindAccess)
	if errors.Is(err, errToken) && !strings.HasPrefix(token, bearerPrefix) {
		return s.externalToken(r.Context(), token, Remote(r))
	}
	return p, err
}

// Remote is the client's address without its port.
func Remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func basic(text string) (name, secret string, err error) {
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", "", errForm
	}
	name, secret, ok := strings.Cut(string(plain), ":")
	if !ok || name == "" || secret == "" {
		return "", "", errForm
	}
	return name, secret, nil
}

// asks gives a request as credentials are looked at: one that nobody attends does not make a session last.
func asks(r *http.Request) *http.Request {
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get(Unattended) == "true" {
		return Quietly(r)
	}
	return r
}

// token gives whose token it is. A session's token must come with its user's name.
func (s *Service) token(ctx context.Context, token, name string, kinds ...string) (authz.Principal, error) {
	key := tokenKey{sha256.Sum256([]byte(token)), name}
	now := s.store.Now().Unix()
	found, ok := s.tokens.Now(key)
	if !ok || found.expires != 0 && found.expires <= now {
		var err error
		if found, err = s.lookUp(ctx, key, kinds); err != nil {
			return authz.Principal{}, err
		}
	}
	if found.note != 0 && found.note <= now && (found.principal.Session == 0 || ctx.Value(quietly{}) == nil) {
		if found.principal.Session != 0 {
			s.used(ctx, key, found.principal.Session, kinds)
		} else {
			s.tokenUsed(ctx, key, found.principal.Token, kinds)
		}
	}
	return found.principal, nil
}
