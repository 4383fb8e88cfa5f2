package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/secrets"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
)

// The attacks, one after another. Numbers are those of the list that it was found in.

// analyst gives a token that may read.
func (m *manager) analyst() string {
	m.T.Helper()
	token, err := m.Identity.CreateToken(context.Background(), identity.Grant{Name: "watcher", Role: authz.Analyst})
	if err != nil {
		m.T.Fatal(err)
	}
	return token
}

// notHeldUp is shorter than the delays that these attacks could cause, and longer than a request on a slow machine.
const notHeldUp = time.Minute

// quickly fails the test where a request has to wait for others.
func (m *manager) quickly(status int, method, path, body string, headers ...string) {
	m.T.Helper()
	began := time.Now()
	m.Want(status, method, path, body, headers...)
	if took := time.Since(began); took > notHeldUp {
		m.T.Errorf("%s %s took %v", method, path, took)
	}
}

// TestAttackDataDirectory is attack 1: another user of the machine reads the data directory.
func TestAttackDataDirectory(t *testing.T) {
	m := startAlone(t)
	files, err := filepath.Glob(filepath.Join(m.options.Data, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v %v", file, info.Mode(), err)
		}
	}
}

// TestAttackSlowReaders is attack 2: clients with one read token request long lists and do not read them.
func TestAttackSlowReaders(t *testing.T) {
	m := startOnce(t)
	if err := Sample(t.Context(), m.Address); err != nil {
		t.Fatal(err)
	}
	token := m.analyst()
	for range 40 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(m.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprintf(conn, "GET /api/v2?limit=100000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", token)
	}
	for range 3 {
		m.quickly(200, "GET", "/readyz", "", "Authorization:")
		m.quickly(200, "GET", "/api/v2/users/100000", "")
		m.quickly(200, "GET", "/api/v2/networks?limit=1", "")
		m.quickly(200, "GET", "/user/api/v1/fleetInstances", "")
		m.quickly(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:")
	}
}

// TestAttackEmbedding is attack 3: one request embeds every reference in every resource.
func TestAttackEmbedding(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.Basics()
	group := m.ID("/api/v2/tagGroups", `{"name":"g"}`)
	tag := m.ID("/api/v2/tagGroups/"+group+"/tags", `{"name":"t"}`)
	for range 120 {
		a := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
		m.Want(201, "POST", "/api/v2/addresses/"+a+"/tags", `{"id":`+tag+`}`)
	}
	m.Refused(400, "EmbedTooLarge", "embed", "GET", "/api/v2/tags/"+tag+"?fields=embed(taggedResources.tags.taggedResources)", "")
	m.Refused(400, "EmbedTooLarge", "embed", "GET", "/api/v2/tags?fields=embed(taggedResources.tags.taggedResources)", "")
	if r := m.Want(200, "GET", "/api/v2/tags/"+tag+"?fields=id,embed(taggedResources)",
		""); len(r.Get("_embedded.taggedResources").([]any)) != 120 {
		t.Error("what is within the bounds is not embedded")
	}
}

// TestAttackFilters is attack 4: a filter continues after its client has disconnected, is too complex, or takes too long.
func TestAttackFilters(t *testing.T) {
	m := startAlone(t)
	heavy := make([]string, 190)
	for i := range heavy {
		heavy[i] = fmt.Sprintf("configuration.name:contains('%d')", i)
	}
	m.Refused(400, "FilterNeedsRefinement", "the weight is", "GET", "/api/v2/addresses?"+filter(strings.Join(heavy, " or ")), "")
	m.Want(200, "GET", "/api/v2/addresses?"+filter("name:in('"+strings.Repeat("x','", 150)+"x')"), "")
	if os.Getenv(apitest.OnPostgres) != "" { // where a connection is not even had by then
		return
	}
	m.REST.ReadTime = time.Nanosecond
	m.Refused(400, "FilterNeedsRefinement", "took longer than", "GET", "/api/v2/addresses?"+filter("name:contains('x')"), "")
}

// TestAttackBodies is attack 5: a client without credentials sends bodies with very many members.
func TestAttackBodies(t *testing.T) {
	m := startAlone(t)
	var many strings.Builder
	many.WriteString(`{"a0":0`)
	for i := range 50_000 {
		fmt.Fprintf(&many, `,"a%d":0`, i+1)
	}
	many.WriteString("}")
	for path, code := range map[string]string{"/v1/api/authentication/token": "RequestTooLarge", "/api/v2/sessions": "RequestTooLarge"} {
		m.Refused(413, code, "16 KiB", "POST", path, many.String(), "Authorization:", "Content-Type: application/json")
	}
	if status, answer := m.doorPost(checkin.EnrolPath, map[string]string{"registrationKey": strings.Repeat("x", 20<<10)}, nil); status != 413 {
		t.Errorf("the check-in door takes it: %d %v", status, answer)
	}
	m.Refused(400, "InvalidRequestBody", "members", "POST", "/api/v2/configurations",
		`{"name":"x","list":[`+strings.Repeat("0,", 300_000)+`0]}`)
	m.Refused(400, "InvalidRequestBody", "at most 100 members", "POST", "/api/v2/sessions", `{"x":[`+strings.Repeat("0,", 200)+`0]}`,
		"Authorization:", "Content-Type: application/json")
}

// TestAttackGuessing is attack 6: a client guesses passwords. It has to wait, failures are counted, and an event is raised. Other users
// sign in.
func TestAttackGuessing(t *testing.T) {
	m := startOnce(t)
	refusedAt := 0
	for i := range 10 {
		r := m.Do("POST", "/api/v2/sessions", fmt.Sprintf(`{"username":"admin","password":"guess %d"}`, i), "Authorization:")
		if r.StatusCode == http.StatusTooManyRequests {
			if r.Header.Get("Retry-After") == "" || r.Text("code") != "TooManyRequests" {
				t.Errorf("the refusal says %s", r.Body)
			}
			refusedAt = i
			break
		}
		if r.StatusCode != http.StatusUnauthorized {
			t.Fatalf("guess %d: %d %s", i, r.StatusCode, r.Body)
		}
	}
	if refusedAt != 5 {
		t.Errorf("guess %d is refused, want 5", refusedAt)
	}
	// A correct password does not bypass the limit, and the answer does not reveal that it is correct.
	m.Refused(429, "TooManyRequests", "failed sign-ins", "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`,
		"Authorization:", "Content-Type: application/json")
	apitest.Eventually(t, "the event is there", func() bool {
		return strings.Contains(string(m.Want(200, "GET", "/api/v2/events?fields=message", "").Body),
			"5 consecutive failed sign-ins as \\\"admin\\\" from 127.0.0.1")
	})
	if text := string(m.Want(200, "GET", "/metrics", "", "Authorization:").Body); !strings.Contains(text,
		`portolan_sign_ins_total{result="refused"} 5`) || !strings.Contains(text, `portolan_sign_ins_total{result="throttled"} 2`) {
		t.Error("the metrics do not count it")
	}
	// Key sets are guessed no better, and a refusal writes nothing.
	before := m.Store.LastCommit()
	for i := range 6 {
		r := m.Do("POST", "/v1/api/authentication/token",
			`{"grantType":"ClientCredentials","clientCredentials":{"clientId":"x","clientSecret":"y"}}`, "Authorization:")
		if want := map[bool]int{true: 401, false: 429}[i < 5]; r.StatusCode != want {
			t.Errorf("exchange %d: %d %s", i, r.StatusCode, r.Body)
		}
	}
	// (18) Six failures cause one event. A background job may add another one.
	if after := m.Store.LastCommit(); os.Getenv(apitest.OnPostgres) == "" && after >= before+5 {
		t.Errorf("%d commits for refused exchanges", after-before)
	}
}

// TestAttackNames is a part of attack 6: requests with an ended session are not counted as failures, and impossible names are counted for
// no user.
func TestAttackNames(t *testing.T) {
	m := startAlone(t)
	s := m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:")
	m.Want(200, "PATCH", "/api/v2/sessions/"+s.Text("id"), `{"state":"TERMINATED"}`)
	for range 8 {
		m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/networks", "",
			"Authorization: Basic "+s.Text("basicAuthenticationCredentials"))
	}
	for _, name := range []string{"a\x00b", "a\xff", strings.Repeat("é", 4000)} {
		if r := m.Do("GET", "/api/v2/networks", "", apitest.BasicAuth(name, "x")); r.StatusCode != 401 && r.StatusCode != 429 {
			t.Errorf("%.20q: %d %s", name, r.StatusCode, r.Body)
		}
	}
	m.Refused(401, "InvalidAuthorizationCredentials", "", "POST", "/v1/api/authentication/token",
		`{"grantType":"ClientCredentials","clientCredentials":{"clientId":"a\u0000","clientSecret":"y"}}`, "Authorization:",
		"Content-Type: application/json")
	m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:")
	m.Refused(400, "InvalidHeaderValue", "2 times", "POST", "/api/v2/configurations", `{"name":"x"}`, "x-portolan-dry-run: false",
		"x-portolan-dry-run: true")
}

// TestAttackHashing is a part of attack 6: many clients guess at once, from ever new addresses. A user who has signed in from an address
// before still signs in from it.
func TestAttackHashing(t *testing.T) {
	m := startOnce(t)
	m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:")
	user := m.ID("/api/v2/users",
		`{"type":"User","name":"second","password":"`+adminPassword+`","email":"e@x","securityPrivilege":"NO_ACCESS","accessType":"API"}`)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var busy atomic.Int64
	for i := range 64 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, err := m.Identity.Login(ctx, fmt.Sprint("user", n), "guess", fmt.Sprintf("192.0.%d.%d", n%250, i), authz.APIInterface)
				if err != nil && strings.Contains(err.Error(), "too many concurrent sign-ins") {
					busy.Add(1)
					time.Sleep(time.Millisecond) // as a network would
				}
			}
		})
	}
	for range 3 { // a password that is not remembered
		m.Want(200, "PATCH", "/api/v2/users/"+user, `{"password":"`+secrets.New()+`"}`)
		m.Want(200, "PATCH", "/api/v2/users/"+user, `{"password":"`+adminPassword+`"}`)
		m.Want(201, "POST", "/api/v2/sessions", `{"username":"second","password":"`+adminPassword+`"}`, "Authorization:")
	}
	stop()
	all.Wait()
	if busy.Load() == 0 {
		t.Error("all of them were hashed")
	}
}

// TestAttackTokens is attacks 7 and 8: a token has no more rights than its user now, and ends with its user. Other tokens do not end with
// it.
func TestAttackTokens(t *testing.T) {
	m := startManager(t)
	second := m.ID("/api/v2/users",
		`{"type":"User","name":"second","password":"`+adminPassword+`","email":"e@x","securityPrivilege":"ADMINISTRATOR","accessType":"API"}`)
	grant := func(g identity.Grant) string {
		t.Helper()
		token, err := m.Identity.CreateToken(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	bound := "Authorization: Bearer " + grant(identity.Grant{Name: "bound", Role: authz.Administrator, User: "second"})
	free := "Authorization: Bearer " + grant(identity.Grant{Name: "pipeline", Role: authz.Administrator})
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"by bound"}`, bound)
	m.Want(200, "PATCH", "/api/v2/users/"+second, `{"securityPrivilege":"VIEW_MY_ACCESS_RIGHTS"}`)
	apitest.Eventually(t, "the token is an administrator's no more", func() bool {
		return m.Do("POST", "/api/v2/configurations", `{"name":"again"}`, bound).StatusCode == http.StatusForbidden
	})
	m.Want(403, "PATCH", "/api/v2/users/"+second, `{"securityPrivilege":"ADMINISTRATOR"}`, bound)
	m.ID("/api/v2/users", `{"type":"User","name":"third","password":"`+adminPassword+`","email":"e@x","securityPrivilege":"ADMINISTRATOR","accessType":"API"}`)
	m.Want(204, "DELETE", "/api/v2/users/100000", "", free) // the first administrator
	m.Want(204, "DELETE", "/api/v2/users/"+second, "", free)
	apitest.Eventually(t, "the token went with its user", func() bool {
		return m.Do("GET", "/api/v2/configurations", "", bound).StatusCode == http.StatusUnauthorized
	})
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"by the pipeline"}`, free)
	if r := m.Want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)&fields=user,principal", "",
		free); r.Text("data.0.principal") != "token pipeline" || r.Get("data.0.user") != nil {
		t.Errorf("the history says %s", r.Body)
	}
	if _, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "x", Role: authz.Analyst, User: "nobody"}); err == nil {
		t.Error("a token is made for a user who is not there")
	}
}

// TestAttackPages is attack 9: a stored value becomes a link on a page, or a page is framed or runs a script.
func TestAttackPages(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	m.Want(200, "PATCH", "/api/v2/configurations/"+configuration,
		`{"userDefinedFields":{"x":"<script>alert(1)</script>"},"configurationGroup":"javascript:alert(1)"}`)
	for _, path := range []string{"/api/v2/configurations/" + configuration, "/api/v2/configurations"} {
		r := m.Want(200, "GET", path, "", "Accept: text/html")
		if text := string(r.Body); strings.Contains(text, "<script") || strings.Contains(text, `href="javascript`) ||
			!strings.Contains(text, "javascript:alert") {
			t.Errorf("%s has %s", path, text)
		}
	}
	for _, path := range []string{"/api/v2", "/api/docs", "/api/openapi.json", "/healthz", "/nowhere", "/user/api/v1/fleetInstances"} {
		r := m.Do("GET", path, "", "Accept: text/html, application/json")
		policy := r.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			strings.Contains(policy, "script-src 'self' 'unsafe-inline'") ||
			r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, r.Header)
		}
	}
}

// TestAttackIdempotency is attack 10: a reader of the database searches the stored answers of repeated requests for passwords.
func TestAttackIdempotency(t *testing.T) {
	m := startAlone(t)
	body := `{"type":"User","name":"u","password":"a password of theirs","email":"e@x","securityPrivilege":"NO_ACCESS","accessType":"API"}`
	r := m.Want(201, "POST", "/api/v2/users", body, "Idempotency-Key: one")
	if got := r.Header.Get("x-portolan-ignored"); got != "Idempotency-Key" {
		t.Errorf("what was ignored is named as %q", got)
	}
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"kept"}`, "Idempotency-Key: two")
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"kept"}`, "Idempotency-Key: two")
	m.Refused(409, "IdempotencyKeyReused", "", "POST", "/api/v2/configurations", `{"name":"other"}`, "Idempotency-Key: two")
	sum := sha256.Sum256([]byte(body))
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		rows := 0
		err := tx.Each(func(scan func(...any) error) error {
			var key, request string
			err := scan(&key, &request)
			if rows++; strings.Contains(key, "two") || strings.Contains(request, fmt.Sprintf("%x", sum)) {
				t.Errorf("%s %s can be looked up", key, request)
			}
			return err
		}, "SELECT key, request FROM idempotency")
		if rows != 1 {
			t.Errorf("%d requests are remembered", rows)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestAttackLockedAccount is attack 11: the response time of a locked account reveals whether a password is correct, or whether a name
// exists.
func TestAttackLockedAccount(t *testing.T) {
	m := startAlone(t)
	user := m.ID("/api/v2/users",
		`{"type":"User","name":"locked","password":"the right password","email":"e@x","securityPrivilege":"NO_ACCESS","accessType":"API"}`)
	login := func(name, password string) (took time.Duration) {
		began := time.Now()
		_, err := m.Identity.Login(t.Context(), name, password, fmt.Sprint(began.UnixNano()), authz.APIInterface)
		if err == nil {
			t.Errorf("%s is let in", name)
		}
		return time.Since(began)
	}
	m.Want(201, "POST", "/api/v2/sessions", `{"username":"locked","password":"the right password"}`, "Authorization:") // and remembered
	m.Want(200, "PATCH", "/api/v2/users/"+user, `{"accountLocked":true}`)
	// The minimum of many attempts is the time without waiting for a processor.
	r, w, n := time.Hour, time.Hour, time.Hour
	for range 200 {
		r, w = min(r, login("locked", "the right password")), min(w, login("locked", "a wrong password"))
		n = min(n, login("nobody", "a wrong password"))
		if r*4 >= w && n*4 >= w && w*4 >= n {
			return
		}
	}
	t.Errorf("right password %v, wrong password %v, unknown user %v", r, w, n)
}

// TestAttackReports is attack 12: a service point reports megabytes, and another status a hundred times a second.
func TestAttackReports(t *testing.T) {
	m := startManager(t)
	id, key := m.create("noisy")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	certificate := e.certificateOf(t, answer)
	report := func(conditions ...string) int {
		status, _ := m.doorPost(checkin.CheckInPath, checkin.Request{Report: &checkin.Report{Version: "1", Variant: checkin.Fleet,
			ErrorConditions: conditions}}, certificate)
		return status
	}
	if got := report(strings.Repeat("x", 257<<10)); got != http.StatusRequestEntityTooLarge {
		t.Errorf("257 KiB: %d", got)
	}
	if got := report(strings.Repeat("x", 2000)); got != http.StatusBadRequest {
		t.Errorf("a long condition: %d", got)
	}
	if got := report(slices.Repeat([]string{strings.Repeat("x", 1000)}, 90)...); got != http.StatusBadRequest {
		t.Errorf("many conditions: %d", got)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for i := range 60 {
		all.Go(func() {
			if report([]string{"a", "b"}[:i%2]...) == http.StatusTooManyRequests {
				mu.Lock()
				defer mu.Unlock()
				refused++
			}
		})
	}
	all.Wait()
	if refused == 0 {
		t.Error("all of sixty reports at a time were taken")
	}
	if m.events() > 250 {
		t.Errorf("%d events", m.events())
	}
	m.Want(204, "DELETE", "/user/api/v1/fleetInstances/"+id, "")
}

// TestAttackPaths is attack 13: a path has a hundred steps.
func TestAttackPaths(t *testing.T) {
	m := startAlone(t)
	m.Refused(400, "FilterParseError", "at most 8", "GET", "/api/v2/zones?"+filter(strings.Repeat("view.", 100)+"name:'x'"), "")
	m.Refused(400, "InvalidQueryParameterValue", "at most 8", "GET", "/api/v2/zones?orderBy="+strings.Repeat("view.", 100)+"name", "")
	m.Refused(400, "InvalidQueryParameterValue", "at most 8", "GET", "/api/v2/zones?fields="+strings.Repeat("view.", 100)+"name", "")
}

// TestAttackSpreadsheet is attack 14: a spreadsheet interprets a name as a formula.
func TestAttackSpreadsheet(t *testing.T) {
	m := startAlone(t)
	for _, name := range []string{"=1+1", "+1", "-1", "@x"} {
		m.ID("/api/v2/configurations", `{"name":"`+name+`"}`)
	}
	text := string(m.Want(200, "GET", "/api/v2/configurations?fields=name", "", "Accept: text/csv").Body)
	for _, want := range []string{"'=1+1", "'+1", "'-1", "'@x"} {
		if !strings.Contains(text, "\n"+want+"\r\n") {
			t.Errorf("%s is missing in %q", want, text)
		}
	}
}

// TestAttackSessions is attack 15: one user signs in without end.
func TestAttackSessions(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	for range 200 {
		m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:")
	}
	r := m.Want(200, "GET", "/api/v2/sessions?total=true&limit=1&"+filter("state:'LOGGED_IN'"), "")
	if n := r.Text("totalCount"); n != "64" && n != "65" {
		t.Errorf("%s sessions are open", n)
	}
	if n := m.Want(200, "GET", "/api/v2/sessions?total=true&limit=1", "").Text("totalCount"); len(n) > 3 || n > "170" {
		t.Errorf("%s sessions are kept", n)
	}
	m.Verify()
}

// TestEndedSessionsAreRemoved is a part of attack 15: ended sessions are deleted in the end.
func TestEndedSessionsAreRemoved(t *testing.T) {
	m := startManager(t, func(o *Options) { o.KeepSessions = time.Hour })
	s := m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:").Text("id")
	m.Want(200, "PATCH", "/api/v2/sessions/"+s, `{"state":"TERMINATED"}`)
	if n, err := identity.RemoveSessions(t.Context(), m.Address, m.Store.Update, time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("%d were removed that are not old, %v", n, err)
	}
	if n, err := identity.RemoveSessions(t.Context(), m.Address, m.Store.Update, time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d were removed, %v", n, err)
	}
	m.Want(404, "GET", "/api/v2/sessions/"+s, "")
}

// TestAttackTransport is attack 17: a site with TLS serves plain HTTP, or every client that reaches the API reads /metrics.
func TestAttackTransport(t *testing.T) {
	m := startOnce(t, func(o *Options) { o.MetricsListen = "127.0.0.1:0" })
	m.Want(404, "GET", "/metrics", "")
	rs, err := http.Get("http://" + m.figures.Addr().String() + "/metrics")
	if err != nil || rs.StatusCode != 200 {
		t.Fatalf("the metrics of their own listener: %v %v", rs, err)
	}
	_ = rs.Body.Close()
	if m.Do("GET", "/healthz", "").Header.Get("Strict-Transport-Security") != "" {
		t.Error("plain HTTP asks for TLS")
	}
	h := http.Header{}
	middleware.SetSecurityHeaders(h, true)
	if h.Get("Strict-Transport-Security") == "" {
		t.Error("TLS does not ask for TLS")
	}
}

// TestPrivilegesAct checks a user without access to the history, one without access to users, and one who has to set a new password.
func TestPrivilegesAct(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	login := func(name, privileges string) (id, credentials string) {
		t.Helper()
		id = m.ID("/api/v2/users", `{"type":"User","name":"`+name+`","password":"`+adminPassword+`","email":"e@x","accessType":"API",`+privileges+`}`)
		m.Right(id, "", "VIEW", "")
		return id, apitest.BasicAuth(name, adminPassword)
	}
	_, hidden := login("hidden", `"securityPrivilege":"NO_ACCESS"`) // historyPrivilege HIDE is the default
	for _, path := range []string{"/api/v2/transactions", "/api/v2/configurations/" + configuration + "/transactions"} {
		if r := m.Want(200, "GET", path, "", hidden); r.Text("count") != "0" {
			t.Errorf("%s shows %s", path, r.Body)
		}
	}
	m.Want(404, "GET", "/api/v2/transactions/1", "", hidden)
	m.Want(404, "GET", "/api/v2/users/100000", "", hidden)
	if r := m.Want(200, "GET", "/api/v2/users", "", hidden); r.Text("count") != "1" || r.Text("data.0.name") != "hidden" {
		t.Errorf("who has no access to users sees %s", r.Body)
	}
	_, list := login("lists", `"securityPrivilege":"VIEW_OTHERS_ACCESS_RIGHTS","historyPrivilege":"VIEW_HISTORY_LIST"`)
	if r := m.Want(200, "GET", "/api/v2/transactions?limit=1", "", list); r.Text("count") != "1" {
		t.Errorf("the list of the history is %s", r.Body)
	}
	if r := m.Do("GET", "/api/v2/transactions/1/operations", "", list); r.Text("count") != "0" {
		t.Errorf("who sees the list sees what was changed: %d %s", r.StatusCode, r.Body)
	}
	m.Want(200, "GET", "/api/v2/users/100000", "", list)
	login("seer", `"securityPrivilege":"NO_ACCESS","historyPrivilege":"VIEW_HISTORY_LIST"`)
	// Nothing but a new password.
	id, reset := login("resets", `"securityPrivilege":"ADMINISTRATOR","passwordResetRequired":true`)
	m.refusedAs(reset, 403, "PasswordResetRequired", "new password", "GET", "/api/v2/configurations", "")
	m.refusedAs(reset, 403, "PasswordResetRequired", "new password", "OPTIONS", "/api/v2/configurations", "") // not even the methods
	m.refusedAs(reset, 403, "PasswordResetRequired", "new password", "PATCH", "/api/v2/users/100000", `{"password":"some new password"}`)
	if r := m.Want(200, "PATCH", "/api/v2/users/"+id, `{"password":"my new password"}`, reset); r.Text("passwordResetRequired") != "false" {
		t.Errorf("the user is %s", r.Body)
	}
	m.Want(200, "GET", "/api/v2/configurations", "", apitest.BasicAuth("resets", "my new password"))
	id, again := login("again", `"securityPrivilege":"ADMINISTRATOR","passwordResetRequired":true`)
	m.refusedAs(again, 403, "PasswordResetRequired", "must set a new password first", "PATCH", "/api/v2/users/"+id, `{"passwordResetRequired":false}`)
	m.refusedAs(again, 403, "PasswordResetRequired", "new password", "PATCH", "/api/v2/users/"+id+"?fields=embed(sessions)",
		`{"password":"my new password"}`)
	m.refusedAs(again, 400, "InvalidResourceFieldValue", "must differ", "PATCH", "/api/v2/users/"+id, `{"password":"`+adminPassword+`"}`)
	bound, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "bound", Role: authz.Administrator, User: "again"})
	if err != nil {
		t.Fatal(err)
	}
	m.refusedAs("Authorization: Bearer "+bound, 403, "PasswordResetRequired", "new password", "POST", "/api/v1/fleetInstanceMinimumConfig",
		`{"name":"x"}`)
	// A user without the right to manage users cannot change them by links.
	group := m.ID("/api/v2/tagGroups", `{"name":"g"}`)
	tag := m.ID("/api/v2/tagGroups/"+group+"/tags", `{"name":"t"}`)
	m.refusedAs(list, 403, "AccessDenied", "", "POST", "/api/v2/users/100000/tags", `{"id":`+tag+`}`)
	if r := m.Want(200, "GET", "/api/v2/transactions?"+filter("user.email:startsWith('a')"), "",
		apitest.BasicAuth("seer", adminPassword)); r.Text("count") != "0" {
		t.Errorf("the answer reveals which users own resources: %s", r.Body)
	}
	// One's own password, and nothing else.
	id, plain := login("plain", `"securityPrivilege":"NO_ACCESS"`)
	for _, body := range []string{`{"securityPrivilege":"ADMINISTRATOR"}`, `{"password":"another password","email":"x@y"}`} {
		m.refusedAs(plain, 403, "AccessDenied", "own password", "PATCH", "/api/v2/users/"+id, body)
	}
	m.refusedAs(plain, 403, "AccessDenied", "", "DELETE", "/api/v2/users/"+id, "")
	m.refusedAs(plain, 403, "AccessDenied", "", "POST", "/api/v2/users",
		`{"type":"User","name":"x","password":"`+adminPassword+`","email":"e@x","securityPrivilege":"ADMINISTRATOR","accessType":"API"}`)
	session := m.Want(201, "POST", "/api/v2/sessions", `{"username":"plain","password":"`+adminPassword+`"}`, "Authorization:").Text("id")
	m.Want(200, "PATCH", "/api/v2/users/"+id, `{"password":"another password"}`, plain)
	if state := m.Want(200, "GET", "/api/v2/sessions/"+session, "").Text("state"); state != "TERMINATED" {
		t.Errorf("a session of the former password is %s", state)
	}
	m.Refused(400, "InvalidResourceFieldValue", "x509Required", "PATCH", "/api/v2/users/"+id, `{"x509Required":true}`)
	m.Refused(400, "BlankFieldValue", "blank", "PATCH", "/api/v2/users/"+id, `{"password":"        "}`)
}

// refusedAs is refused with other credentials.
func (m *manager) refusedAs(credentials string, status int, code, naming, method, path, body string) {
	m.T.Helper()
	m.Refused(status, code, naming, method, path, body, credentials, "Content-Type: application/json")
}

// TestIgnoredIsNamed checks that ignored parts of a request are named in the answer.
func TestIgnoredIsNamed(t *testing.T) {
	m := startAlone(t)
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/api/v2/configurations", `{"name":"a","colour":"red","_links":{},"id":5}`, "colour"},
		{"POST", "/api/v2/configurations?x=1", `{"name":"b"}`, "?x"},
		{"GET", "/api/v2/configurations?limits=5&Offset=1", "", "?Offset, ?limits"},
		{"GET", "/api/v2/configurations?limit=5", "", ""},
		{"GET", "/api/v2/users/100000?limit=5", "", "?limit"},
		{"POST", "/api/v2/configurations", `{"name":"c","a\r\nb":1}`, "a%0D%0Ab"},
	} {
		r := m.Do(c.method, c.path, c.body)
		if got := r.Header.Get("x-portolan-ignored"); r.StatusCode >= 300 || got != c.want {
			t.Errorf("%s %s %s: %d %q, want %q", c.method, c.path, c.body, r.StatusCode, got, c.want)
		}
	}
	// A field that can only be set at creation is named if its value differs, and not if the client sends the shown value.
	_, _, zone, block, _ := m.Basics()
	for body, want := range map[string]string{`{"absoluteName":"example.net"}`: "absoluteName", `{"absoluteName":"example.com"}`: ""} {
		r := m.Want(200, "PATCH", "/api/v2/zones/"+zone, body, apitest.MergePatch)
		if got := r.Header.Get("x-portolan-ignored"); got != want {
			t.Errorf("%s: ignored is %q, want %q", body, got, want)
		}
	}
	r := m.Do("POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/25"}`)
	if r.StatusCode != 400 || r.Text("fields") != "[range]" { // a conflict also names its field
		t.Errorf("the conflict is %s", r.Body)
	}
}

// TestSlowClientsGetAll checks that a slow client gets its list completely, also if the list waits in a file.
func TestSlowClientsGetAll(t *testing.T) {
	apitest.Slow(t)
	m := startManager(t)
	if err := Sample(t.Context(), m.Address); err != nil {
		t.Fatal(err)
	}
	const all = "/api/v2?limit=100000&fields=not(size)" // the size of the database is another one at any time
	want := m.Want(200, "GET", all, "").Body
	conn, err := net.Dial("tcp", strings.TrimPrefix(m.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprintf(conn, "GET "+all+" HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", m.Token)
	m.Want(200, "DELETE", "/api/v2/configurations/"+m.Want(200, "GET", "/api/v2/configurations?limit=1&fields=id", "").Text("data.0.id"), "",
		"x-portolan-dry-run: true")
	time.Sleep(200 * time.Millisecond) // a client that takes its time; nothing depends on how long
	var got bytes.Buffer
	if _, err := got.ReadFrom(conn); err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(got.Bytes(), []byte("\r\n\r\n"))
	if !bytes.Equal(body, want) {
		t.Errorf("%d bytes, want %d", len(body), len(want))
	}
}
