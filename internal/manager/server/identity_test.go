package server

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
)

// clock is a clock that a test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func TestSessions(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	login := `{"username":"admin","password":"` + adminPassword + `"}`
	s := m.Want(201, "POST", "/api/v2/sessions", login, "Authorization:")
	for path, want := range map[string]string{"type": "UserSession", "state": "LOGGED_IN", "remoteAddress": "127.0.0.1", "readOnly": "false",
		"user.name": "admin"} {
		if got := s.Text(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	expires, err := time.Parse(time.RFC3339, s.Text("apiTokenExpirationDateTime"))
	if err != nil || expires.Sub(c.now()).Round(time.Minute) != 24*time.Hour {
		t.Errorf("the token expires at %s", expires)
	}
	basic := "Authorization: Basic " + s.Text("basicAuthenticationCredentials")
	current := m.Want(200, "GET", "/api/v2/sessions/current", "", basic)
	if current.Text("id") != s.Text("id") || current.Text("apiToken") != s.Text("apiToken") ||
		current.Text("basicAuthenticationCredentials") != s.Text("basicAuthenticationCredentials") {
		t.Errorf("the current session is %s", current.Body)
	}
	// The token is shown only to the client that sent it.
	own := "/api/v2/sessions/" + s.Text("id")
	for _, r := range []reply{m.Want(200, "GET", own, "", basic), m.Want(200, "GET", own, ""),
		m.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", "Cookie: API_TOKEN="+s.Text("apiToken"))} {
		if r.Get("apiToken") != nil || r.Get("basicAuthenticationCredentials") != nil {
			t.Errorf("the token is shown: %s", r.Body)
		}
	}
	if got := m.Want(200, "GET", "/api/v2/users/"+s.Text("user.id")+"/sessions", "", basic).Text("data.0.id"); got != s.Text("id") {
		t.Errorf("the user's sessions begin with %s", got)
	}
	// Public clients also send the token as a bearer token or in a cookie, and request the owner of any other credential.
	for _, as := range []string{"Authorization: Bearer " + s.Text("apiToken"), "Cookie: API_TOKEN=" + s.Text("apiToken")} {
		if r := m.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", as); r.Text("id") != s.Text("id") {
			t.Errorf("with %.25s the current session is %s", as, r.Body)
		}
	}
	m.Refused(403, "CrossOriginRequest", "another origin", "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, "Authorization:",
		"Cookie: API_TOKEN="+s.Text("apiToken"), "Sec-Fetch-Site: cross-site")
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/sessions/current", "", "Authorization:", "Cookie: API_TOKEN=pts_made-up")
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/sessions/current", "", "Authorization: Bearer pts_made-up")
	for _, as := range []string{apitest.BasicAuth("admin", adminPassword), "Authorization: Bearer " + m.Token} {
		r := m.Want(200, "GET", "/api/v2/sessions/current", "", as)
		if r.Text("type") != "UserSession" || r.Get("id") != nil || r.Get("_links.up") != nil || r.Text("readOnly") != "false" ||
			r.Text("state") != "LOGGED_IN" {
			t.Errorf("without a session the current one is %s", r.Body)
		}
		m.Refused(404, "ResourceNotFound", "token of a session", "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, as)
		if allow := m.Want(204, "OPTIONS", "/api/v2/sessions/current", "", as).Header.Get("Allow"); allow != "GET, HEAD, OPTIONS" {
			t.Errorf("without a session the methods are %s", allow)
		}
	}
	// The token belongs to its user's name; a name alone or another one is nothing.
	m.Refused(401, "InvalidAuthorizationCredentials", "wrong", "GET", "/api/v2/sessions/current", "", apitest.BasicAuth("root",
		s.Text("apiToken")))

	out := m.Want(200, "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, basic, "Content-Type: application/merge-patch+json")
	if out.Text("state") != "LOGGED_OUT" || out.Text("logoutDateTime") == "" {
		t.Errorf("logging out gives %s", out.Body)
	}
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/sessions/current", "", basic)
	m.Refused(409, "SessionEnded", "LOGGED_OUT", "PATCH", "/api/v2/sessions/"+s.Text("id"), `{"state":"TERMINATED"}`)

	// A login as Basic credentials, without a body; a session that may only read.
	m.Want(201, "POST", "/api/v2/sessions", "", apitest.BasicAuth("admin", adminPassword))
	reader := m.Want(201, "POST", "/api/v2/sessions", strings.Replace(login, "}", `,"readOnly":true}`, 1), "Authorization:")
	m.Refused(403, "ReadOnlySession", "only read", "POST", "/api/v2/configurations", `{"name":"x"}`,
		"Authorization: Basic "+reader.Text("basicAuthenticationCredentials"))

	readers := "Authorization: Basic " + reader.Text("basicAuthenticationCredentials")
	m.Refused(403, "ReadOnlySession", "only read", "PATCH", "/api/v2/sessions/"+last(m, apitest.BasicAuth("admin", adminPassword)),
		`{"state":"TERMINATED"}`, readers)
	m.Want(200, "PATCH", "/api/v2/sessions/current", `{"state":"LOGGED_OUT"}`, readers)
	reader = m.Want(201, "POST", "/api/v2/sessions", strings.Replace(login, "}", `,"readOnly":true}`, 1), "Authorization:")

	// An administrator ends another session. A session also expires.
	m.Want(200, "PATCH", "/api/v2/sessions/"+reader.Text("id"), `{"state":"TERMINATED"}`)
	final := m.Want(201, "POST", "/api/v2/sessions", login, "Authorization:")
	c.advance(25 * time.Hour)
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/sessions/current", "",
		"Authorization: Basic "+final.Text("basicAuthenticationCredentials"))
	if err := identity.ExpireSessions(context.Background(), m.Address, m.Identity, m.Store.Update); err != nil {
		t.Fatal(err)
	}
	if got := m.Want(200, "GET", "/api/v2/sessions/"+final.Text("id"), "").Text("state"); got != "EXPIRED" {
		t.Errorf("after a day the session is %s", got)
	}
}

// last opens one more session and gives its id.
func last(m *manager, credentials string) string {
	return m.Want(201, "POST", "/api/v2/sessions", "", credentials).Text("id")
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
		m.Refused(c.status, c.code, c.naming, "POST", "/api/v2/sessions", c.body, "Authorization:")
	}
	for _, header := range []string{"Authorization:", "Authorization: Basic", "Authorization: Basic !!!", "Authorization: Basic YWRtaW4=",
		"Authorization: Bearer wrong", "Authorization: Bearer " + m.Token + "x"} {
		m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", header)
	}
	m.Refused(403, "InvalidAuthorizationScheme", "Basic", "GET", "/api/v2/networks", "", "Authorization: Digest x")
	if r := m.Do("GET", "/api/v2/networks", "", "Authorization:"); r.Header.Get("WWW-Authenticate") == "" {
		t.Error("a 401 without WWW-Authenticate")
	}
	r := m.Want(401, "POST", "/api/v1/fleetInstanceMinimumConfig", "{}", "Authorization:")
	if got := r.Header.Values("WWW-Authenticate"); !slices.Equal(got, []string{`Bearer realm="Portolan"`}) {
		t.Errorf("the fleet API, which takes bearer tokens alone, offers %q", got)
	}
}

func TestUsers(t *testing.T) {
	m := startAlone(t)
	user := m.Want(201, "POST", "/api/v2/users",
		`{"name":"ann","email":"ann@example.com","securityPrivilege":"NO_ACCESS","accessType":"GUI_AND_API","password":"first password"}`)
	if strings.Contains(string(user.Body), "first password") || strings.Contains(string(user.Body), `"password"`) {
		t.Errorf("the password shows: %s", user.Body)
	}
	at := "/api/v2/users/" + user.Text("id")
	ann := apitest.BasicAuth("ann", "first password")
	m.Want(200, "GET", "/api/v2/networks", "", ann)
	m.Refused(403, "AccessDenied", "ann may not make", "POST", "/api/v2/configurations", `{"name":"x"}`, ann)
	session := m.Want(201, "POST", "/api/v2/sessions", "", ann)
	// One sees one's own sessions, and no others.
	admins := m.Want(201, "POST", "/api/v2/sessions", "", apitest.BasicAuth("admin", adminPassword))
	m.Want(404, "GET", "/api/v2/sessions/"+admins.Text("id"), "", ann)
	if got := m.Want(200, "GET", "/api/v2/sessions?total=true", "", ann).Text("totalCount"); got != "1" {
		t.Errorf("ann sees %s sessions", got)
	}
	m.Refused(404, "ResourceNotFound", "", "PATCH", "/api/v2/sessions/"+admins.Text("id"), `{"state":"TERMINATED"}`, ann)
	// A new password ends what the old one opened, at once.
	m.Want(200, "PATCH", at, `{"password":"second password"}`)
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", ann)
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "",
		"Authorization: Basic "+session.Text("basicAuthenticationCredentials"))
	m.Want(200, "GET", "/api/v2/networks", "", apitest.BasicAuth("ann", "second password"))
	m.Want(200, "PATCH", at, `{"accountLocked":true}`)
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", apitest.BasicAuth("ann", "second password"))
	m.Want(200, "PATCH", at, `{"accountLocked":false}`)
	m.Want(204, "DELETE", at, "")
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "", apitest.BasicAuth("ann", "second password"))
	m.Verify()
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
	m.Want(200, "GET", "/user/api/v1/fleetInstances", "", header)
	m.Want(200, "GET", "/api/v2/networks", "", header)
	m.Refused(403, "AccessDenied", "analyst", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"x"}`, header)
	m.Refused(403, "AccessDenied", "may only read", "POST", "/api/v2/configurations", `{"name":"x"}`, header)
	// The token was made by the administrator, whose sessions it may see and not end.
	m.Refused(403, "ReadOnlySession", "only read", "PATCH", "/api/v2/sessions/"+last(m, apitest.BasicAuth("admin", adminPassword)),
		`{"state":"TERMINATED"}`, header)
	m.Refused(403, "AccessDenied", "analyst", "DELETE", "/user/api/v1/fleetInstances/x", ``, header)
	c.advance(2 * time.Hour)
	m.Refused(401, "InvalidAuthorizationToken", "expired", "GET", "/user/api/v1/fleetInstances", "", header)
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
	if r := m.Do("GET", "/user/api/v1/fleetInstances", ""); r.StatusCode != 401 {
		t.Errorf("a revoked token gets %d", r.StatusCode)
	}
	for _, header := range []string{"Authorization:", "Authorization: Bearer", "Authorization: Bearer a b",
		apitest.BasicAuth("admin", adminPassword)} {
		if r := m.Do("GET", "/user/api/v1/fleetInstances", "", header); r.StatusCode != 401 || r.Text("code") != "InvalidAuthorizationToken" {
			t.Errorf("%q gets %d %s", header, r.StatusCode, r.Body)
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
	r := m.Want(200, "POST", path, body(id, secret), "Authorization:")
	if r.Text("expiresIn") != "300" || r.Text("tokenType") != "Bearer" {
		t.Errorf("the answer is %s", r.Body)
	}
	header := "Authorization: Bearer " + r.Text("accessToken")
	m.Want(200, "GET", "/user/api/v1/fleetInstances", "", header)
	m.Refused(403, "AccessDenied", "", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"x"}`, header)
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
		m.Refused(bad.status, bad.code, bad.naming, "POST", path, bad.body, "Authorization:")
	}
	c.advance(6 * time.Minute)
	if r := m.Do("GET", "/user/api/v1/fleetInstances", "", header); r.StatusCode != 401 {
		t.Errorf("after six minutes the access token gets %d", r.StatusCode)
	}
}
