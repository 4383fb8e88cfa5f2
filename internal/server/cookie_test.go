package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"portolan/internal/access"
	"portolan/internal/problem"
)

// inCookie asks for a session whose token the browser keeps.
const inCookie = "x-portolan-session: cookie"

// atConsole signs in as a browser does and gives the header with which it comes back.
func (m *manager) atConsole(body string) string {
	m.t.Helper()
	s := m.want(201, "POST", "/api/v2/sessions", body, "Authorization:", inCookie)
	if s.get("apiToken") != nil || s.get("basicAuthenticationCredentials") != nil {
		m.t.Errorf("the token is shown to scripts: %s", s.body)
	}
	kept, _, _ := strings.Cut(s.Header.Get("Set-Cookie"), ";")
	if !strings.HasPrefix(kept, "portolan=") || !strings.HasSuffix(s.Header.Get("Set-Cookie"), "; Path=/; HttpOnly; SameSite=Strict") {
		m.t.Fatalf("the cookie is %q", s.Header.Get("Set-Cookie"))
	}
	return "Cookie: " + kept
}

func TestCookies(t *testing.T) {
	m := startAlone(t)
	credentials := `{"username":"admin","password":"` + adminPassword + `"}`
	cookie := m.atConsole(credentials)
	none := "Authorization:"
	m.want(200, "GET", "/api/v2/sessions/current", "", none, cookie)
	m.want(200, "GET", "/user/api/v1/fleetInstances", "", none, cookie)
	m.want(201, "POST", "/api/v2/configurations", `{"name":"by cookie"}`, none, cookie)
	m.want(201, "POST", "/api/v2/configurations", `{"name":"the same page"}`, none, cookie, "Sec-Fetch-Site: same-origin")
	// What another page makes the browser send changes nothing.
	for _, foreign := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://example.com"} {
		m.refused(403, "CrossOriginRequest", "another origin", "POST", "/api/v2/configurations", `{"name":"x"}`, none, cookie, foreign)
		m.refused(403, "CrossOriginRequest", "another origin", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"x"}`, none, cookie, foreign)
	}
	// A cookie is good in a cookie alone, and no other token is.
	value := strings.TrimPrefix(cookie, "Cookie: portolan=")
	m.refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", "Authorization: Basic "+value)
	other := m.want(201, "POST", "/api/v2/sessions", credentials, none).text("basicAuthenticationCredentials")
	m.refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", none, "Cookie: portolan="+other)
	m.refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", none, "Cookie: portolan=nonsense")
	m.refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", none, "Cookie: __Host-portolan="+value)
	// Behind TLS the cookie has the stricter name.
	s := m.want(201, "POST", "/api/v2/sessions", credentials, none, inCookie, "X-Forwarded-Proto: https")
	if set := s.Header.Get("Set-Cookie"); !strings.HasPrefix(set, "__Host-portolan=") || !strings.Contains(set, "; Secure;") {
		t.Errorf("behind TLS the cookie is %q", set)
	}
	m.refused(400, "InvalidHeaderValue", "x-portolan-session", "POST", "/api/v2/sessions", credentials, none, "x-portolan-session: jar")
	// Signing out ends it everywhere, and the browser forgets it.
	m.want(200, "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, none, cookie)
	m.refused(401, "InvalidAuthorizationToken", "", "GET", "/user/api/v1/fleetInstances", "", none, cookie)
	gone := m.do("GET", "/api/v2/networks", "", none, cookie, "Sec-Fetch-Mode: cors")
	if gone.StatusCode != 401 || !strings.Contains(gone.Header.Get("Set-Cookie"), "Max-Age=0") ||
		strings.Contains(gone.Header.Get("WWW-Authenticate"), "Basic") {
		t.Errorf("%d %v", gone.StatusCode, gone.Header)
	}
}

func TestDoorsOfUsers(t *testing.T) {
	m := startAlone(t)
	const secret = "a password of theirs"
	for _, access := range []string{"GUI", "API", "GUI_AND_API"} {
		m.want(201, "POST", "/api/v2/users", `{"name":"`+access+`","email":"e@x","securityPrivilege":"NO_ACCESS","accessType":"`+access+
			`","password":"`+secret+`"}`)
		sign := `{"username":"` + access + `","password":"` + secret + `"}`
		if access == "API" {
			m.refused(401, "InvalidAuthorizationCredentials", "", "POST", "/api/v2/sessions", sign, "Authorization:", inCookie)
		} else {
			m.want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", m.atConsole(sign))
		}
		if access == "GUI" {
			m.refused(401, "InvalidAuthorizationCredentials", "", "POST", "/api/v2/sessions", sign, "Authorization:")
			m.refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", basicAuth(access, secret))
		} else {
			m.want(200, "GET", "/api/v2/networks", "", basicAuth(access, secret))
		}
	}
}

func TestSignInLinks(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	link := func() string {
		t.Helper()
		code, err := m.Identity.NewLink(t.Context(), "admin")
		if err != nil {
			t.Fatal(err)
		}
		return `{"signInCode":"` + code + `"}`
	}
	one := link()
	m.refused(400, "InvalidResourceFieldValue", "signInCode", "POST", "/api/v2/sessions", strings.Replace(one, "}", `,"username":"admin"}`, 1),
		"Authorization:", inCookie)
	cookie := m.atConsole(one)
	if got := m.want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", cookie).text("user.name"); got != "admin" {
		t.Errorf("the link signs %q in", got)
	}
	for _, dead := range []string{one, `{"signInCode":"guessed"}`} {
		m.refused(401, "InvalidAuthorizationCredentials", "link", "POST", "/api/v2/sessions", dead, "Authorization:", inCookie)
	}
	late := link()
	c.advance(access.LinkLife + time.Second)
	m.refused(401, "InvalidAuthorizationCredentials", "link", "POST", "/api/v2/sessions", late, "Authorization:", inCookie)
	if err := access.ExpireSessions(context.Background(), m.Address, m.Identity, m.Store.Update); err != nil {
		t.Fatal(err)
	}
	_, err := m.Identity.NewLink(t.Context(), "nobody")
	if p := (&problem.Problem{}); !errors.As(err, &p) || !strings.Contains(p.Error(), "nobody") {
		t.Errorf("a link for nobody: %v", err)
	}
}
