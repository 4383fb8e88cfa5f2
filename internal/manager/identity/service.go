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

// interfaceOf returns the interface, console or API, that a credential is valid for. The role column of a console session holds
// ConsoleInterface.
func interfaceOf(kind, role string) authz.Interface {
	if kind == kindSession && role == string(authz.ConsoleInterface) {
		return authz.ConsoleInterface
	}
	return authz.APIInterface
}

// topic is the cache topic that a transaction touches when it revokes or deletes a credential (store.Tx.Touch). Cached lookups of it are
// then invalidated. New credentials do not need this.
const topic = "credentials"

// tokenTopics are the topics that the owner of a token depends on.
var tokenTopics = []string{topic, "users", "sessions", "groups", "accessRights", authenticators}

// Lifetimes of a session token (reference/address-manager-behaviour.md) and of an access token from the token exchange
// (reference/fleet.md).
const (
	SessionLife = 24 * time.Hour
	AccessLife  = 5 * time.Minute
)

// Service checks credentials against the store.
type Service struct {
	store *store.Store
	// unknownHashing and knownHashing limit how many passwords are hashed at a time and how many requests wait. knownHashing is for
	// addresses with an earlier successful sign-in, so that a flood from other addresses does not lock everyone out.
	unknownHashing, knownHashing *limiter
	// lookups limits how many requests to authenticators run at a time.
	lookups *limiter
	// pepper is the HMAC key of the cache of checked passwords. It never leaves the process.
	pepper []byte
	// knownMu guards known. known maps HMAC(pepper, user and password) to the stored hash that the password was checked against.
	knownMu sync.Mutex
	known   map[[32]byte]string
	// tokens caches token lookups.
	tokens *store.Cache[tokenKey, tokenEntry]
	// throttle delays repeated failed sign-ins. observer is notified of them.
	throttle *loginThrottle
	observer Observer
	// certificateRequest caches whether browsers are asked for client certificates.
	certificateRequest certificateRequest
	// policies caches the sign-in and session settings.
	policies *policyCache
	// externals caches the external authenticators and their results.
	externals *externals
	// useUpdates holds the sessions and tokens whose last use is being recorded.
	useUpdates sync.Map
}

// tokenKey is the SHA-256 hash of a token and the user name sent with it. tokenEntry is the cached principal.
type tokenKey struct {
	hash [32]byte
	name string
}

type tokenEntry struct {
	principal authz.Principal
	expires   int64 // Unix seconds; 0: does not expire
	// updateUseAt is when the last use has to be recorded next, in Unix seconds. 0 means never.
	updateUseAt int64
}

func newService(s *store.Store) *Service {
	return &Service{store: s, unknownHashing: newHashLimiter(maxHashingPerAddress), knownHashing: newHashLimiter(maxHashing + maxWaiting),
		lookups: newLimiter(maxLookups, maxLookupsWaiting, maxLookupsPerAddress), pepper: secrets.RandomBytes(32),
		known: map[[32]byte]string{}, tokens: store.NewCache[tokenKey](s,
			store.CacheOptions[tokenEntry]{Topics: tokenTopics, Max: maxRemembered}), throttle: newLoginThrottle(s.Now),
		policies: newPolicyCache(s), externals: newExternals(s)}
}

// Observer is notified of sign-ins with a password, a key set, a link or an authenticator.
type Observer struct {
	// SignIn reports the result of a sign-in attempt: Accepted, Refused, Unavailable, or Throttled if the credentials were not checked.
	SignIn func(result, name, remote string)
	// Guessing reports that further sign-ins are now delayed, and after how many failures.
	Guessing func(name, remote string, failures int)
	// Unreachable reports that an authenticator could not be reached, and why.
	Unreachable func(authenticator string, err error)
	// ResponseRejected reports that a message from an authenticator about a user was rejected, and why.
	ResponseRejected func(authenticator string, err error)
	// UnknownUser is called for a sign-in that an authenticator accepts and the manager refuses: the name is not a user, and none of groups
	// exists.
	UnknownUser func(authenticator, name string, groups []string)
}

// Results of a sign-in.
const (
	Accepted  = "accepted"
	Refused   = "refused"
	Throttled = "throttled"
	// Unavailable means that the authenticator of the user could not be reached.
	Unavailable = "unavailable"
)

// Observe sets the observer. Call it before the service is used.
func (s *Service) Observe(o Observer) { s.observer, s.throttle.guessing = o, o.Guessing }

// reportSignIn notifies the observer of the result of a sign-in.
func (s *Service) reportSignIn(result, name, remote string) {
	if s.observer.SignIn != nil {
		s.observer.SignIn(result, name, remote)
	}
}

func unauthorized(code, message string) *problem.Problem {
	return problem.New(http.StatusUnauthorized, code, "%s", message)
}

// The errors for rejected credentials.
var (
	errMissing = unauthorized("InvalidAuthorizationToken", "the request has no Authorization header")
	errToken   = unauthorized("InvalidAuthorizationToken", "the token is unknown, expired or revoked")
	errLogin   = unauthorized("InvalidAuthorizationCredentials",
		"the user name or the password is wrong, or the account is locked or has no access to the API")
	errScheme = problem.Forbidden("InvalidAuthorizationScheme", "the scheme of the Authorization header must be Basic or Bearer")
	errForm   = unauthorized("InvalidAuthorizationToken", "the Authorization header is malformed")
)

// maxHeader is the maximum length of the credentials after the scheme, in bytes. A token of a user in a hundred groups is long.
const maxHeader = 16 << 10

// header splits the Authorization header into scheme and credentials. A request may have one such header. Without a header, a request with
// a session cookie gets the scheme cookieScheme.
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

// Bearer returns the principal of a request with a bearer token or a session cookie.
func (s *Service) Bearer(r *http.Request) (authz.Principal, error) {
	r = markUnattended(r)
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
		err = unauthorized("InvalidAuthorizationToken", "a bearer token is required here")
	}
	if err == nil && p.MustReset {
		err = problem.Forbidden("PasswordResetRequired", "%s must set a new password first, in the address API", p.Name)
	}
	return p, err
}

// AuthenticateAny returns the principal of a request with any credential of the address API: Basic with a session's API token, Basic with
// the password, a bearer token, or a session cookie.
func (s *Service) AuthenticateAny(r *http.Request) (authz.Principal, error) {
	r = markUnattended(r)
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
		p, err := s.session(r.Context(), name, secret, authz.APIInterface)
		if errors.Is(err, errToken) && strings.HasPrefix(secret, sessionPrefix) { // an ended session is not counted as a failed password
			return authz.Principal{}, errLogin
		}
		if errors.Is(err, errToken) {
			return s.Login(r.Context(), name, secret, Remote(r), authz.APIInterface)
		}
		return p, err
	case cookieScheme:
		return s.cookie(r)
	}
	return authz.Principal{}, errScheme
}

// session returns the principal of a session token. The session must have been started at the interface by.
func (s *Service) session(ctx context.Context, name, token string, by authz.Interface) (authz.Principal, error) {
	p, err := s.token(ctx, token, name, kindSession)
	if err == nil && p.Interface != by {
		return authz.Principal{}, errToken
	}
	return p, err
}

// bearer returns the principal of a bearer token: one that the manager issued, a session token, or one that an authorization server issued.
func (s *Service) bearer(r *http.Request, token string) (authz.Principal, error) {
	if strings.HasPrefix(token, sessionPrefix) {
		return s.session(r.Context(), "", token, authz.APIInterface)
	}
	p, err := s.token(r.Context(), token, "", kindBearer, kindAccess)
	if errors.Is(err, errToken) && !strings.HasPrefix(token, bearerPrefix) {
		return s.externalToken(r.Context(), token, Remote(r))
	}
	return p, err
}

// Remote returns the client's address without the port.
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

// markUnattended marks a read request that a page sends by itself (Unattended). Such a request does not extend the session.
func markUnattended(r *http.Request) *http.Request {
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get(Unattended) == "true" {
		return Quietly(r)
	}
	return r
}

// token returns the principal of a token. If name is not empty, it must be the name of the token's user.
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
	if found.updateUseAt != 0 && found.updateUseAt <= now && (found.principal.Session == 0 || ctx.Value(quietly{}) == nil) {
		if found.principal.Session != 0 {
			s.recordSessionUse(ctx, key, found.principal.Session, kinds)
		} else {
			s.recordTokenUse(ctx, key, found.principal.Token, kinds)
		}
	}
	return found.principal, nil
}
