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
	"portolan/internal/engine/published"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/secrets"
)

// cookieScheme is the scheme that header returns for a request with a session cookie and without an Authorization header.
const cookieScheme = "cookie"

// Unattended is the header that a page sets on requests that it sends by itself, without a user action. Such a request does not extend the
// session.
const Unattended = "X-Portolan-Unattended"

// quietly is the context key of requests that do not record the use of their credentials.
type quietly struct{}

// Quietly returns a request that does not extend its session.
func Quietly(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), quietly{}, true))
}

// cookieName is the name of the session cookie. Over TLS it has the prefix __Host-: the browser then only accepts it from this host and
// with the attributes that are set here (draft-ietf-httpbis-rfc6265bis section 4.1.3).
const (
	cookieName       = "portolan"
	secureCookieName = "__Host-" + cookieName
)

// crossOrigin rejects changes that a page of another origin makes a browser send.
var crossOrigin = http.NewCrossOriginProtection()

// SameOrigin rejects a change that a browser sends from a page of another origin. Such a page can use the browser's cookie or remembered
// Basic credentials without knowing them. Programs other than browsers send no origin and are accepted.
func SameOrigin(r *http.Request) error {
	if crossOrigin.Check(r) != nil {
		return problem.Forbidden("CrossOriginRequest", "this request was sent by a page of another origin")
	}
	return nil
}

// overTLS reports whether the browser uses TLS, to the manager or to the first proxy (X-Forwarded-Proto). A client that forges the header
// only makes its own cookie stricter.
func overTLS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(first), "https")
}

// SetCookie sets the session cookie of the browser; empty credentials delete it. The request needs a header that browsers send only to
// their own origin, so that a page of another origin cannot trigger it.
func SetCookie(w http.ResponseWriter, r *http.Request, credentials string) {
	age := 0 // until the browser is closed
	if credentials == "" {
		age = -1
	}
	setCookie(w, r, cookieNameOf(r), credentials, http.SameSiteStrictMode, age)
}

// setCookie sets a cookie for this host only that scripts cannot read.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, site http.SameSite, age int) {
	//nolint:gosec // Secure is set if the browser uses TLS; otherwise the browser would reject the cookie
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: overTLS(r), SameSite: site, MaxAge: age})
}

// cookieNameOf returns the name of the session cookie.
func cookieNameOf(r *http.Request) string {
	if overTLS(r) {
		return secureCookieName
	}
	return cookieName
}

// errCookie reports a cookie whose session has ended.
var errCookie = unauthorized("InvalidAuthorizationToken", "the browser session has ended: sign in again")

// currentSessionPath is the path at which a page asks for its session when it is loaded.
const currentSessionPath = published.Base + "/sessions/current"

// ForgetCookie deletes the session cookie if err is errCookie and the request asks for the current session. The response to any other
// request can arrive after a new sign-in of the same page, and would delete the new cookie.
func ForgetCookie(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errCookie) && r.URL.Path == currentSessionPath {
		SetCookie(w, r, "")
	}
}

// Cookies that public clients send a session token in, over HTTP and over TLS. The manager never sets them.
const (
	tokenCookieName       = "API_TOKEN"
	secureTokenCookieName = "__Host-" + tokenCookieName
)

// tokenCookieNameOf returns the name of the cookie with a session token.
func tokenCookieNameOf(r *http.Request) string {
	if overTLS(r) {
		return secureTokenCookieName
	}
	return tokenCookieName
}

// hasCookie reports whether the request has a cookie with credentials.
func hasCookie(r *http.Request) bool {
	return len(r.CookiesNamed(cookieNameOf(r))) > 0 || len(r.CookiesNamed(tokenCookieNameOf(r))) > 0
}

// cookie returns the principal of the first valid cookie: first the console's, then the session token (API_TOKEN). Several cookies can have
// the same name if a parent domain has set one.
func (s *Service) cookie(r *http.Request) (authz.Principal, error) {
	refused := errToken
	for _, c := range r.CookiesNamed(cookieNameOf(r)) {
		refused = errCookie
		plain, err := base64.StdEncoding.DecodeString(c.Value)
		colon := bytes.LastIndexByte(plain, ':') // names can contain a colon, tokens cannot
		if err != nil || colon < 1 || len(c.Value) > maxHeader {
			continue
		}
		p, err := s.session(r.Context(), string(plain[:colon]), string(plain[colon+1:]), authz.ConsoleInterface)
		if !errors.Is(err, errToken) {
			return p, err
		}
	}
	for _, c := range r.CookiesNamed(tokenCookieNameOf(r)) {
		if len(c.Value) > maxHeader {
			continue
		}
		if p, err := s.session(r.Context(), "", c.Value, authz.APIInterface); !errors.Is(err, errToken) {
			return p, err
		}
	}
	return authz.Principal{}, refused
}

// LinkLife is the lifetime of a sign-in link.
const LinkLife = 15 * time.Minute

// errLink reports an invalid sign-in code.
var errLink = unauthorized("InvalidAuthorizationCredentials", "the link was already used or has expired, or its user may not sign in")

// NewLink creates the code of a link that signs a user in once, within LinkLife. The code is shown once.
func (s *Service) NewLink(ctx context.Context, user string) (code string, err error) {
	code = secrets.New()
	return code, s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		rows, err := tx.ByName("users", 0, user)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return problem.Invalid("user", "user %q does not exist", user)
		}
		if rows[0].Ref("authenticator") != 0 {
			return problem.Invalid("user", "%s must sign in with an authenticator", user)
		}
		return tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, created, expires) VALUES (?,?,?,?,'',?,?,?)",
			secrets.New(), kindLink, "link", rows[0].ID, secrets.Hash(code), tx.Now().Unix(), tx.Now().Add(LinkLife).Unix())
	})
}

// redeemLink returns the principal that a code signs in at an interface, and deletes the code.
func (s *Service) redeemLink(ctx context.Context, code, remote string, by authz.Interface) (p authz.Principal, err error) {
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
		if user, err = userOf(tx, userID); errors.Is(err, store.ErrNotFound) ||
			err == nil && (!user.canSignIn(by) || user.Authenticator.ID != 0) {
			err = errLink
		}
		return id, user, err
	}
	err = s.store.View(ctx, func(tx *store.Tx) error { // a refusal must not write
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
		s.reportSignIn(Refused, "a link", remote)
	case err == nil:
		s.reportSignIn(Accepted, p.Name, remote)
	}
	return p, err
}
