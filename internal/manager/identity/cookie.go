package identity

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/secrets"
)

// cookieScheme is how a request with a cookie in place of an Authorization header shows itself.
const cookieScheme = "cookie"

// Unattended is the header by which a page says that it asks by itself, and not because somebody is there: it does not make the session
// last.
const Unattended = "X-Portolan-Unattended"

// quietly is a request whose credentials are not noted as used.
type quietly struct{}

// Quietly gives a request that does not make a session last.
func Quietly(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), quietly{}, true))
}

// cookieName is the cookie of a session. Where the browser speaks TLS it has the prefix by which it takes it from this host alone, and with
// the attributes that are set here (draft-ietf-httpbis-rfc6265bis section 4.1.3).
const (
	cookieName       = "portolan"
	secureCookieName = "__Host-" + cookieName
)

// crossOrigin refuses changes that a page of somebody else makes a browser send.
var crossOrigin = http.NewCrossOriginProtection()

// SameOrigin refuses a change that a browser sends from a page of another origin: whatever the request has that says who asks, a cookie or
// Basic credentials that the browser remembers, the page did not know it. Programs that are no browsers say nothing of an origin.
func SameOrigin(r *http.Request) error {
	if crossOrigin.Check(r) != nil {
		return problem.Forbidden("CrossOriginRequest", "a browser sent this from a page of another origin")
	}
	return nil
}

// overTLS reports whether the browser speaks TLS, with the manager or with the first that stands before it. Who lies about that makes its
// own cookie stricter.
func overTLS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(first), "https")
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

// errCookie is the refusal of a cookie whose session has ended.
var errCookie = unauthorized("InvalidAuthorizationToken", "the session of the browser has ended")

// ForgetCookie has the browser forget its cookie where that is what was refused.
func ForgetCookie(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errCookie) {
		SetCookie(w, r, "")
	}
}

// The cookies in which public clients send the token of a session, over HTTP and over TLS. The manager sets neither.
const (
	tokenCookieName       = "API_TOKEN"
	secureTokenCookieName = "__Host-" + tokenCookieName
)

// tokenCookieNameOf is the name of the cookie with the token of a session.
func tokenCookieNameOf(r *http.Request) string {
	if overTLS(r) {
		return secureTokenCookieName
	}
	return tokenCookieName
}

// hasCookie reports whether the request has a cookie that says who sends it.
func hasCookie(r *http.Request) bool {
	return len(r.CookiesNamed(cookieNameOf(r))) > 0 || len(r.CookiesNamed(tokenCookieNameOf(r))) > 0
}

// cookie gives the principal of the first cookie that is valid: that of the console, then the token of a session (API_TOKEN). Several
// cookies of one name come where others have set one on a host above.
func (s *Service) cookie(r *http.Request) (authz.Principal, error) {
	refused := errToken
	for _, c := range r.CookiesNamed(cookieNameOf(r)) {
		refused = errCookie
		plain, err := base64.StdEncoding.DecodeString(c.Value)
		colon := bytes.LastIndexByte(plain, ':') // names may have one, tokens have none
		if err != nil || colon < 1 || len(c.Value) > maxHeader {
			continue
		}
		p, err := s.session(r.Context(), string(plain[:colon]), string(plain[colon+1:]), authz.ConsoleDoor)
		if !errors.Is(err, errToken) {
			return p, err
		}
	}
	for _, c := range r.CookiesNamed(tokenCookieNameOf(r)) {
		if len(c.Value) > maxHeader {
			continue
		}
		if p, err := s.session(r.Context(), "", c.Value, authz.APIDoor); !errors.Is(err, errToken) {
			return p, err
		}
	}
	return authz.Principal{}, refused
}

// LinkLife is how long a link that signs somebody in is good.
const LinkLife = 15 * time.Minute

// errLink is the refusal of a code.
var errLink = unauthorized("InvalidAuthorizationCredentials", "the link was used already, or is too old, or its user may not come in here")

// NewLink makes the code of a link that signs a user in once, within LinkLife. It is shown once.
func (s *Service) NewLink(ctx context.Context, user string) (code string, err error) {
	code = secrets.New()
	return code, s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		rows, err := tx.ByName("users", 0, user)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return problem.Invalid("user", "there is no user %q", user)
		}
		if rows[0].Ref("authenticator") != 0 {
			return problem.Invalid("user", "%s is known by an authenticator, which says each time whether that is so", user)
		}
		return tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, created, expires) VALUES (?,?,?,?,'',?,?,?)",
			secrets.New(), kindLink, "link", rows[0].ID, secrets.Hash(code), tx.Now().Unix(), tx.Now().Add(LinkLife).Unix())
	})
}

// takeLink gives the principal whom a code signs in at a door, and takes the code away.
func (s *Service) takeLink(ctx context.Context, code, remote string, by authz.Door) (p authz.Principal, err error) {
	find := func(tx *store.Tx) (id string, user *User, err error) {
		var userID int64
		err = tx.QueryRow("SELECT id, user_id FROM credential WHERE kind = ? AND hash = ? AND expires > ? AND revoked = 0", kindLink,
			secrets.Hash(code),
			tx.Now().Unix()).Scan(&id, &userID)
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil, errLink
		}
		if err != nil {
			return "", nil, err
		}
		if user, err = userOf(tx, userID); errors.Is(err, store.ErrNotFound) || err == nil && (!user.enters(by) || user.Authenticator.ID != 0) {
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
