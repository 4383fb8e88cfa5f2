package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
)

// inCookie asks for a session whose token the browser keeps.
const inCookie = "x-portolan-session: cookie"

// atConsole signs in as a browser does and gives the header with which it comes back.
func (m *manager) atConsole(body string) string {
	m.T.Helper()
	s := m.Want(201, "POST", "/api/v2/sessions", body, "Authorization:", inCookie)
	if s.Get("apiToken") != nil || s.Get("basicAuthenticationCredentials") != nil {
		m.T.Errorf("the token is shown to scripts: %s", s.Body)
	}
	kept, _, _ := strings.Cut(s.Header.Get("Set-Cookie"), ";")
	if !strings.HasPrefix(kept, "portolan=") || !strings.HasSuffix(s.Header.Get("Set-Cookie"), "; Path=/; HttpOnly; SameSite=Strict") {
		m.T.Fatalf("the cookie is %q", s.Header.Get("Set-Cookie"))
	}
	return "Cookie: " + kept
}

func TestCookies(t *testing.T) {
	m := startAlone(t)
	credentials := `{"username":"admin","password":"` + adminPassword + `"}`
	cookie := m.atConsole(credentials)
	none := "Authorization:"
	m.Want(200, "GET", "/api/v2/sessions/current", "", none, cookie)
	m.Want(200, "GET", "/user/api/v1/fleetInstances", "", none, cookie)
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"by cookie"}`, none, cookie)
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"the same page"}`, none, cookie, "Sec-Fetch-Site: same-origin")
	// Requests that a foreign page triggers change nothing.
	for _, foreign := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://example.com"} {
		m.Refused(403, "CrossOriginRequest", "another origin", "POST", "/api/v2/configurations", `{"name":"x"}`, none, cookie, foreign)
		m.Refused(403, "CrossOriginRequest", "another origin", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"x"}`, none, cookie, foreign)
	}
	// A cookie is good in a cookie alone, and no other token is.
	value := strings.TrimPrefix(cookie, "Cookie: portolan=")
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", "Authorization: Basic "+value)
	other := m.Want(201, "POST", "/api/v2/sessions", credentials, none).Text("basicAuthenticationCredentials")
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", none, "Cookie: portolan="+other)
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", none, "Cookie: portolan=nonsense")
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", none, "Cookie: __Host-portolan="+value)
	// Behind TLS the cookie has the stricter name.
	s := m.Want(201, "POST", "/api/v2/sessions", credentials, none, inCookie, "X-Forwarded-Proto: HTTPS, http")
	if set := s.Header.Get("Set-Cookie"); !strings.HasPrefix(set, "__Host-portolan=") || !strings.Contains(set, "; Secure;") {
		t.Errorf("behind TLS the cookie is %q", set)
	}
	m.Refused(400, "InvalidHeaderValue", "x-portolan-session", "POST", "/api/v2/sessions", credentials, none, "x-portolan-session: jar")
	// A foreign page changes nothing with the cookies of a browser.
	for _, ambient := range []string{apitest.BasicAuth("admin", adminPassword), "Authorization: Bearer " + m.Token} {
		m.Refused(403, "CrossOriginRequest", "another origin", "POST", "/api/v2/configurations", `{"name":"x"}`, ambient, "Sec-Fetch-Site: cross-site")
	}
	m.Refused(403, "CrossOriginRequest", "another origin", "POST", "/api/v2/sessions", credentials, none, "Origin: https://example.com")
	m.Refused(400, "InvalidHeaderValue", "does not support a dry run", "POST", "/api/v2/sessions", credentials, none,
		"x-portolan-dry-run: true")
	// A cookie with the same name from a parent domain does not prevent a sign-in. An unrelated refusal does not delete the cookie.
	m.Want(200, "GET", "/api/v2/sessions/current", "", none, "Cookie: portolan=bad; "+strings.TrimPrefix(cookie, "Cookie: "))
	if r := m.Do("POST", "/api/v2/sessions", `{"username":"admin","password":"wrong"}`, none, cookie); r.StatusCode != 401 ||
		r.Header.Get("Set-Cookie") != "" {
		t.Errorf("a wrong password beside a good cookie: %d %v", r.StatusCode, r.Header)
	}
	m.Want(201, "POST", "/api/v2/users", `{"name":"co:lon","email":"e@x","securityPrivilege":"NO_ACCESS","accessType":"GUI","password":"a long password"}`)
	colon := m.atConsole(`{"username":"co:lon","password":"a long password"}`)
	m.Want(200, "GET", "/api/v2/sessions/current", "", none, colon)
	// Signing out ends it everywhere, and the browser forgets it.
	m.Want(200, "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, none, cookie)
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/user/api/v1/fleetInstances", "", none, cookie)
	if r := m.Do("GET", "/api/v2/networks", "", none, cookie); r.StatusCode != 401 || r.Header.Get("Set-Cookie") != "" {
		t.Errorf("a response that can arrive after a new sign-in: %d %v", r.StatusCode, r.Header)
	}
	gone := m.Do("GET", "/api/v2/sessions/current", "", none, cookie, "Sec-Fetch-Mode: cors")
	if gone.StatusCode != 401 || !strings.Contains(gone.Header.Get("Set-Cookie"), "Max-Age=0") ||
		strings.Contains(gone.Header.Get("WWW-Authenticate"), "Basic") {
		t.Errorf("%d %v", gone.StatusCode, gone.Header)
	}
}

func TestEndpointsOfUsers(t *testing.T) {
	m := startAlone(t)
	const secret = "a password of theirs"
	for _, access := range []string{"GUI", "API", "GUI_AND_API"} {
		m.Want(201, "POST", "/api/v2/users", `{"name":"`+access+`","email":"e@x","securityPrivilege":"NO_ACCESS","accessType":"`+access+
			`","password":"`+secret+`"}`)
		sign := `{"username":"` + access + `","password":"` + secret + `"}`
		if access == "API" {
			m.Refused(401, "InvalidAuthorizationCredentials", "", "POST", "/api/v2/sessions", sign, "Authorization:", inCookie)
		} else {
			m.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", m.atConsole(sign))
		}
		if access == "GUI" {
			m.Refused(401, "InvalidAuthorizationCredentials", "", "POST", "/api/v2/sessions", sign, "Authorization:")
			m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", apitest.BasicAuth(access, secret))
		} else {
			m.Want(200, "GET", "/api/v2/networks", "", apitest.BasicAuth(access, secret))
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
	m.Refused(400, "InvalidResourceFieldValue", "signInCode", "POST", "/api/v2/sessions", strings.Replace(one, "}", `,"username":"admin"}`, 1),
		"Authorization:", inCookie)
	cookie := m.atConsole(one)
	if got := m.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", cookie).Text("user.name"); got != "admin" {
		t.Errorf("the link signs %q in", got)
	}
	for _, dead := range []string{one, `{"signInCode":"guessed"}`} {
		m.Refused(401, "InvalidAuthorizationCredentials", "link", "POST", "/api/v2/sessions", dead, "Authorization:", inCookie)
	}
	late := link()
	c.advance(identity.LinkLife + time.Second)
	m.Refused(401, "InvalidAuthorizationCredentials", "link", "POST", "/api/v2/sessions", late, "Authorization:", inCookie)
	if err := identity.ExpireSessions(context.Background(), m.Address, m.Identity, m.Store.Update); err != nil {
		t.Fatal(err)
	}
	stale := link()
	m.Want(200, "PATCH", "/api/v2/users/"+m.Want(200, "GET", "/api/v2/users?"+filter("name:'admin'"), "").Text("data.0.id"), `{"password":"another password"}`)
	m.Refused(401, "InvalidAuthorizationCredentials", "link", "POST", "/api/v2/sessions", stale, "Authorization:", inCookie)
	_, err := m.Identity.NewLink(t.Context(), "nobody")
	if p := (&problem.Problem{}); !errors.As(err, &p) || !strings.Contains(p.Error(), "nobody") {
		t.Errorf("a sign-out link without a session: %v", err)
	}
}

// TestIdlePages checks that neither automatic refreshes nor the change feed keep a session from expiring. A user who must set a new
// password cannot follow the changes.
func TestIdlePages(t *testing.T) {
	var c clock
	m := startOnce(t, func(o *Options) { o.Now = c.now })
	m.REST.Beat = 10 * time.Millisecond
	cookie := m.atConsole(`{"username":"admin","password":"` + adminPassword + `"}`)
	other := m.atConsole(`{"username":"admin","password":"` + adminPassword + `"}`)
	none := "Authorization:"
	m.Want(200, "PATCH", m.settingsOf("GlobalSettings"), `{"sessionTimeout":"PT20M"}`, apitest.MergePatch)
	for range 4 {
		c.advance(8 * time.Minute)
		m.Do("GET", "/api/v2/networks", "", none, cookie, identity.Unattended+": true")
		m.Want(200, "GET", "/api/v2/networks", "", none, other)
	}
	m.Refused(401, "InvalidAuthorizationToken", "ended", "GET", "/api/v2/networks", "", none, cookie)
	m.Want(201, "POST", "/api/v2/users", `{"name":"second","email":"e@x","securityPrivilege":"ADMINISTRATOR","historyPrivilege":"ADMINISTRATOR",`+
		`"accessType":"GUI","password":"a long password"}`)
	second := m.atConsole(`{"username":"second","password":"a long password"}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.URL()+"/api/v2/changes", nil)
	if err != nil {
		t.Fatal(err)
	}
	name, value, _ := strings.Cut(second, ": ")
	r.Header.Set(name, value)
	feed, err := http.DefaultClient.Do(r)
	if err != nil || feed.StatusCode != 200 {
		t.Fatal(feed, err)
	}
	defer func() { _ = feed.Body.Close() }()
	m.Want(200, "PATCH", "/api/v2/users/"+m.Want(200, "GET", "/api/v2/users?"+filter("name:'second'"), "").Text("data.0.id"),
		`{"passwordResetRequired":true}`)
	told, err := io.ReadAll(feed.Body)
	if err != nil || !strings.Contains(string(told), "PasswordResetRequired") {
		t.Errorf("the feed ends with %s (%v)", told, err)
	}
}

// TestSessionsAreNotFixed checks that each sign-in creates a new session. A session identifier that the browser sends beforehand does not
// become the user's session.
func TestSessionsAreNotFixed(t *testing.T) {
	m := startAlone(t)
	credentials := `{"username":"admin","password":"` + adminPassword + `"}`
	m.ID("/api/v2/users", `{"name":"mallory","email":"m@example.net","accessType":"GUI_AND_API","securityPrivilege":"NO_ACCESS",`+
		`"password":"a password of theirs"}`)
	mallory := m.atConsole(`{"username":"mallory","password":"a password of theirs"}`)
	for _, brought := range []string{mallory, "Cookie: portolan=pts_made-up-by-somebody-else"} {
		s := m.Want(201, "POST", "/api/v2/sessions", credentials, "Authorization:", inCookie, brought)
		kept, _, _ := strings.Cut(s.Header.Get("Set-Cookie"), ";")
		if "Cookie: "+kept == brought || !strings.HasPrefix(kept, "portolan=") {
			t.Errorf("who brings %s gets %s", brought, kept)
		}
		if r := m.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", "Cookie: "+kept); r.Text("user.name") != "admin" {
			t.Errorf("the new session is %s", r.Body)
		}
	}
	if r := m.Do("GET", "/api/v2/sessions/current", "", "Authorization:", mallory); r.StatusCode == 200 && r.Text("user.name") != "mallory" {
		t.Errorf("the session that was brought is now %s", r.Body)
	}
	m.Want(401, "GET", "/api/v2/sessions/current", "", "Authorization:", "Cookie: portolan=pts_made-up-by-somebody-else")
}
