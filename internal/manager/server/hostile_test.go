package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// operation is one that the API describes: a new one is in every test of this file by itself.
type operation struct{ method, path, template string }

// parameter is one of a path.
var parameter = regexp.MustCompile(`\{\w+\}`)

// operations are the described operations of both APIs, with ids of existing resources as parameters if possible.
func (m *manager) operations() (all []operation) {
	m.T.Helper()
	text, err := Document(m.REST)
	if err != nil {
		m.T.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &document); err != nil {
		m.T.Fatal(err)
	}
	first := map[string]string{}
	for _, c := range m.Address.Collections() {
		if !c.Inner {
			first[c.Name] = m.Do("GET", "/api/v2/"+c.Path()+"?limit=1&fields=id", "").Text("data.0.id")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		if strings.HasPrefix(path, "/api/v1/diagnostics") || strings.HasPrefix(path, "/api/v1/status") { // a service point's own
			continue
		}
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			if method == "parameters" {
				continue
			}
			at := path
			if parts := strings.Split(strings.TrimPrefix(path, "/api/v2/"), "/"); len(parts) > 1 && first[parts[0]] != "" {
				at = strings.Replace(at, parts[0]+"/{collectionId}", parts[0]+"/"+first[parts[0]], 1)
				if len(parts) == 2 {
					at = strings.Replace(at, parts[0]+"/{id}", parts[0]+"/"+first[parts[0]], 1)
				}
			}
			all = append(all, operation{strings.ToUpper(method), parameter.ReplaceAllString(at, "100001"),
				parameter.ReplaceAllString(path, "{}")})
		}
	}
	if len(all) < 1000 {
		m.T.Fatalf("the manager describes %d operations", len(all))
	}
	return all
}

// open are the operations without credentials: sign-ins start with them.
var open = []string{"POST /api/v2/sessions", "POST /v1/api/authentication/token"}

// TestOperationsRequireCredentials calls every operation without credentials, and with forged, truncated, expired, revoked, ended, foreign
// and unsuitable credentials. Each call is refused.
func TestOperationsRequireCredentials(t *testing.T) {
	apitest.Slow(t)
	var c clock
	m := startOnce(t, func(o *Options) { o.Now = c.now })
	m.oneOfEach()
	create := func(g identity.Grant) string {
		token, err := m.Identity.CreateToken(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	expired := create(identity.Grant{Name: "expired", Role: authz.Administrator, Life: time.Minute})
	keySet, secret, err := m.Identity.CreateKeySet(t.Context(), identity.Grant{Name: "programs", Role: authz.Administrator,
		Life: 1000 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	basic := "Authorization: Basic "
	session := m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:")
	ended := session.Text("basicAuthenticationCredentials")
	plain, err := base64.StdEncoding.DecodeString(ended)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := m.User("other", "ADMINISTRATOR")
	crossed := base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(plain), "admin:", "other:", 1)))
	m.Want(200, "PATCH", "/api/v2/sessions/"+session.Text("id"), `{"state":"LOGGED_OUT"}`, basic+ended)
	revoked := m.Token
	all := m.operations()
	if m.Token, err = m.Identity.CreateToken(t.Context(), identity.Grant{Name: "again", Role: authz.Administrator,
		User: "admin"}); err != nil {
		t.Fatal(err)
	}
	tokens, err := m.Identity.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range tokens {
		if one.Name == "test" {
			if err := m.Identity.Revoke(t.Context(), one.ID, store.Author{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.advance(2 * time.Minute)
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"x","sub":"admin"}`)) + "."
	wrong := map[string]string{"none": "Authorization:", "expired": "Authorization: Bearer " + expired,
		"revoked": "Authorization: Bearer " + revoked,
		"cut off": "Authorization: Bearer " + m.Token[:len(m.Token)-1], "longer": "Authorization: Bearer " + m.Token + "x",
		"another scheme": "Authorization: Digest " + m.Token, "a token as a password": apitest.BasicAuth("admin", m.Token),
		"an ended session": basic + ended, "the session of another user": basic + crossed,
		"the secret of a key set": "Authorization: Bearer " + secret,
		"a key set":               apitest.BasicAuth(keySet, secret), "a token without a signature": "Authorization: Bearer " + none,
		"the number of a user": "Authorization: Bearer " + other,
		"no form":              "Authorization: Bearer", "a cookie": "Cookie: session=" + m.Token}
	before := m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount")
	for kind, name := range slices.Sorted(maps.Keys(wrong)) {
		header := []string{wrong[name]}
		if strings.HasPrefix(wrong[name], "Cookie") {
			header = append(header, "Authorization:")
		}
		ops := all
		if strings.Contains(wrong[name], "Basic") { // whoever guesses has to wait: a few tell
			ops = all[:4]
		}
		c.advance(time.Hour) // who guessed before need not wait any more
		refused := 0
		for i, o := range ops {
			if slices.Contains(open, o.method+" "+o.path) || name != "none" && len(ops) > 4 && !apitest.InSample(i+kind, 4) {
				continue
			}
			r := m.Do(o.method, o.path, "", header...)
			switch {
			case r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusForbidden && r.Text("code") == "InvalidAuthorizationScheme":
				refused++
			case r.StatusCode == http.StatusTooManyRequests && refused > 0: // they were judged, and now they have to wait
			default:
				t.Errorf("%s: %s %s answers %d %s", name, o.method, o.path, r.StatusCode, r.Body)
			}
		}
	}
	if after := m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount"); after != before {
		t.Errorf("there were %s transactions, and are %s", before, after)
	}
}

// allNames returns the names of all resources.
func (m *manager) allNames() map[string]bool {
	m.T.Helper()
	all := map[string]bool{}
	for path := "/api/v2?fields=id,name&limit=1000"; path != ""; {
		r := m.Want(200, "GET", path, "")
		for _, row := range r.Get("data").([]any) {
			if name, _ := row.(map[string]any)["name"].(string); len(name) > 3 {
				all[name] = true
			}
		}
		path = r.Text("_links.next.href")
	}
	return all
}

// TestOperationsRequireRights checks that a user without any right sees and changes nothing by any operation. No error reveals which
// resources exist, nor their names.
func TestOperationsRequireRights(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	comes := m.allNames()
	m.oneOfEach()
	made := m.allNames()
	user, basic := m.User("nobody", "NO_ACCESS")
	bearer := "Authorization: Bearer " + m.Want(201, "POST", "/api/v2/tokens", `{"name":"nobody","role":"administrator"}`, basic,
		"Content-Type: application/json").Text("token")
	maps.DeleteFunc(made, func(name string, _ bool) bool { return comes[name] })
	all := m.operations()
	before := m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount")
	for _, o := range all {
		body := ""
		if o.method != "GET" && o.method != "DELETE" {
			body = "{}"
		}
		own := strings.Contains(o.path, "/users/"+user) || strings.HasPrefix(o.path, "/api/v2/preferences/")
		if slices.Contains(open, o.method+" "+o.path) || own {
			continue
		}
		as := basic
		if strings.HasPrefix(o.path, "/user/api/") || strings.HasPrefix(o.path, "/api/v1/") { // the fleet's, which take tokens alone
			as = bearer
		}
		r := m.Do(o.method, o.path, body, as)
		if as == bearer && r.StatusCode == 401 {
			t.Errorf("%s %s is not asked about rights: %s", o.method, o.path, r.Body)
		}
		shown := strings.ReplaceAll(string(r.Body), "nobody@example.net", "") // its own address
		for name := range made {
			if strings.Contains(shown, `:"`+name+`"`) || len(name) > 8 && strings.Contains(shown, name) {
				t.Errorf("%s %s shows %s: %d %s", o.method, o.path, name, r.StatusCode, r.Body[:min(len(r.Body), 400)])
				break
			}
		}
		unavailable := r.StatusCode == 501 || r.StatusCode == 503 && strings.Contains(string(r.Body), "FiguresDisabled")
		if r.StatusCode >= 500 && !unavailable || o.method != "GET" && r.StatusCode < 400 {
			t.Errorf("%s %s answers %d %s", o.method, o.path, r.StatusCode, r.Body[:min(len(r.Body), 400)])
		}
	}
	if after := m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount"); after != before {
		t.Errorf("there were %s transactions, and are %s", before, after)
	}
	t.Logf("%d operations, %d names: %s", len(all), len(made), fmt.Sprint(slices.Sorted(maps.Keys(made)))[:200])
}

// public are the routes without credentials, each with its reason. All others are described, and covered by the tests above.
var public = map[string]string{
	"/healthz": "liveness", "/readyz": "readiness of the database", "/metrics": "figures without names",
	"/api/openapi.json": "the description of the API", "/api/docs": "the same as a page", "/api/docs/": "the same as a page",
	"/{$}": "the console's page, which contains no data", "/ui/": "the console's page and programs", "/": "not found",
	"/sign-in/providers": "the identity providers", "/sign-in/{id}": "the redirect to a provider",
	"/sign-in/{id}/callback": "the redirect back",
	"/saml/metadata":         "the manager's description for identity providers", "/saml/consume": "their assertions",
	"/saml/logout": "their sign-outs",
	"/sign-out":    "the next page of a browser with a session",
}

// TestPublicRoutes lists the routes that no document describes. They show no names to clients without credentials, and a new one must be
// added to the list.
func TestPublicRoutes(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	comes := m.allNames()
	m.oneOfEach()
	made := m.allNames()
	maps.DeleteFunc(made, func(name string, _ bool) bool { return comes[name] })
	described := map[string]bool{}
	for _, o := range m.operations() {
		described[o.template] = true
	}
	before := m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount")
	authenticators := m.Want(200, "GET", "/api/v2/authenticators?fields=id,name", "")
	for _, one := range authenticators.Get("data").([]any) {
		delete(made, fmt.Sprint(one.(map[string]any)["name"])) // the sign-in page lists them
	}
	met := 0
	for _, route := range m.routes {
		if described[parameter.ReplaceAllString(route, "{}")] {
			continue
		}
		if _, ok := public[route]; !ok {
			t.Errorf("%s is neither documented nor listed as public", route)
			continue
		}
		met++
		path := strings.NewReplacer("{$}", "", "{id}", authenticators.Text("data.0.id")).Replace(route)
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			for _, header := range []string{"Authorization:", "Authorization: Bearer none"} {
				r := m.Do(method, path, "", header)
				if r.StatusCode >= 500 && r.StatusCode != 501 {
					t.Errorf("%s %s answers %d %s", method, path, r.StatusCode, r.Body)
				}
				if route == "/api/openapi.json" { // it is of the types, whose words are names of some
					continue
				}
				for name := range made {
					if len(name) > 4 && strings.Contains(string(r.Body), `"`+name+`"`) { // "none" is a word
						t.Errorf("%s %s shows %s", method, path, name)
					}
				}
			}
		}
	}
	if met != len(public) {
		t.Errorf("%d of %d public routes are there: %v", met, len(public), m.routes)
	}
	if after := m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount"); after != before {
		t.Errorf("there were %s transactions, and are %s", before, after)
	}
}

// openCheckin are the routes of the check-in door that take no certificate, each with why.
var openCheckin = map[string]string{checkin.EnrolPath: "it takes a registration key", checkin.HealthPath: "whether it is alive",
	"/": "that there is nothing"}

// TestCheckInRoutesRequireCertificate checks that each route of the check-in listener requires the certificate of a service point, except
// for the listed ones.
func TestCheckInRoutesRequireCertificate(t *testing.T) {
	m := startAlone(t)
	met := 0
	for _, route := range m.checkinRoutes {
		if _, ok := openCheckin[route]; ok {
			met++
			continue
		}
		if status, a := m.doorPost(route, map[string]any{}, nil); status != 401 && (route != release.Path || status != 405) {
			t.Errorf("POST %s without a certificate answers %d %v", route, status, a)
		}
		if status, text := m.doorGet(route, nil); status != 405 && status != 401 {
			t.Errorf("GET %s without a certificate answers %d %s", route, status, text)
		}
	}
	if met != len(openCheckin) || met == len(m.checkinRoutes) {
		t.Errorf("%d of %d open routes are there: %v", met, len(openCheckin), m.checkinRoutes)
	}
}

// TestMetricsWithoutNames checks that metrics contain no names for clients without credentials. Users who see everything, and clients of
// the separate metrics listener, get all names.
func TestMetricsWithoutNames(t *testing.T) {
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"secret-plans"}`)
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/30"}`)
	_, as := m.User("nobody", "NO_ACCESS")
	for _, header := range []string{"Authorization:", as} {
		text := string(m.Want(200, "GET", "/metrics", "", header).Body)
		if strings.Contains(text, "secret-plans") || strings.Contains(text, "10.0.0.0/30") || !strings.Contains(text, "portolan_transactions ") {
			t.Errorf("with %q it tells %.300s", header, text)
		}
	}
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/metrics", "", "Authorization: Bearer ptl_none")
	if text := string(m.Want(200, "GET", "/metrics", "").Body); !strings.Contains(text, `configuration="secret-plans"`) {
		t.Error("an administrator's lacks names")
	}
}
