package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// Roles of the fleet API and of bearer tokens (reference/fleet.md).
const (
	Administrator = "administrator"
	Analyst       = "analyst"
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
func doorOf(kind, role string) Door {
	if kind == kindSession && role == string(ConsoleDoor) {
		return ConsoleDoor
	}
	return APIDoor
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

// Principal is who a request comes from: a user, or a token or key set that was made on the command line.
type Principal struct {
	// User is the id of the user resource; 0 for a token that belongs to no user.
	User int64
	// Name is the user's name; "token NAME" or "key set NAME" for who is no user.
	Name string
	// Token is the id of the bearer token or key set; empty for a user's password or session.
	Token string
	// Role is Administrator or Analyst.
	Role string
	// Session is the session resource's id; 0 outside of one.
	Session int64
	// ReadOnly is a session that was opened for reading only, or an analyst's token.
	ReadOnly bool
	// History and Security are the user's historyPrivilege and securityPrivilege; who is no user sees the
	// history, and users as analysts do.
	History, Security string
	// MustReset says that nothing is open to the user but to set a new password.
	MustReset bool
	// Rights are what a user may do who is no administrator; nil for all others.
	Rights *Rights
	// Credential is what was shown that is neither a session, nor a token of the manager's, nor a password here.
	Credential string
	// door is the one that its session was begun at; empty outside of one.
	door Door
}

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
	// rights are what users may do, by their numbers.
	rights *store.Cache[int64, *Rights]
	// externals are the authenticators that ask others, and what they said.
	externals *externals
	// fourEyes are the types whose changes others approve, by configuration.
	fourEyes *store.Cache[int64, []string]
	// master are the master keys; nil before they are known.
	master atomic.Pointer[MasterKeys]
	// api says which collections there are (Govern).
	api atomic.Pointer[resource.API]
	// noting are the sessions and tokens of which is being noted that they are used.
	noting sync.Map
}

// tokenKey is a token by its hash, with the user's name it came with; tokenEntry is whose it is.
type tokenKey struct {
	hash [32]byte
	name string
}

type tokenEntry struct {
	principal Principal
	expires   int64 // in seconds since 1970; 0 where it does not expire
	// note is when it is to be noted that it is used, in seconds since 1970; 0 where that is not noted.
	note int64
}

// newService makes the service.
func newService(s *store.Store) *Service {
	return &Service{store: s, strangers: newGate(maxOfOne), friends: newGate(maxHashing + maxWaiting),
		asking: newGateOf(maxAsking, maxAskWaiting, maxAskOfOne), pepper: randomBytes(32),
		known: map[[32]byte]string{}, tokens: store.NewCache[tokenKey](s,
			store.CacheOptions[tokenEntry]{Topics: tokenTopics, Max: maxRemembered}), guesses: newGuesses(s.Now),
		manners: newManners(s), externals: newExternals(s), rights: store.NewCache[int64](s, store.CacheOptions[*Rights]{Topics: rightsTopics,
			Max: maxRemembered}),
		fourEyes: store.NewCache[int64](s, store.CacheOptions[[]string]{Topics: []string{"configurations"}, Late: true,
			Max: maxRemembered})}
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
	// Nobody is told that an authenticator knows somebody who is no user here, and in these groups there, none of which is known here.
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

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // crypto/rand.Read never fails
	return b
}

// NewSecret makes 256 random bits as text.
func NewSecret() string { return base64.RawURLEncoding.EncodeToString(randomBytes(32)) }

// Hash is how a token is kept. Tokens are random, so one round is enough.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
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
		if len(r.CookiesNamed(cookieNameOf(r))) > 0 {
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
func (s *Service) Bearer(r *http.Request) (Principal, error) {
	r = asks(r)
	scheme, token, err := header(r)
	if err != nil {
		return Principal{}, err
	}
	var p Principal
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
func (s *Service) Any(r *http.Request) (Principal, error) {
	r = asks(r)
	scheme, rest, err := header(r)
	if err != nil {
		return Principal{}, err
	}
	switch scheme {
	case "bearer":
		return s.bearer(r, rest)
	case "basic":
		name, secret, err := basic(rest)
		if err != nil {
			return Principal{}, err
		}
		p, err := s.session(r.Context(), name, secret, APIDoor)
		if errors.Is(err, errToken) && strings.HasPrefix(secret, sessionPrefix) { // a session that has ended is no guess
			return Principal{}, errLogin
		}
		if errors.Is(err, errToken) {
			return s.Login(r.Context(), name, secret, Remote(r), APIDoor)
		}
		return p, err
	case cookieScheme:
		return s.cookie(r)
	}
	return Principal{}, errScheme
}

// session gives whose session it is that was begun at a door.
func (s *Service) session(ctx context.Context, name, token string, by Door) (Principal, error) {
	p, err := s.token(ctx, token, name, kindSession)
	if err == nil && p.door != by {
		return Principal{}, errToken
	}
	return p, err
}

// bearer gives whose bearer token it is: one of the manager's own, or one that an authorization server has issued.
func (s *Service) bearer(r *http.Request, token string) (Principal, error) {
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

// BasicOf gives the user name and the secret of a Basic header, if the request has one.
func BasicOf(r *http.Request) (name, secret string, ok bool) {
	scheme, rest, err := header(r)
	if err != nil || scheme != "basic" {
		return "", "", false
	}
	name, secret, err = basic(rest)
	return name, secret, err == nil
}

// asks gives a request as credentials are looked at: one that nobody attends does not make a session last.
func asks(r *http.Request) *http.Request {
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get(Unattended) == "true" {
		return Quietly(r)
	}
	return r
}

// token gives whose token it is. A session's token must come with its user's name.
func (s *Service) token(ctx context.Context, token, name string, kinds ...string) (Principal, error) {
	key := tokenKey{sha256.Sum256([]byte(token)), name}
	now := s.store.Now().Unix()
	found, ok := s.tokens.Now(key)
	if !ok || found.expires != 0 && found.expires <= now {
		var err error
		if found, err = s.lookUp(ctx, key, kinds); err != nil {
			return Principal{}, err
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

// lookUp looks a token up by its hash, and remembers whose it is.
func (s *Service) lookUp(ctx context.Context, key tokenKey, kinds []string) (found tokenEntry, err error) {
	hash := hex.EncodeToString(key.hash[:])
	err = s.store.View(ctx, func(tx *store.Tx) error {
		if found.principal, found.expires, err = s.read(tx, hash, key.name, kinds); err != nil {
			return err
		}
		switch session, token := found.principal.Session, found.principal.Token; {
		case session != 0:
			found.note, err = s.noteAt(tx, session, found.expires)
		case token != "":
			found.note, err = usedAt(tx, token)
			found.note = max(1, found.note+int64(noteTokens/time.Second))
		}
		if err != nil {
			return err
		}
		s.tokens.Put(tx, key, found)
		return nil
	})
	return found, err
}

// read reads whose token it is that has a hash; expires is 0 where it does not expire.
func (s *Service) read(tx *store.Tx, hash, name string, kinds []string) (p Principal, expires int64, err error) {
	var id, found, kind, label, role string
	var userID, session, revoked int64
	for _, one := range kinds {
		err = tx.QueryRow("SELECT id, hash, kind, name, role, user_id, session, expires, revoked FROM credential WHERE kind = ? AND hash = ?",
			one, hash).Scan(&id, &found, &kind, &label, &role, &userID, &session, &expires, &revoked)
		if err == nil && kind == kindAccess { // which names the key set that it was made from
			id = label
			err = tx.QueryRow("SELECT name FROM credential WHERE id = ? AND kind = ?", id, kindKeySet).Scan(&label)
			if errors.Is(err, sql.ErrNoRows) {
				revoked, err = 1, nil
			}
		}
		if !errors.Is(err, sql.ErrNoRows) {
			break
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return Principal{}, 0, errToken
	}
	if err != nil {
		return Principal{}, 0, fmt.Errorf("looking up a token: %w", err)
	}
	user := &User{}
	if userID != 0 {
		if user, err = userOf(tx, userID); errors.Is(err, store.ErrNotFound) {
			return Principal{}, 0, errToken
		}
		if err != nil {
			return Principal{}, 0, fmt.Errorf("looking up a user: %w", err)
		}
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(found), []byte(hash)) != 1,
		revoked != 0, expires != 0 && expires <= s.store.Now().Unix(), userID != 0 && !user.usable(doorOf(kind, role)),
		name != "" && name != user.Name:
		return Principal{}, 0, errToken
	}
	if known, err := s.stillKnown(tx, user); err != nil || !known {
		return Principal{}, 0, errors.Join(err, errToken)
	}
	if p, err = s.principalOf(tx, user); err != nil {
		return Principal{}, 0, err
	}
	if kind != kindSession {
		return tokenPrincipal(kind, id, label, role, p), expires, nil
	}
	p.Session, p.door = session, doorOf(kind, role)
	p.ReadOnly, err = readsOnly(tx, session)
	return p, expires, err
}

// stillKnown reports whether the authenticator that knows a user is there, and enabled; the manager itself always is.
func (s *Service) stillKnown(tx *store.Tx, user *User) (bool, error) {
	own, err := user.isOwn(tx)
	if err != nil || own || s.api.Load() == nil {
		return err == nil, err
	}
	all, err := s.externalsIn(tx)
	return slices.ContainsFunc(all, func(e *external) bool { return e.id == user.Authenticator.ID }), err
}

// Acting gives who works in the background for a user, or for a token or key set by its id, as they are now; the problem AccessDenied where
// they may do nothing any more.
func (s *Service) Acting(tx *store.Tx, userID int64, token string) (resource.Caller, error) {
	gone := problem.Forbidden("AccessDenied", "whoever started this may not sign in any more")
	if token == "" {
		user, err := userOf(tx, userID)
		if errors.Is(err, store.ErrNotFound) || err == nil && user.AccountLocked {
			return resource.Caller{}, gone
		}
		if err != nil {
			return resource.Caller{}, fmt.Errorf("looking up a user: %w", err)
		}
		p, err := s.principalOf(tx, user)
		return CallerOf(p), err
	}
	var hash, kind string
	err := tx.QueryRow("SELECT hash, kind FROM credential WHERE id = ?", token).Scan(&hash, &kind)
	if errors.Is(err, sql.ErrNoRows) {
		return resource.Caller{}, gone
	}
	if err != nil {
		return resource.Caller{}, fmt.Errorf("looking up a token: %w", err)
	}
	p, _, err := s.read(tx, hash, "", []string{kind})
	if errors.Is(err, errToken) {
		return resource.Caller{}, gone
	}
	return CallerOf(p), err
}

// readsOnly reports whether a session may only read.
func readsOnly(tx *store.Tx, session int64) (bool, error) {
	x, err := sessionOf(tx, session)
	return err == nil && x.ReadOnly != nil && *x.ReadOnly, err
}

// endOf gives when a session ends, however much it is used, in seconds since 1970.
func endOf(tx *store.Tx, session int64) (int64, error) {
	x, err := sessionOf(tx, session)
	if err != nil {
		return 0, err
	}
	return x.APITokenExpirationDateTime.Unix(), nil
}

func sessionOf(tx *store.Tx, session int64) (*UserSession, error) {
	row, err := tx.Get(session)
	if err != nil {
		return nil, fmt.Errorf("looking up a session: %w", err)
	}
	o, err := sessionType.Object(row)
	if err != nil {
		return nil, err
	}
	return o.(*UserSession), nil
}

// principalOf is a user as who asks, with what the user may do. No user has the number 0.
func (s *Service) principalOf(tx *store.Tx, user *User) (p Principal, err error) {
	p = user.principal()
	if user.ID == 0 || p.Role == Administrator {
		return p, nil
	}
	if p.Rights, err = s.rightsOf(tx, user.ID); err != nil {
		return p, fmt.Errorf("looking up access rights: %w", err)
	}
	if p.Rights == nil {
		p.Role = Administrator
	}
	return p, nil
}

// tokenPrincipal is who a token or key set acts as: itself, or a user, of whom it never may do more.
func tokenPrincipal(kind, id, label, role string, user Principal) Principal {
	p := Principal{Name: "token " + label, Role: role, History: "ADMINISTRATOR"}
	if kind != kindBearer {
		p.Name = "key set " + label
	}
	if user.User != 0 {
		p = user
		if role == Analyst {
			p.Role = Analyst
		}
	}
	p.Token = id
	p.ReadOnly = role == Analyst // the token reads, whoever it was made by
	return p
}

// BasicCredentials is what follows "Basic " in the Authorization header.
func BasicCredentials(name, secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(name + ":" + secret))
}
