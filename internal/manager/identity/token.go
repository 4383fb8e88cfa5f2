package identity

import (
	"cmp"
	"context"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/secrets"
)

// sessionPrefix is the prefix of session tokens. It tells an ended session from a wrong password.
const sessionPrefix = "pts_"

// bearerPrefix is the prefix of bearer tokens.
const bearerPrefix = "ptl_"

// limitTokenLife shortens all session tokens so that they expire after timeout, counted from now.
func limitTokenLife(tx *store.Tx, timeout time.Duration) error {
	tx.Touch(topic)
	until := tx.Now().Add(timeout).Unix()
	return tx.Write("UPDATE credential SET expires = ? WHERE kind = ? AND expires > ?", until, kindSession, until)
}

// openSession creates the token of a session resource. The token is valid only at the interface at, and is shown once.
func openSession(tx *store.Tx, session, user int64, expires time.Time, at authz.Interface) (token string, err error) {
	token = sessionPrefix + secrets.New()
	err = tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, session, created, expires) VALUES (?,?,?,?,?,?,?,?,?)",
		secrets.New(), kindSession, "session", user, string(at), secrets.Hash(token), session, tx.Now().Unix(), expires.Unix())
	return token, err
}

// closeSession deletes the token of a session.
func closeSession(tx *store.Tx, session int64) error {
	tx.Touch(topic)
	err := tx.Write("DELETE FROM credential WHERE session = ? AND kind = ?", session, kindSession)
	return err
}

// expiredSessions returns the sessions whose token has expired. It deletes these tokens, and expired access tokens and sign-in links.
func expiredSessions(tx *store.Tx) (sessions []int64, err error) {
	tx.Touch(topic)
	now := tx.Now().Unix()
	err = tx.Each(func(scan func(...any) error) error {
		var id int64
		if err := scan(&id); err != nil {
			return err
		}
		sessions = append(sessions, id)
		return nil
	}, "SELECT session FROM credential WHERE expires <> 0 AND expires <= ? AND kind = ?", now, kindSession)
	if err != nil {
		return nil, err
	}
	err = tx.Write("DELETE FROM credential WHERE expires <> 0 AND expires <= ? AND kind IN (?, ?, ?)", now, kindSession, kindAccess, kindLink)
	return sessions, err
}

// HasExpired reports whether any expired credential still has to be deleted.
func (s *Service) HasExpired(ctx context.Context) (yes bool, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow("SELECT EXISTS (SELECT 1 FROM credential WHERE expires <> 0 AND expires <= ? AND kind IN (?, ?, ?))",
			tx.Now().Unix(), kindSession, kindAccess, kindLink).Scan(&yes)
	})
	return yes, err
}

// Token describes a bearer token or a key set without its secret.
type Token struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Name string `json:"name"`
	Role string `json:"role"`
	// Scopes restrict what the token can be used for; empty means everything.
	Scopes []string `json:"scopes,omitempty"`
	// User is the name of the user that the token acts as; empty if it belongs to no user.
	User string `json:"user,omitempty"`
	// UserID is the id of that user.
	UserID  int64     `json:"-"`
	Created time.Time `json:"created"`
	// Expires is zero if the token does not expire.
	Expires time.Time `json:"expires,omitzero"`
	// LastUsed is when the token was last used, to the hour; zero if never.
	LastUsed time.Time `json:"lastUsed,omitzero"`
	Revoked  bool      `json:"revoked"`
}

// Grant describes a token or key set to create.
type Grant struct {
	// Name is the purpose of the token; the history shows it.
	Name string
	// Role is Administrator or Analyst.
	Role string
	// Scopes restrict what the token can be used for (ScopesOf); empty means everything.
	Scopes authz.Scopes
	// Life is the lifetime; 0 means that the token does not expire.
	Life time.Duration
	// User is the name of the user that the token acts as. The token never has more rights than the user. Empty if it belongs to no user.
	User string
	// Of is the person who creates the token over the API and owns it, in place of User. Nil if it is created on the manager's machine.
	Of *Maker
	// By is the author in the history. Tokens without an author are not recorded there.
	By store.Author
}

// Maker is a person who creates a token over the API.
type Maker struct {
	// User is the id of the user. Session is the id of the session; 0 if the request has a password.
	User, Session int64
	// Remote is the client address of the request.
	Remote string
}

// maxTokens is the maximum number of valid tokens and key sets of a user.
const maxTokens = 100

// DefaultLife is the default lifetime of tokens and key sets.
const DefaultLife = 90 * 24 * time.Hour

// Kinds of credentials of programs.
const (
	BearerToken = kindBearer
	KeySet      = kindKeySet
)

// CreateToken creates a bearer token. The token is shown once.
func (s *Service) CreateToken(ctx context.Context, g Grant) (token string, err error) {
	_, token, err = s.CreateBearer(ctx, g)
	return token, err
}

// CreateBearer creates a bearer token and returns it with the id that revokes it. The token is shown once.
func (s *Service) CreateBearer(ctx context.Context, g Grant) (id, token string, err error) {
	id, token = newID(12), bearerPrefix+secrets.New()
	return id, token, s.create(ctx, kindBearer, g, id, token)
}

// CreateKeySet creates the clientId and clientSecret of the token exchange. The secret is shown once.
func (s *Service) CreateKeySet(ctx context.Context, g Grant) (id, secret string, err error) {
	id, secret = newID(22), secrets.New()
	return id, secret, s.create(ctx, kindKeySet, g, id, secret)
}

// newID returns a random id of length characters. It does not start with a hyphen, so that a command line does not parse it as a flag.
func newID(length int) string {
	for {
		if id := secrets.New()[:length]; id[0] != '-' {
			return id
		}
	}
}

func (s *Service) create(ctx context.Context, kind string, g Grant, id, secret string) error {
	if g.Role != authz.Administrator && g.Role != authz.Analyst {
		return problem.Invalid("role", "must be %s or %s, not %q", authz.Administrator, authz.Analyst, g.Role)
	}
	if g.Name == "" || len(g.Name) > 128 || strings.TrimSpace(g.Name) != g.Name ||
		strings.ContainsFunc(g.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return problem.Invalid("name", "must have 1 to 128 printable bytes, without leading or trailing blanks")
	}
	if g.Life < 0 {
		return problem.Invalid("expires", "must not be negative")
	}
	return s.store.Update(ctx, g.By, func(tx *store.Tx) error {
		var user int64
		if g.User != "" {
			users, err := tx.ByName("users", 0, g.User)
			if err != nil {
				return err
			}
			if len(users) == 0 {
				return problem.Invalid("user", "user %q does not exist", g.User)
			}
			user = users[0].ID
		}
		if g.Of != nil {
			if err := g.Of.authorize(tx, kind, g); err != nil {
				return err
			}
			user = g.Of.User
		}
		var expires int64
		if g.Life > 0 {
			expires = tx.Now().Add(g.Life).Unix()
		}
		if err := tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, created, expires, scopes)"+
			" VALUES (?,?,?,?,?,?,?,?,?)", id, kind, g.Name, user, g.Role, secrets.Hash(secret), tx.Now().Unix(), expires,
			string(g.Scopes)); err != nil {
			return err
		}
		return noteToken(tx, "ADD", "Made", kind, id, g.Name, user, ", "+g.describe())
	})
}

// describe returns the role and the scopes in words, for the history and events.
func (g Grant) describe() string {
	return g.Role + " for " + cmp.Or(strings.Join(g.Scopes.List(), ", "), "everything")
}

// noteToken records in the history that a token or key set was created or revoked. Changes without an author are not recorded.
func noteToken(tx *store.Tx, operation, did, kind, id, name string, user int64, more string) error {
	if tx.Author() == (store.Author{}) {
		return nil
	}
	of := ""
	if user != 0 {
		head, err := tx.Head(user)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		of = " of " + cmp.Or(head.Name, "a deleted user")
	}
	return tx.Note(operation+map[string]string{kindBearer: "_TOKEN", kindKeySet: "_KEY_SET"}[kind],
		fmt.Sprintf("%s the %s %q (%s)%s%s", did, kindNames[kind], name, id, of, more))
}

// authorize checks inside the transaction that the person may still create a token, and adds the event. It deletes the user's revoked and
// expired tokens.
func (m *Maker) authorize(tx *store.Tx, kind string, g Grant) error {
	user, err := userOf(tx, m.User)
	if errors.Is(err, store.ErrNotFound) || err == nil && (user.AccountLocked || user.X509Required && m.Session == 0) {
		return errToken
	}
	if err != nil {
		return err
	}
	if m.Session != 0 {
		var there bool
		if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM credential WHERE session = ? AND kind = ? AND revoked = 0 AND expires > ?)",
			m.Session,
			kindSession, tx.Now().Unix()).Scan(&there); err != nil || !there {
			return errors.Join(err, errToken)
		}
	}
	if err := tx.Write("DELETE FROM credential WHERE user_id = ? AND kind IN (?, ?) AND (revoked = 1 OR expires <> 0 AND expires <= ?)",
		m.User,
		kindBearer, kindKeySet, tx.Now().Unix()); err != nil {
		return err
	}
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM credential WHERE user_id = ? AND kind IN (?, ?)", m.User, kindBearer, kindKeySet).
		Scan(&n); err != nil {
		return err
	}
	if n >= maxTokens {
		return problem.Conflict("TooManyTokens", "%s has %d tokens: revoke some", user.Name, n)
	}
	return event.Add(tx, event.Event{EventType: "INFO", Category: "APPLICATION", SourceName: m.Remote,
		Message: fmt.Sprintf("%s created the %s %q, %s, from %s", user.Name, kindNames[kind], g.Name, g.describe(), m.Remote)}, m.User)
}

// kindNames are the names of the kinds in texts for people.
var kindNames = map[string]string{kindBearer: "bearer token", kindKeySet: "key set"}

// Tokens returns all bearer tokens and key sets.
func (s *Service) Tokens(ctx context.Context) (tokens []Token, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var t Token
			var created, expires, used int64
			var scopes string
			if err := scan(&t.ID, &t.Kind, &t.Name, &t.Role, &t.User, &t.UserID, &created, &expires, &t.Revoked, &scopes, &used); err != nil {
				return err
			}
			if used != 0 {
				t.LastUsed = time.Unix(used, 0).UTC()
			}
			t.Created, t.Scopes = time.Unix(created, 0).UTC(), authz.Scopes(scopes).List()
			if expires != 0 {
				t.Expires = time.Unix(expires, 0).UTC()
			}
			tokens = append(tokens, t)
			return nil
		},
			"SELECT c.id, c.kind, c.name, c.role, coalesce(u.name, ''), c.user_id, c.created, c.expires, c.revoked, c.scopes, coalesce(l.used, 0)"+
				" FROM credential c"+
				" LEFT JOIN resource u ON u.id = c.user_id LEFT JOIN credential_used l ON l.id = c.id"+
				" WHERE c.kind IN (?, ?) ORDER BY c.created, c.id", kindBearer, kindKeySet)
	})
	return tokens, err
}

// Revoke revokes a bearer token or a key set by its id, deletes the access tokens created from it, and adds an event. by is the author.
func (s *Service) Revoke(ctx context.Context, id string, by store.Author) error {
	return s.store.Update(ctx, by, func(tx *store.Tx) error {
		var kind, name string
		var user int64
		var already bool
		err := tx.QueryRow("SELECT kind, name, user_id, revoked FROM credential WHERE id = ? AND kind IN (?, ?)", id, kindBearer, kindKeySet).
			Scan(&kind, &name, &user, &already)
		if err != nil && !errors.Is(err, sql.ErrNoRows) || already {
			return err
		}
		if err := revoke(tx, id); err != nil {
			return err
		}
		if err := noteToken(tx, "REVOKE", "Revoked", kind, id, name, user, ""); err != nil {
			return err
		}
		return event.Add(tx, event.Event{EventType: "INFO", Category: "APPLICATION", SourceName: by.Name,
			Message: fmt.Sprintf("%s revoked the %s %q", by.Name, kindNames[kind], name)}, user)
	})
}

func revoke(tx *store.Tx, id string) error {
	tx.Touch(topic)
	n, err := tx.Exec("UPDATE credential SET revoked = 1 WHERE id = ? AND kind IN (?, ?)", id, kindBearer, kindKeySet)
	if err != nil {
		return err
	}
	if n == 0 {
		return problem.NotFound("token or key set %q does not exist", id)
	}
	return tx.Write("DELETE FROM credential WHERE kind = ? AND name = ?", kindAccess, id)
}

// Exchange creates an access token for a key set (reference/fleet.md, token exchange). remote is the client address. Repeated failures are
// delayed, and a refusal writes nothing to the database.
func (s *Service) Exchange(ctx context.Context, clientID, clientSecret, remote string) (token string, life time.Duration, err error) {
	refused := unauthorized("InvalidAuthorizationCredentials", "the client id or the client secret is wrong, expired or revoked")
	if !isStorableName(clientID) {
		clientID = "\ufffd"
	}
	who := "key set " + clientID
	check := func(tx *store.Tx) (role, scopes string, user int64, err error) {
		var hash string
		var expires, revoked int64
		err = tx.QueryRow("SELECT hash, role, scopes, user_id, expires, revoked FROM credential WHERE id = ? AND kind = ?", clientID,
			kindKeySet).Scan(&hash, &role, &scopes, &user, &expires, &revoked)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return "", "", 0, refused
		case err != nil:
			return "", "", 0, fmt.Errorf("look up a key set: %w", err)
		case subtle.ConstantTimeCompare([]byte(hash), []byte(secrets.Hash(clientSecret))) != 1 || revoked != 0 || expires != 0 &&
			expires <= tx.Now().Unix():
			return "", "", 0, refused
		}
		return role, scopes, user, nil
	}
	// Check in a read transaction first: a refusal must not write.
	var policy signInPolicy
	throttled := false
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		if policy, err = s.policies.get(tx); err != nil {
			return err
		}
		if err = s.throttle.check(who, remote, policy.throttle, false); err != nil {
			throttled = true
			return err
		}
		_, _, _, err = check(tx)
		return err
	}); err != nil {
		if throttled {
			s.reportSignIn(Throttled, who, remote)
		}
		if errors.Is(err, refused) {
			s.throttle.countFailure(who, remote, policy.throttle)
			s.reportSignIn(Refused, who, remote)
		}
		return "", 0, err
	}
	err = s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		role, scopes, user, err := check(tx)
		if err != nil {
			return err
		}
		token = "pta_" + secrets.New()
		return tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, created, expires, scopes)"+
			" VALUES (?,?,?,?,?,?,?,?,?)", secrets.New(), kindAccess, clientID, user, role, secrets.Hash(token), tx.Now().Unix(),
			tx.Now().Add(AccessLife).Unix(), scopes)
	})
	if err == nil {
		s.throttle.succeeded(who, remote)
		s.reportSignIn(Accepted, who, remote)
	}
	return token, AccessLife, err
}

// Forbidden returns the error for a change by a caller who may only read.
func Forbidden(p authz.Principal) error {
	return problem.Forbidden("AccessDenied", "%s has the read-only role %s: changes require the role %s", p.Name,
		p.Role, authz.Administrator)
}
