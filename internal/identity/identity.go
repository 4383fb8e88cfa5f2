// Package identity knows who asks and what they may do: passwords, sessions' tokens, bearer tokens,
// key sets and the access tokens made from them. It keeps hashes, never secrets. Users themselves
// are resources of address/; this package only reads of them what decides access.
package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"portolan/internal/problem"
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
)

// topic is what a transaction touches that takes a credential away (store.Tx.Touch): what was
// remembered of it must be forgotten. New credentials need no such thing.
const topic = "credentials"

// remembered are the topics on which depends whose token it is.
var remembered = []string{topic, "users", "sessions"}

// Lifetimes: a session's token (reference/address-manager-behaviour.md) and an access token of the
// exchange (reference/fleet.md).
const (
	SessionLife = 24 * time.Hour
	AccessLife  = 5 * time.Minute
)

// Principal is who a request comes from.
type Principal struct {
	// User is the id of the user resource.
	User int64
	Name string
	// Role is Administrator or Analyst.
	Role string
	// Session is the session resource's id; 0 outside of one.
	Session int64
	// ReadOnly is a session that was opened for reading only, or an analyst's token.
	ReadOnly bool
}

// Service checks credentials against the store.
type Service struct {
	store *store.Store
	// slots bounds the memory that password hashing takes at a time.
	slots chan struct{}
	// pepper keys the memory of checked passwords; it never leaves the process.
	pepper []byte
	// remembered guards known.
	remembered sync.Mutex
	// known maps HMAC(pepper, user and password) to the stored hash it was checked against.
	known map[[32]byte]string
	// looked guards tokens.
	looked sync.RWMutex
	// tokens are what looking up a token gave, good while the store's revision stands.
	tokens map[tokenKey]tokenEntry
}

// tokenKey is a token by its hash, with the user's name it came with; tokenEntry is whose it is.
type tokenKey struct {
	hash [32]byte
	name string
}

type tokenEntry struct {
	principal Principal
	expires   int64
	revision  uint64
}

// New makes the service.
func New(s *store.Store) *Service {
	for _, what := range remembered {
		s.Watch(what, nil)
	}
	return &Service{store: s, slots: make(chan struct{}, 2), pepper: randomBytes(32), known: map[[32]byte]string{}, tokens: map[tokenKey]tokenEntry{}}
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
	errLogin   = unauthorized("InvalidAuthorizationCredentials", "the user name or the password is wrong, or the account is locked")
	errForm    = unauthorized("InvalidAuthorizationToken", "the Authorization header is malformed")
)

// header splits the one Authorization header a request may have.
func header(r *http.Request) (scheme, rest string, err error) {
	values := r.Header.Values("Authorization")
	switch {
	case len(values) == 0:
		return "", "", errMissing
	case len(values) > 1:
		return "", "", problem.New(http.StatusBadRequest, "InvalidHeader", "Authorization: given %d times", len(values))
	}
	scheme, rest, ok := strings.Cut(values[0], " ")
	if rest = strings.TrimSpace(rest); !ok || rest == "" || len(rest) > 4096 {
		return "", "", errForm
	}
	return strings.ToLower(scheme), rest, nil
}

// Bearer gives the principal of a request that must have a bearer token.
func (s *Service) Bearer(r *http.Request) (Principal, error) {
	scheme, token, err := header(r)
	if err != nil {
		return Principal{}, err
	}
	if scheme != "bearer" {
		return Principal{}, unauthorized("InvalidAuthorizationToken", "a bearer token is needed here")
	}
	return s.token(r.Context(), token, "", kindBearer, kindAccess)
}

// Any gives the principal of a request with any credential of the address API: Basic with an API
// token, Basic with the password, or a bearer token.
func (s *Service) Any(r *http.Request) (Principal, error) {
	scheme, rest, err := header(r)
	if err != nil {
		return Principal{}, err
	}
	switch scheme {
	case "bearer":
		return s.token(r.Context(), rest, "", kindBearer, kindAccess)
	case "basic":
		name, secret, err := basic(rest)
		if err != nil {
			return Principal{}, err
		}
		p, err := s.token(r.Context(), secret, name, kindSession)
		if errors.Is(err, errToken) {
			return s.Login(r.Context(), name, secret)
		}
		return p, err
	}
	return Principal{}, errForm
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

// userColumns is what decides a user's access, read beside the credential.
const userColumns = "u.name, json_extract(u.body, '$.securityPrivilege'), json_extract(u.body, '$.accountLocked'), json_extract(u.body, '$.accessType')"

type userState struct {
	name, privilege, access string
	locked                  bool
}

func (u userState) usable() bool { return !u.locked && u.access != "GUI" }

func (u userState) role() string {
	if u.privilege == "ADMINISTRATOR" {
		return Administrator
	}
	return Analyst
}

// token gives whose token it is. A session's token must come with its user's name.
func (s *Service) token(ctx context.Context, token, name string, kinds ...string) (Principal, error) {
	revision, watched := s.store.Revision(remembered...)
	key := tokenKey{sha256.Sum256([]byte(token)), name}
	s.looked.RLock()
	known, ok := s.tokens[key]
	s.looked.RUnlock()
	if ok && watched && known.revision == revision && (known.expires == 0 || known.expires > s.store.Now().Unix()) {
		return known.principal, nil
	}
	p, expires, err := s.lookUp(ctx, hex.EncodeToString(key.hash[:]), name, kinds)
	if err != nil || !watched {
		return p, err
	}
	s.looked.Lock()
	defer s.looked.Unlock()
	if len(s.tokens) >= maxRemembered {
		clear(s.tokens)
	}
	s.tokens[key] = tokenEntry{p, expires, revision}
	return p, nil
}

// lookUp looks a token up by its hash.
func (s *Service) lookUp(ctx context.Context, hash, name string, kinds []string) (p Principal, expires int64, err error) {
	var found, role string
	var user userState
	var revoked int64
	var readOnly sql.NullBool
	err = s.store.View(ctx, func(tx *store.Tx) error {
		for _, kind := range kinds {
			err := tx.QueryRow("SELECT c.hash, c.role, c.user_id, c.session, c.expires, c.revoked, json_extract(s.body, '$.readOnly'), "+userColumns+
				" FROM credential c JOIN resource u ON u.id = c.user_id LEFT JOIN resource s ON s.id = c.session"+
				" WHERE c.kind = ? AND c.hash = ?", kind, hash).
				Scan(&found, &role, &p.User, &p.Session, &expires, &revoked, &readOnly, &user.name, &user.privilege, &user.locked, &user.access)
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Principal{}, 0, fmt.Errorf("looking up a token: %w", err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(found), []byte(hash)) != 1,
		revoked != 0, expires != 0 && expires <= s.store.Now().Unix(), !user.usable(),
		name != "" && name != user.name:
		return Principal{}, 0, errToken
	}
	p.Name, p.Role, p.ReadOnly = user.name, role, readOnly.Bool
	if role == "" {
		p.Role = user.role()
	}
	if role == Analyst { // the token reads, whoever it was made by
		p.ReadOnly = true
	}
	return p, expires, nil
}

// Login checks a user's name and password. A password that was right is remembered by its HMAC
// until it changes, so that clients that send it with every request do not pay for it each time.
func (s *Service) Login(ctx context.Context, name, password string) (p Principal, err error) {
	var hash string
	var user userState
	err = s.store.View(ctx, func(tx *store.Tx) error {
		err := tx.QueryRow("SELECT c.user_id, c.hash, "+userColumns+" FROM resource u JOIN credential c ON c.user_id = u.id AND c.kind = ?"+
			" WHERE u.name = ? AND u.collection = 'users'", kindPassword, name).
			Scan(&p.User, &hash, &user.name, &user.privilege, &user.locked, &user.access)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return Principal{}, fmt.Errorf("looking up a user: %w", err)
	}
	ok, err := s.checkPassword(ctx, name, password, hash)
	if err != nil {
		return Principal{}, err
	}
	if !ok || !user.usable() {
		return Principal{}, errLogin
	}
	p.Name, p.Role = user.name, user.role()
	return p, nil
}

// maxRemembered bounds the memory of checked passwords.
const maxRemembered = 10000

func (s *Service) checkPassword(ctx context.Context, name, password, hash string) (bool, error) {
	mac := hmac.New(sha256.New, s.pepper)
	mac.Write([]byte(name + "\x00" + password))
	key := [32]byte(mac.Sum(nil))
	s.remembered.Lock()
	known := s.known[key]
	s.remembered.Unlock()
	if known != "" && known == hash {
		return true, nil
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-s.slots }()
	if hash == "" {
		hash = decoy() // an unknown name takes as long as a wrong password
	}
	if !verifyPassword(hash, password) {
		return false, nil
	}
	s.remembered.Lock()
	defer s.remembered.Unlock()
	if len(s.known) >= maxRemembered {
		clear(s.known)
	}
	s.known[key] = hash
	return true, nil
}

// BasicCredentials is what follows "Basic " in the Authorization header.
func BasicCredentials(name, secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(name + ":" + secret))
}
