package access

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"portolan/internal/problem"
	"portolan/internal/store"
)

// cookieScheme is how a request with the cookie of a session in place of an Authorization header shows itself.
const cookieScheme = "cookie"

// cookieName is the cookie of a session. Where the browser speaks TLS it has the prefix by which it takes it from this host alone, and with
// the attributes that are set here (draft-ietf-httpbis-rfc6265bis section 4.1.3).
const (
	cookieName       = "portolan"
	secureCookieName = "__Host-" + cookieName
)

// crossOrigin refuses requests that a page of somebody else makes a browser send, which has the cookie.
var crossOrigin = http.NewCrossOriginProtection()

// sameOrigin refuses a change that comes from a page of another origin.
func sameOrigin(r *http.Request) error {
	if crossOrigin.Check(r) != nil {
		return problem.Forbidden("CrossOriginRequest", "a browser sent this from a page of another origin; take a token for that")
	}
	return nil
}

// overTLS reports whether the browser speaks TLS, with the manager or with what stands before it. Who lies about that makes its own cookie
// stricter.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// SetCookie has the browser keep the credentials of a session; empty ones are forgotten. A page of another origin cannot ask for it: the
// header that asks is one that a browser sends to its own origin alone.
func SetCookie(w http.ResponseWriter, r *http.Request, credentials string) {
	age := 0 // as long as the browser is open
	if credentials == "" {
		age = -1
	}
	keep(w, r, cookieNameOf(r), credentials, http.SameSiteStrictMode, age)
}

// keep has the browser keep a cookie for the whole of this host alone, out of the reach of scripts.
func keep(w http.ResponseWriter, r *http.Request, name, value string, site http.SameSite, age int) {
	//nolint:gosec // Secure where the browser speaks TLS: elsewhere it would not be kept
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: overTLS(r), SameSite: site, MaxAge: age})
}

// cookieNameOf is the name of the cookie of a session.
func cookieNameOf(r *http.Request) string {
	if overTLS(r) {
		return secureCookieName
	}
	return cookieName
}

// ForgetCookie has the browser forget the cookie of a request that was refused because its session has ended.
func ForgetCookie(w http.ResponseWriter, r *http.Request, err error) {
	if p, ok := problem.As(err); ok && p.Status == http.StatusUnauthorized && r.Header.Get("Authorization") == "" && cookieOf(r) != "" {
		SetCookie(w, r, "")
	}
}

// cookieOf gives the credentials of a request's cookie; empty where it has none.
func cookieOf(r *http.Request) string {
	if c, err := r.Cookie(cookieNameOf(r)); err == nil && len(c.Value) <= maxHeader {
		return c.Value
	}
	return ""
}

// cookie gives the principal of a request with a cookie.
func (s *Service) cookie(r *http.Request, value string) (Principal, error) {
	if err := sameOrigin(r); err != nil {
		return Principal{}, err
	}
	name, token, err := basic(value)
	if err != nil {
		return Principal{}, err
	}
	return s.session(r.Context(), name, token, ConsoleDoor)
}

// LinkLife is how long a link that signs somebody in is good.
const LinkLife = 15 * time.Minute

// errLink is the refusal of a code.
var errLink = unauthorized("InvalidAuthorizationCredentials", "the link was used already, or is too old, or its user may not come in here")

// NewLink makes the code of a link that signs a user in once, within LinkLife. It is shown once.
func (s *Service) NewLink(ctx context.Context, user string) (code string, err error) {
	code = NewSecret()
	return code, s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		rows, err := tx.ByName("users", 0, user)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return problem.Invalid("user", "there is no user %q", user)
		}
		return tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, created, expires) VALUES (?,?,?,?,'',?,?,?)",
			NewSecret(), kindLink, "link", rows[0].ID, Hash(code), tx.Now().Unix(), tx.Now().Add(LinkLife).Unix())
	})
}

// takeLink gives the principal whom a code signs in at a door, and takes the code away.
func (s *Service) takeLink(ctx context.Context, code, remote string, by Door) (p Principal, err error) {
	find := func(tx *store.Tx) (id string, user *User, err error) {
		var userID int64
		err = tx.QueryRow("SELECT id, user_id FROM credential WHERE kind = ? AND hash = ? AND expires > ?", kindLink, Hash(code),
			tx.Now().Unix()).Scan(&id, &userID)
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil, errLink
		}
		if err != nil {
			return "", nil, err
		}
		if user, err = userOf(tx, userID); errors.Is(err, store.ErrNotFound) || err == nil && !user.usable(by) {
			err = errLink
		}
		return id, user, err
	}
	err = s.store.View(ctx, func(tx *store.Tx) error { // a refusal is no reason to write
		_, _, err := find(tx)
		return err
	})
	if err == nil {
		err = s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			id, user, err := find(tx)
			if err != nil {
				return err
			}
			if err := tx.Write("DELETE FROM credential WHERE id = ?", id); err != nil {
				return err
			}
			p, err = s.principalOf(tx, user)
			return err
		})
	}
	switch {
	case errors.Is(err, errLink):
		s.saw(Refused, "a link", remote)
	case err == nil:
		s.saw(Accepted, p.Name, remote)
	}
	return p, err
}
