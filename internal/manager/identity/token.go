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

// sessionPrefix begins the tokens of sessions: one that has ended is no guess of a password.
const sessionPrefix = "pts_"

// bearerPrefix begins bearer tokens.
const bearerPrefix = "ptl_"

// boundTokens lets no session last longer than a time without a request from now on.
func boundTokens(tx *store.Tx, timeout time.Duration) error {
	tx.Touch(topic)
	until := tx.Now().Add(timeout).Unix()
	return tx.Write("UPDATE credential SET expires = ? WHERE kind = ? AND expires > ?", until, kindSession, until)
}

// OpenSession makes the token of a session resource, which is begun at a door and good there alone. The token is shown once.
func OpenSession(tx *store.Tx, session, user int64, expires time.Time, at authz.Door) (token string, err error) {
	token = sessionPrefix + secrets.New()
	err = tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, session, created, expires) VALUES (?,?,?,?,?,?,?,?,?)",
		secrets.New(), kindSession, "session", user, string(at), secrets.Hash(token), session, tx.Now().Unix(), expires.Unix())
	return token, err
}

// CloseSession ends a session's token.
func CloseSession(tx *store.Tx, session int64) error {
	tx.Touch(topic)
	err := tx.Write("DELETE FROM credential WHERE session = ? AND kind = ?", session, kindSession)
	return err
}

// ExpiredSessions gives the sessions whose token has expired, and takes the tokens away, with expired access tokens and links that nobody
// took.
func ExpiredSessions(tx *store.Tx) (sessions []int64, err error) {
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

// Expired reports whether any credential has expired and is still there.
func (s *Service) Expired(ctx context.Context) (yes bool, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow("SELECT EXISTS (SELECT 1 FROM credential WHERE expires <> 0 AND expires <= ? AND kind IN (?, ?, ?))",
			tx.Now().Unix(), kindSession, kindAccess, kindLink).Scan(&yes)
	})
	return yes, err
}

// Token is a bearer token or a key set as it is listed: without its secret.
type Token struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Name string `json:"name"`
	Role string `json:"role"`
	// Scopes say what it is good for; none: everything.
	Scopes []string `json:"scopes,omitempty"`
	// User is the name of the user that it acts as; empty where it stands for itself.
	User string `json:"user,omitempty"`
	// UserID is that user's number.
	UserID  int64     `json:"-"`
	Created time.Time `json:"created"`
	// Expires is zero where the token does not expire.
	Expires time.Time `json:"expires,omitzero"`
	// LastUsed is when it was used last, to the hour; zero where it never was.
	LastUsed time.Time `json:"lastUsed,omitzero"`
	Revoked  bool      `json:"revoked"`
}

// Grant is what a token or key set is made with.
type Grant struct {
	// Name is what it is for; the history shows it.
	Name string
	// Role is Administrator or Analyst.
	Role string
	// Scopes say what it is good for (ScopesOf); empty: everything.
	Scopes authz.Scopes
	// Life is how long it is good; 0 means that it does not expire.
	Life time.Duration
	// User is the name of the user that it acts as, and of whom it never may do more; empty where it stands
	// for itself.
	User string
	// Of is the person who makes it over the API, and whose it is, in place of User; nil where it is made on the manager's machine.
	Of *Maker
	// By is who makes it, as the history has it; what the manager makes by itself, without an author, does not stand there.
	By store.Author
}

// Maker is a person who makes a token.
type Maker struct {
	// User is the number of the user, Session that of the session, 0 where the request has a password.
	User, Session int64
	// Remote is the address that the request came from.
	Remote string
}

// mostTokens is how many tokens and key sets a user has that are good.
const mostTokens = 100

// DefaultLife is how long tokens and key sets are good where nothing else is asked for.
const DefaultLife = 90 * 24 * time.Hour

// Kinds of what programs sign in by.
const (
	BearerToken = kindBearer
	KeySet      = kindKeySet
)

// CreateToken makes a bearer token. It is shown once.
func (s *Service) CreateToken(ctx context.Context, g Grant) (token string, err error) {
	_, token, err = s.CreateBearer(ctx, g)
	return token, err
}

// CreateBearer makes a bearer token, and gives its id, by which it is revoked, too. The token is shown once.
func (s *Service) CreateBearer(ctx context.Context, g Grant) (id, token string, err error) {
	id, token = newID(12), bearerPrefix+secrets.New()
	return id, token, s.create(ctx, kindBearer, g, id, token)
}

// CreateKeySet makes the clientId and clientSecret of the token exchange, shown once.
func (s *Service) CreateKeySet(ctx context.Context, g Grant) (id, secret string, err error) {
	id, secret = newID(22), secrets.New()
	return id, secret, s.create(ctx, kindKeySet, g, id, secret)
}

// newID gives an id of so many characters that a command takes for no flag.
func newID(length int) string {
	for {
		if id := secrets.New()[:length]; id[0] != '-' {
			return id
		}
	}
}

func (s *Service) create(ctx context.Context, kind string, g Grant, id, secret string) error {
	if g.Role != authz.Administrator && g.Role != authz.Analyst {
		return problem.Invalid("role", "%q is neither %s nor %s", g.Role, authz.Administrator, authz.Analyst)
	}
	if g.Name == "" || len(g.Name) > 128 || strings.TrimSpace(g.Name) != g.Name ||
		strings.ContainsFunc(g.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return problem.Invalid("name", "must have 1 to 128 bytes, all of them to be seen, and no blanks around it")
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
				return problem.Invalid("user", "there is no user %q", g.User)
			}
			user = users[0].ID
		}
		if g.Of != nil {
			if err := g.Of.makes(tx, kind, g); err != nil {
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
		return noteToken(tx, "ADD", "Made", kind, id, g.Name, user, ", "+g.good())
	})
}

// good says what it is good for.
func (g Grant) good() string {
	return g.Role + " for " + cmp.Or(strings.Join(g.Scopes.List(), ", "), "everything")
}

// noteToken has it stand in the history that somebody has made or revoked a token or a key set; what the manager does by itself does not.
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
		of = " of " + cmp.Or(head.Name, "a user who is gone")
	}
	return tx.Note(operation+map[string]string{kindBearer: "_TOKEN", kindKeySet: "_KEY_SET"}[kind],
		fmt.Sprintf("%s the %s %q (%s)%s%s", did, kindNames[kind], name, id, of, more))
}

// makes looks whether the person may still make a token, now that everything is held, and keeps the event that it is made. What of the
// user was revoked goes.
func (m *Maker) makes(tx *store.Tx, kind string, g Grant) error {
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
	if n >= mostTokens {
		return problem.Conflict("TooManyTokens", "%s has %d tokens: revoke some", user.Name, n)
	}
	return event.Add(tx, event.Event{EventType: "INFO", Category: "APPLICATION", SourceName: m.Remote,
		Message: fmt.Sprintf("%s made the %s %q, %s, from %s", user.Name, kindNames[kind], g.Name, g.good(), m.Remote)}, m.User)
}

// kindNames are kinds as people call them.
var kindNames = map[string]string{kindBearer: "bearer token", kindKeySet: "key set"}

// Tokens lists the bearer tokens and key sets.
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

// Revoke ends a bearer token or a key set, by its id, with the access tokens made from it, and keeps the event. by is who does it.
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
		return problem.NotFound("there is no token or key set %q", id)
	}
	return tx.Write("DELETE FROM credential WHERE kind = ? AND name = ?", kindAccess, id)
}

// Exchange makes an access token for a key set (reference/fleet.md, token exchange), which came from an
// address. Who guesses is refused for a while; what is refused writes nothing.
func (s *Service) Exchange(ctx context.Context, clientID, clientSecret, remote string) (token string, life time.Duration, err error) {
	refused := unauthorized("InvalidAuthorizationCredentials", "the client id or the client secret is wrong, expired or revoked")
	if !nameable(clientID) {
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
			return "", "", 0, fmt.Errorf("looking up a key set: %w", err)
		case subtle.ConstantTimeCompare([]byte(hash), []byte(secrets.Hash(clientSecret))) != 1 || revoked != 0 || expires != 0 &&
			expires <= tx.Now().Unix():
			return "", "", 0, refused
		}
		return role, scopes, user, nil
	}
	// A look first: a refusal is no reason to write.
	var said manner
	throttled := false
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		if said, err = s.manners.get(tx); err != nil {
			return err
		}
		if err = s.guesses.may(who, remote, said.guesses, false); err != nil {
			throttled = true
			return err
		}
		_, _, _, err = check(tx)
		return err
	}); err != nil {
		if throttled {
			s.saw(Throttled, who, remote)
		}
		if errors.Is(err, refused) {
			s.guesses.failed(who, remote, said.guesses)
			s.saw(Refused, who, remote)
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
		s.guesses.succeeded(who, remote)
		s.saw(Accepted, who, remote)
	}
	return token, AccessLife, err
}

// Forbidden is the refusal of a change to someone who may only read.
func Forbidden(p authz.Principal) error {
	return problem.Forbidden("AccessDenied", "%s has the role %s and may read, not change: that takes the role %s", p.Name,
		p.Role, authz.Administrator)
}
