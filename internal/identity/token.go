package identity

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"

	"portolan/internal/problem"
	"portolan/internal/store"
)

// OpenSession makes the token of a session resource. The token is shown once.
func OpenSession(tx *store.Tx, session, user int64, expires time.Time) (token string, err error) {
	token = NewSecret()
	err = tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, session, created, expires) VALUES (?,?,?,?,'',?,?,?,?)",
		NewSecret(), kindSession, "session", user, Hash(token), session, tx.Now().Unix(), expires.Unix())
	return token, err
}

// CloseSession ends a session's token.
func CloseSession(tx *store.Tx, session int64) error {
	tx.Touch(topic)
	err := tx.Write("DELETE FROM credential WHERE session = ? AND kind = ?", session, kindSession)
	return err
}

// ExpiredSessions gives the sessions whose token has expired, and takes the tokens away, with
// expired access tokens.
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
	err = tx.Write("DELETE FROM credential WHERE expires <> 0 AND expires <= ? AND kind IN (?, ?)", now, kindSession, kindAccess)
	return sessions, err
}

// Expired reports whether any credential has expired and is still there.
func (s *Service) Expired(ctx context.Context) (yes bool, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow("SELECT EXISTS (SELECT 1 FROM credential WHERE expires <> 0 AND expires <= ? AND kind IN (?, ?))",
			tx.Now().Unix(), kindSession, kindAccess).Scan(&yes)
	})
	return yes, err
}

// Token is a bearer token or a key set as it is listed: without its secret.
type Token struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Created time.Time `json:"created"`
	// Expires is zero where the token does not expire.
	Expires time.Time `json:"expires"`
	Revoked bool      `json:"revoked"`
}

// administrator gives the user that tokens made on the command line act for.
func administrator(tx *store.Tx) (id int64, err error) {
	err = tx.QueryRow("SELECT id FROM resource WHERE collection = 'users' AND json_extract(body, '$.securityPrivilege') = 'ADMINISTRATOR' ORDER BY id LIMIT 1").Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, errors.New("there is no administrator yet: start the manager once")
	}
	return id, err
}

// CreateToken makes a bearer token; life 0 means it does not expire. The token is shown once.
func (s *Service) CreateToken(ctx context.Context, name, role string, life time.Duration) (token string, err error) {
	token = "ptl_" + NewSecret()
	return token, s.create(ctx, kindBearer, name, role, NewSecret()[:12], token, life)
}

// CreateKeySet makes the clientId and clientSecret of the token exchange, shown once.
func (s *Service) CreateKeySet(ctx context.Context, name, role string, life time.Duration) (id, secret string, err error) {
	id, secret = NewSecret()[:22], NewSecret()
	return id, secret, s.create(ctx, kindKeySet, name, role, id, secret, life)
}

func (s *Service) create(ctx context.Context, kind, name, role, id, secret string, life time.Duration) error {
	if role != Administrator && role != Analyst {
		return problem.Invalid("role", "%q is neither %s nor %s", role, Administrator, Analyst)
	}
	if name == "" || len(name) > 128 {
		return problem.Invalid("name", "must have 1 to 128 bytes")
	}
	if life < 0 {
		return problem.Invalid("expires", "must not be negative")
	}
	return s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		user, err := administrator(tx)
		if err != nil {
			return err
		}
		var expires int64
		if life > 0 {
			expires = tx.Now().Add(life).Unix()
		}
		err = tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, created, expires) VALUES (?,?,?,?,?,?,?,?)",
			id, kind, name, user, role, Hash(secret), tx.Now().Unix(), expires)
		return err
	})
}

// Tokens lists the bearer tokens and key sets.
func (s *Service) Tokens(ctx context.Context) (tokens []Token, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var t Token
			var created, expires int64
			if err := scan(&t.ID, &t.Kind, &t.Name, &t.Role, &created, &expires, &t.Revoked); err != nil {
				return err
			}
			t.Created = time.Unix(created, 0).UTC()
			if expires != 0 {
				t.Expires = time.Unix(expires, 0).UTC()
			}
			tokens = append(tokens, t)
			return nil
		}, "SELECT id, kind, name, role, created, expires, revoked FROM credential WHERE kind IN (?, ?) ORDER BY created, id", kindBearer, kindKeySet)
	})
	return tokens, err
}

// Revoke ends a bearer token or a key set, by its id, with the access tokens made from it.
func (s *Service) Revoke(ctx context.Context, id string) error {
	return s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		tx.Touch(topic)
		n, err := tx.Exec("UPDATE credential SET revoked = 1 WHERE id = ? AND kind IN (?, ?)", id, kindBearer, kindKeySet)
		if err != nil {
			return err
		}
		if n == 0 {
			return problem.NotFound("there is no token or key set %q", id)
		}
		err = tx.Write("DELETE FROM credential WHERE kind = ? AND name = ?", kindAccess, id)
		return err
	})
}

// Exchange makes an access token for a key set (reference/fleet.md, token exchange).
func (s *Service) Exchange(ctx context.Context, clientID, clientSecret string) (token string, life time.Duration, err error) {
	refused := unauthorized("InvalidAuthorizationCredentials", "the client id or the client secret is wrong, expired or revoked")
	err = s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		var hash, role string
		var user, expires, revoked int64
		err := tx.QueryRow("SELECT hash, role, user_id, expires, revoked FROM credential WHERE id = ? AND kind = ?", clientID, kindKeySet).
			Scan(&hash, &role, &user, &expires, &revoked)
		if errors.Is(err, sql.ErrNoRows) {
			return refused
		}
		if err != nil {
			return fmt.Errorf("looking up a key set: %w", err)
		}
		if subtle.ConstantTimeCompare([]byte(hash), []byte(Hash(clientSecret))) != 1 || revoked != 0 || expires != 0 && expires <= tx.Now().Unix() {
			return refused
		}
		token = "pta_" + NewSecret()
		err = tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, created, expires) VALUES (?,?,?,?,?,?,?,?)",
			NewSecret(), kindAccess, clientID, user, role, Hash(token), tx.Now().Unix(), tx.Now().Add(AccessLife).Unix())
		return err
	})
	return token, AccessLife, err
}

// Forbidden is the refusal of a change to someone who may only read.
func Forbidden(p Principal) error {
	return problem.New(http.StatusForbidden, "AccessDenied", "%s has the role %s and may read, not change", p.Name, p.Role)
}
