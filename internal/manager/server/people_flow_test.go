package server

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/authntest"
)

// TestPeopleSignInAtAProvider checks that users sign in at a provider by the code flow with a proof key. Forged, replayed and foreign
// answers are refused.
func TestPeopleSignInAtAProvider(t *testing.T) {
	m := startAlone(t)
	p := authntest.NewProvider(t)
	sso := m.ID("/api/v2/authenticators", `{"type":"OAuthAuthorizationServer","name":"sso","enabled":true,"userClaim":"preferred_username",`+
		`"groupClaim":"groups","emailClaim":"email","validationMethod":"LOCAL","issuer":"`+p.URL+`","audience":"portolan","clientId":"portolan",`+
		`"clientSecret":"hush","authorizationOption":"BASIC","caCertificate":`+apitest.Quoted(p.Trusted())+`}`)
	other := authntest.NewProvider(t)
	partner := m.ID("/api/v2/authenticators", `{"type":"OAuthAuthorizationServer","name":"partner","enabled":true,"userClaim":"preferred_username",`+
		`"groupClaim":"groups","emailClaim":"email","validationMethod":"LOCAL","issuer":"`+other.URL+`","audience":"portolan","clientId":"portolan",`+
		`"clientSecret":"hush","caCertificate":`+apitest.Quoted(other.Trusted())+`}`)
	m.ID("/api/v2/authenticators", `{"type":"OAuthAuthorizationServer","name":"programs alone","enabled":true,"userClaim":"sub","groupClaim":"groups",`+
		`"emailClaim":"email","validationMethod":"LOCAL","issuer":"https://192.0.2.1/","audience":"portolan"}`)
	m.ID("/api/v2/groups", `{"name":"netops","groupType":"SSO","authenticator":{"id":`+sso+`}}`)
	if r := m.Want(200, "GET", "/sign-in/providers", "", "Authorization:"); r.Text("data.0.name") != "sso" ||
		r.Text("data.1.name") != "partner" || r.Get("data.2") != nil {
		t.Errorf("the providers are %s", r.Body)
	}
	if r := m.visit("/sign-in/" + sso + "0"); r.Header.Get("Location") != "/#refused=ResourceNotFound" {
		t.Errorf("an unknown provider: %d %s", r.StatusCode, r.Header.Get("Location"))
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	type attempt struct {
		claims map[string]any
		key    *rsa.PrivateKey
		query  url.Values
		cookie func(string) string
		grant  func(*authntest.Grant)
		back   string // the provider that redirects the browser back
	}
	n := 0
	try := func(a attempt) *http.Response {
		t.Helper()
		n++
		sent := m.visit("/sign-in/" + sso)
		to, err := url.Parse(sent.Header.Get("Location"))
		if err != nil || sent.StatusCode != 303 || !strings.HasPrefix(to.String(), p.URL+"/authorize?") {
			t.Fatalf("people are sent to %d %s", sent.StatusCode, sent.Header.Get("Location"))
		}
		asked := to.Query()
		if asked.Get("code_challenge_method") != "S256" || asked.Get("response_type") != "code" || asked.Get("client_id") != "portolan" {
			t.Fatalf("the provider is asked with %v", asked)
		}
		claims := map[string]any{"iss": p.URL, "aud": "portolan", "sub": "carol", "preferred_username": "carol", "groups": []string{"netops"},
			"email": "carol@example.net", "exp": time.Now().Add(time.Hour).Unix(), "nonce": asked.Get("nonce")}
		maps.Copy(claims, a.claims)
		code := "code-" + asked.Get("state")[:8]
		g := authntest.Grant{Challenge: asked.Get("code_challenge"), Back: asked.Get("redirect_uri"), Claims: claims, Key: a.key}
		if a.grant != nil {
			a.grant(&g)
		}
		p.Allow(code, g)
		came := url.Values{"code": {code}, "state": {asked.Get("state")}}
		for name, values := range a.query {
			came[name] = values
		}
		back := sso
		if a.back != "" {
			back = a.back
		}
		cookie, _, _ := strings.Cut(sent.Header.Get("Set-Cookie"), ";")
		if a.cookie != nil {
			cookie = a.cookie(cookie)
		}
		return m.visit("/sign-in/"+back+"/callback?"+came.Encode(), "Cookie", cookie)
	}
	in := try(attempt{})
	kept := ""
	for _, set := range in.Header.Values("Set-Cookie") {
		if value, _, _ := strings.Cut(set, ";"); strings.HasPrefix(value, "portolan=") {
			kept = value
		}
	}
	if in.StatusCode != 303 || in.Header.Get("Location") != "/" || kept == "" {
		t.Fatalf("who was let in comes to %d %s %v", in.StatusCode, in.Header.Get("Location"), in.Header)
	}
	current := m.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", "Cookie: "+kept)
	if seen := m.Want(200, "GET", "/api/v2/sessions/"+current.Text("id"), ""); seen.Text("user.name") != "carol" ||
		seen.Text("authenticator.name") != "sso" {
		t.Errorf("the session is %s", seen.Body)
	}
	if r := try(attempt{query: url.Values{"iss": {p.URL}}}); r.Header.Get("Location") != "/" {
		t.Errorf("the issuer by its name: %s", r.Header.Get("Location"))
	}
	for name, a := range map[string]attempt{
		"another state":     {query: url.Values{"state": {"guessed"}}},
		"no state":          {query: url.Values{"state": {""}}},
		"begun elsewhere":   {cookie: func(string) string { return "" }},
		"back from another": {back: partner},
		"a forged cookie": {cookie: func(string) string {
			return "portolan-flow=" + base64.RawURLEncoding.EncodeToString([]byte(`{"provider":`+sso+`,"until":9999999999,"state":"x","nonce":"y","verifier":"z"}`))
		}, query: url.Values{"state": {"x"}}},
		"a cookie that is none":    {cookie: func(string) string { return "portolan-flow=e30" }},
		"another issuer's code":    {query: url.Values{"iss": {"https://evil.example"}}},
		"another sign-in's token":  {claims: map[string]any{"nonce": "of another"}},
		"no nonce":                 {claims: map[string]any{"nonce": ""}},
		"for another program":      {claims: map[string]any{"aud": "others"}},
		"another issuer's token":   {claims: map[string]any{"iss": "https://evil.example"}},
		"an expired token":         {claims: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}},
		"signed with another key":  {key: stranger},
		"refused there":            {query: url.Values{"code": {""}, "error": {"access_denied"}}},
		"a code that is none":      {query: url.Values{"code": {"made up"}}},
		"a stolen code":            {grant: func(g *authntest.Grant) { g.Challenge = "of another browser" }},
		"in no group":              {claims: map[string]any{"groups": []string{"others"}, "preferred_username": "dave"}},
		"a local user's name":      {claims: map[string]any{"preferred_username": "admin"}},
		"nobody's name":            {claims: map[string]any{"preferred_username": ""}},
		"a name with a line break": {claims: map[string]any{"preferred_username": "da\nve"}},
	} {
		r := try(a)
		if got := r.Header.Get("Location"); got != "/#refused=InvalidAuthorizationCredentials" {
			t.Errorf("%s: %d %s", name, r.StatusCode, got)
		}
		for _, set := range r.Header.Values("Set-Cookie") {
			if strings.HasPrefix(set, "portolan=") {
				t.Errorf("%s: a session begins: %s", name, set)
			}
		}
	}
	// A disabled provider signs no user in, and the tokens of its users are refused.
	carol := m.Want(201, "POST", "/api/v2/tokens", `{"name":"hers"}`, "Authorization:", "Cookie: "+kept).Text("token")
	m.Want(200, "GET", "/api/v2/networks", "", "Authorization: Bearer "+carol)
	m.Want(200, "PATCH", "/api/v2/authenticators/"+sso, `{"enabled":false}`)
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", "Authorization: Bearer "+carol)
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", "Authorization:", "Cookie: "+kept)
	m.Want(200, "PATCH", "/api/v2/authenticators/"+sso, `{"enabled":true}`)
	p.Close()
	if r := m.visit("/sign-in/" + sso); r.Header.Get("Location") != "/#refused=AuthenticatorUnavailable" {
		t.Errorf("a provider that is away: %s", r.Header.Get("Location"))
	}
	m.Refused(400, "MissingRequiredField", "clientSecret", "PATCH", "/api/v2/authenticators/"+sso, `{"issuer":"https://192.0.2.2"}`)
	m.Verify()
}

// visit asks for a page as a browser does, and gives where it is sent on to.
func (m *manager) visit(path string, headers ...string) *http.Response {
	m.T.Helper()
	r, err := http.NewRequestWithContext(m.T.Context(), http.MethodGet, m.URL()+path, nil)
	if err != nil {
		m.T.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		m.T.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		m.T.Fatal(err)
	}
	return answer
}
