package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestOwnTokens checks that users create and revoke their own tokens. A token cannot create tokens, and users do not see the tokens of
// others.
func TestOwnTokens(t *testing.T) {
	m := startAlone(t)
	const at, secret = "/api/v2/tokens", "a long password"
	for _, name := range []string{"ada", "bob"} {
		m.Want(201, "POST", "/api/v2/users", `{"name":"`+name+`","email":"e@x","securityPrivilege":"NO_ACCESS","accessType":"GUI_AND_API","password":"`+
			secret+`"}`)
	}
	ada, bob, admin := apitest.BasicAuth("ada", secret), apitest.BasicAuth("bob", secret), apitest.BasicAuth("admin", adminPassword)
	made := m.Want(201, "POST", at, `{"name":"ci"}`, ada)
	if made.Text("user") != "ada" || made.Text("role") != "analyst" || !strings.HasPrefix(made.Text("token"), "ptl_") ||
		made.Header.Get("Location") != at+"/"+made.Text("id") {
		t.Errorf("a token is made: %s", made.Body)
	}
	as := "Authorization: Bearer " + made.Text("token")
	m.Want(200, "GET", "/api/v2/networks", "", as)
	if r := m.Want(200, "GET", at, "", ada); r.Count() != 1 || strings.Contains(string(r.Body), "ptl_") || r.Text("data.0.name") != "ci" {
		t.Errorf("ada sees %s", r.Body)
	}
	if r := m.Want(200, "GET", at, "", bob); r.Count() != 0 {
		t.Errorf("bob sees %s", r.Body)
	}
	if r := m.Want(200, "GET", at, "", admin); r.Count() != 2 { // with that of the test
		t.Errorf("an administrator sees %s", r.Body)
	}
	// Also with the cookie of a session, and as a key set. Only administrators create tokens of other users.
	cookie := m.atConsole(`{"username":"ada","password":"` + secret + `"}`)
	set := m.Want(201, "POST", at, `{"name":"exchange","kind":"keyset","role":"administrator"}`, "Authorization:", cookie)
	m.Want(200, "POST", "/v1/api/authentication/token", `{"grantType":"ClientCredentials","clientCredentials":{"clientId":"`+set.Text("clientId")+
		`","clientSecret":"`+set.Text("clientSecret")+`"}}`, "Authorization:")
	for _, c := range []struct {
		status                     int
		code, naming, body, header string
	}{
		{400, "InvalidResourceFieldValue", "name", `{}`, ada}, {400, "InvalidResourceFieldValue", "role", `{"name":"x","role":"king"}`, ada},
		{400, "InvalidResourceFieldValue", "kind", `{"name":"x","kind":"cookie"}`, ada},
		{400, "InvalidResourceFieldValue", "expires", `{"name":"x","expires":"yesterday"}`, ada},
		{400, "InvalidResourceFieldValue", "expires", `{"name":"x","expires":"2020-01-01T00:00:00Z"}`, ada},
		{400, "InvalidResourceFieldValue", "expires", `{"name":"x","expires":"2999-01-01T00:00:00Z"}`, ada},
		{400, "InvalidResourceFieldValue", "name", `{"name":" x"}`, ada}, {400, "InvalidResourceFieldValue", "name", `{"name":"x\u202e"}`, ada},
		{403, "AccessDenied", "a token cannot", `{"name":"x"}`, as}, {401, "InvalidAuthorizationToken", "", `{"name":"x"}`, "Authorization:"},
	} {
		m.Refused(c.status, c.code, c.naming, "POST", at, c.body, c.header)
	}
	if r := m.Want(201, "POST", at, `{"name":"for another","user":"bob"}`, ada); r.Text("user") != "ada" { // which means nothing
		t.Errorf("a token of another: %s", r.Body)
	}
	m.Refused(400, "InvalidHeaderValue", "does not support a dry run", "POST", at, `{"name":"x"}`, ada, "x-portolan-dry-run: true")
	m.Refused(403, "CrossOriginRequest", "", "POST", at, `{"name":"x"}`, ada, "Sec-Fetch-Site: cross-site")
	m.Refused(404, "ResourceNotFound", "", "DELETE", at+"/"+made.Text("id"), "", bob)
	m.Refused(405, "MethodNotAllowed", "", "PATCH", at, `{}`, ada)
	m.Refused(405, "MethodNotAllowed", "", "GET", at+"/"+made.Text("id"), "", ada)
	m.Refused(404, "ResourceNotFound", "", "DELETE", at+"/a/b", "", ada)
	m.Want(204, "DELETE", at+"/"+made.Text("id"), "", ada)
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", as)
	if r := m.Want(200, "GET", "/api/v2/events?orderBy=desc(id)&limit=1", ""); !strings.Contains(r.Text("data.0.message"), `ada revoked the bearer token "ci"`) {
		t.Errorf("the last event is %s", r.Body)
	}
	// A password set by an administrator revokes the tokens of the user; a password set by the user does not.
	kept := "Authorization: Bearer " + m.Want(201, "POST", at, `{"name":"kept"}`, ada).Text("token")
	who := m.Want(200, "GET", "/api/v2/users?"+filter("name:'ada'"), "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/users/"+who, `{"password":"another password"}`, ada)
	m.Want(200, "GET", "/api/v2/networks", "", kept)
	m.Want(200, "PATCH", "/api/v2/users/"+who, `{"password":"`+secret+`"}`)
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/networks", "", kept)
	// The number of tokens of a user is limited.
	for range 100 {
		m.Want(201, "POST", at, `{"name":"many"}`, ada)
	}
	m.Refused(409, "TooManyTokens", "ada", "POST", at, `{"name":"one more"}`, ada)
	// A user who must set a new password cannot create tokens.
	m.Want(200, "PATCH", "/api/v2/users/"+m.Want(200, "GET", "/api/v2/users?"+filter("name:'bob'"), "").Text("data.0.id"), `{"passwordResetRequired":true}`)
	m.Refused(403, "PasswordResetRequired", "", "POST", at, `{"name":"x"}`, bob)
}

// TestTokenEndsItself checks that the holder of a token can revoke that token, and no other.
func TestTokenEndsItself(t *testing.T) {
	m := startAlone(t)
	made := func(name string) (id, token string) {
		r := m.Want(201, "POST", "/api/v2/tokens", `{"name":"`+name+`","role":"analyst"}`, apitest.BasicAuth("admin", adminPassword))
		return r.Text("id"), r.Text("token")
	}
	first, token := made("first")
	second, _ := made("second")
	m.Refused(403, "AccessDenied", "a token cannot", "DELETE", "/api/v2/tokens/"+second, "", "Authorization: Bearer "+token)
	m.Want(204, "DELETE", "/api/v2/tokens/"+first, "", "Authorization: Bearer "+token)
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/configurations", "", "Authorization: Bearer "+token)
}

// TestScopesOfTokens checks that a token with collections in its scope changes only these, and reads with the role of its user.
func TestScopesOfTokens(t *testing.T) {
	m := startAlone(t)
	_, _, zone, block, network := m.Basics()
	_, own := m.User("ada", "NO_ACCESS")
	admin := apitest.BasicAuth("admin", adminPassword)
	made := func(scopes string) string {
		t.Helper()
		r := m.Want(201, "POST", "/api/v2/tokens", `{"name":"ci","role":"administrator","scopes":`+scopes+`}`, admin)
		return "Authorization: Bearer " + r.Text("token")
	}
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.77","state":"STATIC"}`)
	location := m.Want(200, "GET", "/api/v2/locations?limit=1", "").Text("data.0.id")
	records := made(`["resourceRecords","zones","resourceRecords"]`)
	for _, path := range []string{"", "/networks/" + network, "/search?q=10.0.0.0", "/transactions", "/zones/" + zone + "/resourceRecords"} {
		m.Want(200, "GET", "/api/v2"+path, "", records)
	}
	record := m.Want(201, "POST", "/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"a","text":"x"}`, records).Text("id")
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+record, `{"text":"y"}`, records)
	m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"dynamicUpdateEnabled":true}`, records)
	m.Want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"PATCH","path":"/api/v2/resourceRecords/`+record+`","body":{"text":"z"}}]}`, records)
	for _, c := range []struct{ method, path, body, scope string }{
		{"POST", "/networks/" + network + "/addresses", `{"type":"IPv4Address","address":"10.0.0.9","state":"STATIC"}`, "addresses"},
		{"PATCH", "/networks/" + network, `{"name":"x"}`, "networks"},
		{"POST", "/blocks/" + block + "/splits", `{"type":"IPv4Split"}`, "splits"},
		{"DELETE", "/blocks/" + block, "", "blocks"},
		{"DELETE", "/networks?" + filter("name:'x'"), "", "networks"},
		{"POST", "/networks/" + network + "/tags", `{"id":1}`, "networks"},
		{"POST", "/users", `{"name":"b"}`, "address"},
		{"POST", "/imports", `{}`, "address"},
		{"POST", "/transactions", `{"type":"Undo"}`, "address"},
		{"POST", "/servers/1/deployments", `{"type":"FullDeployment"}`, "deployments"},
		{"POST", "/addresses/" + address + "/tags", `{"id":1}`, "addresses"},
		{"POST", "/locations/" + location + "/annotatedResources", `{"id":` + network + `}`, "addresses"},
		{"POST", "/webhooks", `{}`, "address"},
	} {
		m.Refused(403, "AccessDenied", "is limited to resourceRecords, zones: this requires the scope "+c.scope, c.method,
			"/api/v2"+c.path, c.body,
			records)
	}
	m.Refused(403, "AccessDenied", "this requires the scope networks", "POST", "/api/v2/batch",
		`{"changes":[{"method":"PATCH","path":"/api/v2/networks/`+network+`","body":{"name":"x"}}]}`, records)
	m.Refused(403, "AccessDenied", "this requires the scope", "POST", "/api/v2/apply",
		`{"resources":[{"type":"Configuration","name":"another"}]}`, records)
	m.Refused(403, "AccessDenied", "the scope fleet", "GET", "/user/api/v1/fleetInstances", "", records)

	fleet := made(`["fleet"]`)
	m.Want(200, "GET", "/user/api/v1/fleetInstances", "", fleet)
	for _, path := range []string{"/networks", "/search?q=x", "/changes", "/tokens", "/status"} {
		m.Refused(403, "AccessDenied", "the scope address", "GET", "/api/v2"+path, "", fleet)
	}
	whole := made(`["address"]`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"x"}`, whole)
	m.Refused(403, "AccessDenied", "the scope fleet", "GET", "/user/api/v1/fleetInstances", "", whole)
	both := made(`["networks","fleet"]`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"y"}`, both)
	m.Want(200, "GET", "/user/api/v1/fleetInstances", "", both)

	// A link requires the scope of its source, also if it is created from its target.
	host := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"id":`+address+`}]}`)
	other := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.78","state":"STATIC"}`)
	of := made(`["addresses","deployments"]`)
	m.Refused(403, "AccessDenied", "the scope resourceRecords", "POST", "/api/v2/addresses/"+other+"/resourceRecords",
		`{"id":`+host+`,"type":"HostRecord"}`, of)
	m.Refused(403, "AccessDenied", "the scope resourceRecords", "DELETE", "/api/v2/addresses/"+address+"/resourceRecords/"+host, "", of)
	m.Want(201, "POST", "/api/v2/addresses/"+other+"/resourceRecords", `{"id":`+host+`,"type":"HostRecord"}`, records)

	// The holder of a token may revoke it.
	list := m.Want(200, "GET", "/api/v2/tokens", "", admin)
	id := m.tokenID(list, `["fleet"]`)
	m.Refused(403, "AccessDenied", "the scope address", "DELETE", "/api/v2/tokens/"+m.tokenID(list, `["address"]`), "", fleet)
	m.Want(204, "DELETE", "/api/v2/tokens/"+id, "", fleet)
	m.Want(401, "GET", "/user/api/v1/fleetInstances", "", fleet)

	// Access tokens have the scope of their key set. A scope does not exceed the rights of the user.
	set := m.Want(201, "POST", "/api/v2/tokens", `{"name":"ks","kind":"keyset","role":"administrator","scopes":["fleet"]}`,
		admin)
	access := m.Want(200, "POST", "/v1/api/authentication/token", `{"grantType":"ClientCredentials","clientCredentials":{"clientId":"`+
		set.Text("clientId")+`","clientSecret":"`+set.Text("clientSecret")+`"}}`).Text("accessToken")
	m.Want(200, "GET", "/user/api/v1/fleetInstances", "", "Authorization: Bearer "+access)
	m.Refused(403, "AccessDenied", "the scope address", "GET", "/api/v2/networks", "", "Authorization: Bearer "+access)
	hers := m.Want(201, "POST", "/api/v2/tokens", `{"name":"h","role":"administrator","scopes":["networks"]}`, own).Text("token")
	m.Want(404, "PATCH", "/api/v2/networks/"+network, `{"name":"z"}`, "Authorization: Bearer "+hers)

	for _, wrong := range []string{`["network"]`, `[""]`, `"networks"`, `[1]`, `["tokens"]`, `["users"]`,
		`["transactions"]`, `[]`, `["networks",""]`} {
		m.Refused(400, "InvalidResourceFieldValue", "scopes", "POST", "/api/v2/tokens", `{"name":"w","scopes":`+wrong+`}`, admin)
	}
	list = m.Want(200, "GET", "/api/v2/tokens", "", admin)
	if !strings.Contains(string(list.Body), `"scopes":["resourceRecords","zones"]`) {
		t.Errorf("the list does not say what tokens are good for: %s", list.Body)
	}
}

// TestTokensAreInTheHistory checks that the history and its chain contain the creation and revocation of tokens and key sets, with the
// user. They cannot be undone.
func TestTokensAreInTheHistory(t *testing.T) {
	m := startAlone(t)
	_, admin := m.session()
	says := func(operation, description, comment string) string {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/transactions/"+m.LastTransaction(), "")
		if r.Text("operation") != operation || r.Text("description") != description || r.Text("comment") != comment ||
			r.Text("principal") != "admin" || !strings.HasPrefix(r.Text("credential"), "session ") || r.Text("remoteAddress") != "127.0.0.1" {
			t.Errorf("the history says %s, want %s %q", r.Body, operation, description)
		}
		return r.Text("id")
	}
	made := m.Want(201, "POST", "/api/v2/tokens", `{"name":"ci","role":"administrator"}`, admin, "x-bcn-change-control-comment: for the build")
	id := made.Text("id")
	number := says("ADD_TOKEN", `Made the bearer token "ci" (`+id+`) of admin, administrator for everything`, "for the build")
	m.Refused(409, "UndoConflict", "did not change a resource", "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+number+`}`)
	m.Want(204, "DELETE", "/api/v2/tokens/"+id, "", admin)
	revoked := says("REVOKE_TOKEN", `Revoked the bearer token "ci" (`+id+`) of admin`, "")
	m.Want(204, "DELETE", "/api/v2/tokens/"+id, "", admin) // which changes nothing
	if now := m.LastTransaction(); now != revoked {
		t.Errorf("revoked again, that is transaction %s", now)
	}
	set := m.Want(201, "POST", "/api/v2/tokens", `{"name":"fleet","kind":"keyset","scopes":["fleet"]}`, admin).Text("id")
	before := says("ADD_KEY_SET", `Made the key set "fleet" (`+set+`) of admin, analyst for fleet`, "")
	m.Refused(400, "InvalidHeaderValue", "x-bcn-change-control-comment", "POST", "/api/v2/tokens", `{"name":"x"}`, admin,
		"x-bcn-change-control-comment: "+strings.Repeat("x", 5000))
	m.Refused(400, "InvalidResourceFieldValue", "expires", "POST", "/api/v2/tokens", `{"name":"x","expires":"never"}`, admin)
	m.Refused(404, "ResourceNotFound", "", "DELETE", "/api/v2/tokens/nothing", "", admin)
	if now := m.LastTransaction(); now != before {
		t.Errorf("nothing was changed, and that is transaction %s", now)
	}
	if text := string(m.Want(200, "GET", "/api/v2/transactions", "").Body); strings.Contains(text, made.Text("token")) {
		t.Error("the history has a token")
	}
	m.Verify()
}

// tokenID gives the number of the first token of a list that has some scopes.
func (m *manager) tokenID(list reply, scopes string) string {
	m.T.Helper()
	for i := range list.Count() {
		at := fmt.Sprintf("data.%d.", i)
		if raw, err := json.Marshal(list.Get(at + "scopes")); err == nil && string(raw) == scopes {
			return list.Text(at + "id")
		}
	}
	m.T.Fatalf("no token is good for %s: %s", scopes, list.Body)
	return ""
}

// TestTokenPaths checks that paths beside those of tokens and the status are answered by the address API: with its errors, and without a
// redirect.
func TestTokenPaths(t *testing.T) {
	m := startAlone(t)
	for _, path := range []string{"/api/v2/tokens/a/b", "/api/v2/tokens//a", "/api/v2/tokens/..", "/api/v2/tokens/a%2Fb",
		"/api/v2/status/x", "/api/v2//tokens"} {
		if r := m.Do("GET", path, ""); r.StatusCode != 404 || r.Text("message") == "" || r.Get("brief") != nil {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.Body)
		}
	}
	for path, allow := range map[string]string{"/api/v2/tokens": "GET, HEAD, OPTIONS, POST", "/api/v2/tokens/x": "DELETE, OPTIONS",
		"/api/v2/status": "GET, HEAD, OPTIONS"} {
		if r := m.Do("PUT", path, "{}"); r.StatusCode != 405 || r.Header.Get("Allow") != allow {
			t.Errorf("%s: %d, Allow %q, want %q", path, r.StatusCode, r.Header.Get("Allow"), allow)
		}
	}
}
