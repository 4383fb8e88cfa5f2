package server

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
)

// clock is a clock that a test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func basicAuth(user, secret string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret))
}

func TestSessions(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	login := `{"username":"admin","password":"` + adminPassword + `"}`
	s := m.want(201, "POST", "/api/v2/sessions", login, "Authorization:")
	for path, want := range map[string]string{"type": "UserSession", "state": "LOGGED_IN", "remoteAddress": "127.0.0.1", "readOnly": "false",
		"user.name": "admin"} {
		if got := s.text(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	expires, err := time.Parse(time.RFC3339, s.text("apiTokenExpirationDateTime"))
	if err != nil || expires.Sub(c.now()).Round(time.Minute) != 24*time.Hour {
		t.Errorf("the token expires at %s", expires)
	}
	basic := "Authorization: Basic " + s.text("basicAuthenticationCredentials")
	current := m.want(200, "GET", "/api/v2/sessions/current", "", basic)
	if current.text("id") != s.text("id") || current.text("apiToken") != s.text("apiToken") ||
		current.text("basicAuthenticationCredentials") != s.text("basicAuthenticationCredentials") {
		t.Errorf("the current session is %s", current.body)
	}
	// The token is shown to who has sent it, and to nobody else.
	own := "/api/v2/sessions/" + s.text("id")
	for _, r := range []reply{m.want(200, "GET", own, "", basic), m.want(200, "GET", own, ""),
		m.want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", "Cookie: API_TOKEN="+s.text("apiToken"))} {
		if r.get("apiToken") != nil || r.get("basicAuthenticationCredentials") != nil {
			t.Errorf("the token is shown: %s", r.body)
		}
	}
	if got := m.want(200, "GET", "/api/v2/users/"+s.text("user.id")+"/sessions", "", basic).text("data.0.id"); got != s.text("id") {
		t.Errorf("the user's sessions begin with %s", got)
	}
	// Public clients send the token as a bearer token or in a cookie, too, and ask who any other credential belongs to.
	for _, as := range []string{"Authorization: Bearer " + s.text("apiToken"), "Cookie: API_TOKEN=" + s.text("apiToken")} {
		if r := m.want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", as); r.text("id") != s.text("id") {
			t.Errorf("with %.25s the current session is %s", as, r.body)
		}
	}
	m.refused(403, "CrossOriginRequest", "another origin", "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, "Authorization:",
		"Cookie: API_TOKEN="+s.text("apiToken"), "Sec-Fetch-Site: cross-site")
	m.refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/sessions/current", "", "Authorization:", "Cookie: API_TOKEN=pts_made-up")
	m.refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/sessions/current", "", "Authorization: Bearer pts_made-up")
	for _, as := range []string{basicAuth("admin", adminPassword), "Authorization: Bearer " + m.token} {
		r := m.want(200, "GET", "/api/v2/sessions/current", "", as)
		if r.text("type") != "UserSession" || r.get("id") != nil || r.get("_links.up") != nil || r.text("readOnly") != "false" ||
			r.text("state") != "LOGGED_IN" {
			t.Errorf("without a session the current one is %s", r.body)
		}
		m.refused(404, "ResourceNotFound", "session's token", "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, as)
		if allow := m.want(204, "OPTIONS", "/api/v2/sessions/current", "", as).Header.Get("Allow"); allow != "GET, HEAD, OPTIONS" {
			t.Errorf("without a session the methods are %s", allow)
		}
	}
	// The token belongs to its user's name; a name alone or another one is nothing.
	m.refused(401, "InvalidAuthorizationCredentials", "wrong", "GET", "/api/v2/sessions/current", "", basicAuth("root", s.text("apiToken")))

	out := m.want(200, "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, basic, "Content-Type: application/merge-patch+json")
	if out.text("state") != "LOGGED_OUT" || out.text("logoutDateTime") == "" {
		t.Errorf("logging out gives %s", out.body)
	}
	m.refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/sessions/current", "", basic)
	m.refused(409, "SessionEnded", "LOGGED_OUT", "PATCH", "/api/v2/sessions/"+s.text("id"), `{"state":"TERMINATED"}`)

	// A login as Basic credentials, without a body; a session that may only read.
	m.want(201, "POST", "/api/v2/sessions", "", basicAuth("admin", adminPassword))
	reader := m.want(201, "POST", "/api/v2/sessions", strings.Replace(login, "}", `,"readOnly":true}`, 1), "Authorization:")
	m.refused(403, "ReadOnlySession", "only read", "POST", "/api/v2/configurations", `{"name":"x"}`,
		"Authorization: Basic "+reader.text("basicAuthenticationCredentials"))

	readers := "Authorization: Basic " + reader.text("basicAuthenticationCredentials")
	m.refused(403, "ReadOnlySession", "only read", "PATCH", "/api/v2/sessions/"+last(m, basicAuth("admin", adminPassword)),
		`{"state":"TERMINATED"}`, readers)
	m.want(200, "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, readers)
	reader = m.want(201, "POST", "/api/v2/sessions", strings.Replace(login, "}", `,"readOnly":true}`, 1), "Authorization:")

	// An administrator ends another session; time ends one, too.
	m.want(200, "PATCH", "/api/v2/sessions/"+reader.text("id"), `{"state":"TERMINATED"}`)
	final := m.want(201, "POST", "/api/v2/sessions", login, "Authorization:")
	c.advance(25 * time.Hour)
	m.refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/sessions/current", "",
		"Authorization: Basic "+final.text("basicAuthenticationCredentials"))
	if err := identity.ExpireSessions(context.Background(), m.Address, m.Identity, m.Store.Update); err != nil {
		t.Fatal(err)
	}
	if got := m.want(200, "GET", "/api/v2/sessions/"+final.text("id"), "").text("state"); got != "EXPIRED" {
		t.Errorf("after a day the session is %s", got)
	}
}

// last opens one more session and gives its id.
func last(m *manager, credentials string) string {
	return m.want(201, "POST", "/api/v2/sessions", "", credentials).text("id")
}

func TestLoginRefusals(t *testing.T) {
	m := startAlone(t)
	for _, c := range []struct {
		status       int
		code, naming string
		body         string
	}{
		{401, "InvalidAuthorizationCredentials", "wrong", `{"username":"admin","password":"wrong"}`},
		{401, "InvalidAuthorizationCredentials", "wrong", `{"username":"nobody","password":"wrong"}`},
		{400, "MissingRequiredField", "username, password", `{}`},
		{400, "MissingRequiredField", "password", `{"username":"admin"}`},
		{400, "InvalidResourceFieldValue", "username", `{"username":1,"password":"x"}`},
	} {
		m.refused(c.status, c.code, c.naming, "POST", "/api/v2/sessions", c.body, "Authorization:")
	}
	for _, header := range []string{"Authorization:", "Authorization: Basic", "Authorization: Basic !!!", "Authorization: Basic YWRtaW4=",
		"Authorization: Bearer wrong", "Authorization: Bearer " + m.token + "x"} {
		m.refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", header)
	}
	m.refused(403, "InvalidAuthorizationScheme", "Basic", "GET", "/api/v2/networks", "", "Authorization: Digest x")
	if r := m.do("GET", "/api/v2/networks", "", "Authorization:"); r.Header.Get("WWW-Authenticate") == "" {
		t.Error("a 401 without WWW-Authenticate")
	}
	r := m.want(401, "POST", "/api/v1/fleetInstanceMinimumConfig", "{}", "Authorization:")
	if got := r.Header.Values("WWW-Authenticate"); !slices.Equal(got, []string{`Bearer realm="Portolan"`}) {
		t.Errorf("the fleet API, which takes bearer tokens alone, offers %q", got)
	}
}

func TestUsers(t *testing.T) {
	m := startAlone(t)
	user := m.want(201, "POST", "/api/v2/users",
		`{"name":"ann","email":"ann@example.com","securityPrivilege":"NO_ACCESS","accessType":"GUI_AND_API","password":"first password"}`)
	if strings.Contains(string(user.body), "first password") || strings.Contains(string(user.body), `"password"`) {
		t.Errorf("the password shows: %s", user.body)
	}
	at := "/api/v2/users/" + user.text("id")
	ann := basicAuth("ann", "first password")
	m.want(200, "GET", "/api/v2/networks", "", ann)
	m.refused(403, "AccessDenied", "ann may not make", "POST", "/api/v2/configurations", `{"name":"x"}`, ann)
	session := m.want(201, "POST", "/api/v2/sessions", "", ann)
	// One sees one's own sessions, and no others.
	admins := m.want(201, "POST", "/api/v2/sessions", "", basicAuth("admin", adminPassword))
	m.want(404, "GET", "/api/v2/sessions/"+admins.text("id"), "", ann)
	if got := m.want(200, "GET", "/api/v2/sessions?total=true", "", ann).text("totalCount"); got != "1" {
		t.Errorf("ann sees %s sessions", got)
	}
	m.refused(404, "ResourceNotFound", "", "PATCH", "/api/v2/sessions/"+admins.text("id"), `{"state":"TERMINATED"}`, ann)
	// A new password ends what the old one opened, at once.
	m.want(200, "PATCH", at, `{"password":"second password"}`)
	m.refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", ann)
	m.refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "",
		"Authorization: Basic "+session.text("basicAuthenticationCredentials"))
	m.want(200, "GET", "/api/v2/networks", "", basicAuth("ann", "second password"))
	m.want(200, "PATCH", at, `{"accountLocked":true}`)
	m.refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", basicAuth("ann", "second password"))
	m.want(200, "PATCH", at, `{"accountLocked":false}`)
	m.want(204, "DELETE", at, "")
	m.refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", basicAuth("ann", "second password"))
	m.verify()
}

func TestBearerTokens(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	ctx := context.Background()
	analyst, err := m.Identity.CreateToken(ctx, identity.Grant{Name: "watcher", Role: authz.Analyst, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	header := "Authorization: Bearer " + analyst
	m.want(200, "GET", "/user/api/v1/fleetInstances", "", header)
	m.want(200, "GET", "/api/v2/networks", "", header)
	m.refused(403, "AccessDenied", "analyst", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"x"}`, header)
	m.refused(403, "AccessDenied", "may read", "POST", "/api/v2/configurations", `{"name":"x"}`, header)
	// The token was made by the administrator, whose sessions it may see and not end.
	m.refused(403, "ReadOnlySession", "only read", "PATCH", "/api/v2/sessions/"+last(m, basicAuth("admin", adminPassword)),
		`{"state":"TERMINATED"}`, header)
	m.refused(403, "AccessDenied", "analyst", "DELETE", "/user/api/v1/fleetInstances/x", ``, header)
	c.advance(2 * time.Hour)
	m.refused(401, "InvalidAuthorizationToken", "expired", "GET", "/user/api/v1/fleetInstances", "", header)
	tokens, err := m.Identity.Tokens(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if token.Name == "test" {
			if err := m.Identity.Revoke(ctx, token.ID, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := m.do("GET", "/user/api/v1/fleetInstances", ""); r.StatusCode != 401 {
		t.Errorf("a revoked token gets %d", r.StatusCode)
	}
	for _, header := range []string{"Authorization:", "Authorization: Bearer", "Authorization: Bearer a b",
		basicAuth("admin", adminPassword)} {
		if r := m.do("GET", "/user/api/v1/fleetInstances", "", header); r.StatusCode != 401 || r.text("code") != "InvalidAuthorizationToken" {
			t.Errorf("%q gets %d %s", header, r.StatusCode, r.body)
		}
	}
}

func TestTokenExchange(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	id, secret, err := m.Identity.CreateKeySet(context.Background(), identity.Grant{Name: "ci", Role: authz.Analyst})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/v1/api/authentication/token"
	body := func(id, secret string) string {
		return `{"grantType":"ClientCredentials","clientCredentials":{"clientId":"` + id + `","clientSecret":"` + secret + `"}}`
	}
	r := m.want(200, "POST", path, body(id, secret), "Authorization:")
	if r.text("expiresIn") != "300" || r.text("tokenType") != "Bearer" {
		t.Errorf("the answer is %s", r.body)
	}
	header := "Authorization: Bearer " + r.text("accessToken")
	m.want(200, "GET", "/user/api/v1/fleetInstances", "", header)
	m.refused(403, "AccessDenied", "", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"x"}`, header)
	for _, bad := range []struct {
		status             int
		code, naming, body string
	}{
		{401, "InvalidAuthorizationCredentials", "", body(id, "wrong")},
		{401, "InvalidAuthorizationCredentials", "", body("wrong", secret)},
		{400, "MissingRequiredField", "grantType, clientCredentials", `{}`},
		{400, "InvalidResourceFieldValue", "Password", `{"grantType":"Password","clientCredentials":{}}`},
		{400, "MissingRequiredField", "clientId", `{"grantType":"ClientCredentials","clientCredentials":{}}`},
		{400, "InvalidResourceFieldValue", "must be an object", `{"grantType":"ClientCredentials","clientCredentials":5}`},
	} {
		m.refused(bad.status, bad.code, bad.naming, "POST", path, bad.body, "Authorization:")
	}
	c.advance(6 * time.Minute)
	if r := m.do("GET", "/user/api/v1/fleetInstances", "", header); r.StatusCode != 401 {
		t.Errorf("after six minutes the access token gets %d", r.StatusCode)
	}
}
