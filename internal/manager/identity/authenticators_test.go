package identity_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/authntest"
	"portolan/internal/testkit/freeport"
)

// ldapBody is an authenticator for a directory, with more members.
func ldapBody(name string, d *authntest.Directory, more string) string {
	return `{"type":"LDAPAuthenticator","name":"` + name + `","hostname":"127.0.0.1","port":` + fmt.Sprint(d.Port) + `,"startTlsEnabled":true,` +
		`"caCertificate":` + apitest.Quoted(d.Certificate) + `,"adminDn":"cn=searcher,dc=example,dc=net","adminPassword":"finds people","schemaType":"OPENLDAP",` +
		`"searchBase":"dc=example,dc=net","referralPolicy":"IGNORE","aliasDereferencePolicy":"NEVER"` + more + `}`
}

// TestSigningInByADirectory checks that directory users sign in, are created if they are in a group that exists here, and get the rights of
// that group. While the directory is unavailable, only local users sign in.
func TestSigningInByADirectory(t *testing.T) {
	m := start(t)
	d := authntest.NewDirectory(t)
	const post = "/api/v2/authenticators"
	m.Refused(400, "MissingRequiredField", "adminPassword", "POST", post, `{"type":"LDAPAuthenticator","name":"x","hostname":"h","adminDn":"cn=a",`+
		`"schemaType":"OPENLDAP","searchBase":"dc=a","referralPolicy":"IGNORE","aliasDereferencePolicy":"NEVER"}`)
	m.Refused(400, "ConflictingResourceFieldValues", "startTlsEnabled", "POST", post, ldapBody("x", d, `,"sslEnabled":true`))
	m.Refused(400, "InvalidX509CertificateValue", "caCertificate", "POST", post, ldapBody("x", &authntest.Directory{Port: d.Port,
		Certificate: "x"}, ""))
	own := m.Want(200, "GET", post, "").Text("data.0.id")
	for _, body := range []string{`{"name":"x"}`, `{"type":"AddressManagerAuthenticator","name":"x"}`} {
		m.Refused(400, "InvalidResourceType", "another type", "POST", post, body)
	}
	m.Refused(400, "DeleteAuthenticatorNotAllowed", "", "DELETE", post+"/"+own, "")
	away := m.ID(post, ldapBody("away", &authntest.Directory{Port: int64(freeport.Reserve(t).Port()), Certificate: d.Certificate}, ""))
	made := m.Want(201, "POST", post, ldapBody("people", d, ""))
	if strings.Contains(string(made.Body), "finds people") || made.Get("adminPassword") != nil {
		t.Errorf("the password of the search account is shown: %s", made.Body)
	}
	people := made.Text("id")
	as := apitest.BasicAuth("carol", "carols password")
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "", as)

	// A group of the directory.
	m.Refused(400, "InvalidLdapGroupName", "name", "POST", "/api/v2/groups",
		`{"name":"cn=none,dc=example,dc=net","groupType":"LDAP","authenticator":{"id":`+people+`}}`)
	m.Refused(400, "CannotFetchGroupsFromLdapAuthenticator", "authenticator", "POST", "/api/v2/groups",
		`{"name":"cn=netops,dc=example,dc=net","groupType":"LDAP","authenticator":{"id":`+away+`}}`)
	m.Refused(400, "MissingRequiredField", "authenticator", "POST", "/api/v2/groups", `{"name":"cn=netops,dc=example,dc=net","groupType":"LDAP"}`)
	group := m.ID("/api/v2/groups", `{"name":"CN=netops, dc=example,dc=net","groupType":"LDAP","authenticator":{"id":`+people+`}}`)
	configuration := m.ID("/api/v2/configurations", `{"name":"theirs"}`)
	m.Right(group, configuration, "VIEW", "")
	if r := m.Want(200, "GET", "/api/v2/configurations", "", as); r.Count() != 1 {
		t.Errorf("carol sees %s", r.Body)
	}
	user := m.Want(200, "GET", "/api/v2/users?"+apitest.Filter("name:'carol'"), "")
	carol := user.Text("data.0.id")
	if user.Text("data.0.authenticator.name") != "people" || user.Text("data.0.email") != "carol@example.net" ||
		user.Text("data.0.securityPrivilege") != "NO_ACCESS" {
		t.Errorf("carol is %s", user.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)", ""); r.Text("data.0.principal") != "authenticator people" {
		t.Errorf("the history says %s", r.Body)
	}
	m.Refused(403, "OperationNotPermitted", "authenticator", "POST", "/api/v2/groups/"+group+"/users", `{"id":100000}`)
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "", apitest.BasicAuth("carol", "wrong"))
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "", apitest.BasicAuth("star*", "a star"))
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "", apitest.BasicAuth("*", "carols password"))
	session := m.Want(201, "POST", "/api/v2/sessions", `{"username":"carol","password":"carols password"}`, "Authorization:")
	if session.Text("user.name") != "carol" && session.Text("username") != "carol" {
		t.Errorf("the session is %s", session.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/sessions/"+session.Text("id"), ""); r.Text("authenticator.name") != "people" {
		t.Errorf("the session is %s", r.Body)
	}
	m.Refused(400, "AuthenticatorMismatch", "password", "PATCH", "/api/v2/users/"+carol, `{"password":"another one of theirs"}`)
	m.Refused(403, "ResourceInUse", "", "DELETE", post+"/"+people, "")

	// Locked here, whoever knows her elsewhere.
	m.Want(200, "PATCH", "/api/v2/users/"+carol, `{"accountLocked":true}`)
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "", as)
	m.Want(200, "PATCH", "/api/v2/users/"+carol, `{"accountLocked":false}`)

	// The last administrator who is known here stays one.
	m.Refused(403, "ResourceInUse", "last administrator", "PATCH", "/api/v2/users/100000", `{"authenticator":{"id":`+people+`}}`)

	// Another directory behind it, and then none.
	m.Want(200, "PATCH", "/api/v2/users/"+carol, `{"authenticator":{"id":`+away+`}}`)
	m.Refused(503, "AuthenticatorUnavailable", "", "GET", "/api/v2/configurations", "", as)
	m.Refused(400, "InvalidResourceFieldValue", "secondaryAuthenticator", "PATCH", post+"/"+away, `{"secondaryAuthenticator":{"id":`+own+`}}`)
	m.Refused(400, "ResourceHasCircularReference", "secondaryAuthenticator", "PATCH", post+"/"+away, `{"secondaryAuthenticator":{"id":`+away+`}}`)
	m.Want(200, "PATCH", post+"/"+away, `{"secondaryAuthenticator":{"id":`+people+`}}`)
	m.Want(200, "GET", "/api/v2/users", "", as)
	d.Stop()
	m.Want(200, "PATCH", post+"/"+away, `{"secondaryAuthenticator":null}`) // its cached answers are dropped
	m.Refused(503, "AuthenticatorUnavailable", "", "GET", "/api/v2/configurations", "", as)
	m.Want(200, "GET", "/api/v2/configurations", "", apitest.BasicAuth("admin", apitest.AdminPassword))

	// It can be deleted when no user belongs to it. Sessions do not prevent the deletion.
	m.Want(204, "DELETE", "/api/v2/groups/"+group, "")
	m.Want(204, "DELETE", post+"/"+people, "")
	if r := m.Want(200, "GET", "/api/v2/sessions/"+session.Text("id"), ""); r.Get("authenticator") != nil {
		t.Errorf("the session is %s", r.Body)
	}
	m.Verify()
}

// TestSigningInByTokens checks that tokens of an OpenID provider are accepted, identify the user by the provider's claims, and grant the
// rights of the user's groups.
func TestSigningInByTokens(t *testing.T) {
	m := start(t)
	p := authntest.NewProvider(t)
	const post = "/api/v2/authenticators"
	body := `{"type":"OAuthAuthorizationServer","name":"sso","enabled":true,"userClaim":"preferred_username","groupClaim":"groups","emailClaim":"email",` +
		`"validationMethod":"LOCAL","issuer":"` + p.URL + `","audience":"portolan","caCertificate":` + apitest.Quoted(p.Trusted()) + `}`
	m.Refused(400, "MissingRequiredField", "audience", "POST", post, strings.Replace(body, `"audience":"portolan",`, "", 1))
	m.Refused(400, "InvalidUrlScheme", "issuer", "POST", post, strings.Replace(body, p.URL, "http://10.0.0.1", 1))
	sso := m.ID(post, body)
	m.Refused(409, "ResourceConflictsWithOther", "issuer", "POST", post, strings.Replace(body, `"sso"`, `"sso2"`, 1))
	group := m.ID("/api/v2/groups", `{"name":"netops","groupType":"SSO","authenticator":{"id":`+sso+`}}`)
	configuration := m.ID("/api/v2/configurations", `{"name":"theirs"}`)
	m.Right(group, configuration, "FULL", "")
	token := func(name string, groups ...string) string {
		return "Authorization: Bearer " + p.Sign(t, map[string]any{"iss": p.URL, "aud": "portolan", "sub": name, "preferred_username": name,
			"groups": groups, "email": name + "@example.net", "exp": time.Now().Add(time.Hour).Unix()})
	}
	carol := token("carol", "netops")
	m.Want(201, "POST", "/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`, carol)
	if r := m.Want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)", ""); r.Text("data.0.user.name") != "carol" ||
		r.Text("data.0.credential") != "oauth sso" {
		t.Errorf("the history says %s", r.Body)
	}
	for name, header := range map[string]string{"in no group": token("dave", "others"), "no groups": token("dave"),
		"a local user's name": token("admin", "netops"),
		"a control character": token("da\nve", "netops"), "for others": "Authorization: Bearer " + p.Sign(t, map[string]any{"iss": p.URL,
			"aud":                "others",
			"preferred_username": "carol", "groups": []string{"netops"}, "exp": time.Now().Add(time.Hour).Unix()})} {
		if r := m.Do("GET", "/api/v2/configurations", "", header); r.StatusCode != 401 {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.Body)
		}
	}
	// Out of the group there, out of it here.
	m.Want(200, "GET", "/api/v2/configurations", "", token("carol", "others")).None(t)
	m.Want(401, "GET", "/api/v2/configurations", "", apitest.BasicAuth("carol", "carol"))
	m.Want(200, "PATCH", post+"/"+sso, `{"enabled":false}`)
	m.Want(401, "GET", "/api/v2/configurations", "", token("carol", "netops"))
	m.Verify()
}

// TestLimitsOfExternalSignIn checks the limits of external sign-ins: cached, stored and counted data of their users has no other
// effect.
func TestLimitsOfExternalSignIn(t *testing.T) {
	m := start(t)
	d, p := authntest.NewDirectory(t), authntest.NewProvider(t)
	const post = "/api/v2/authenticators"
	people := m.ID(post, ldapBody("people", d, ""))
	group := m.ID("/api/v2/groups", `{"name":"cn=netops,dc=example,dc=net","groupType":"LDAP","authenticator":{"id":`+people+`}}`)
	configuration := m.ID("/api/v2/configurations", `{"name":"theirs"}`)
	m.Right(group, configuration, "VIEW", "")
	as := apitest.BasicAuth("carol", "carols password")
	m.Want(200, "GET", "/api/v2/configurations/"+configuration, "", as)
	carol := m.Want(200, "GET", "/api/v2/users?"+apitest.Filter("name:'carol'"), "").Text("data.0.id")

	// Secrets are not sent to a host that another user has set.
	m.Refused(400, "MissingRequiredField", "adminPassword", "PATCH", post+"/"+people, `{"port":`+fmt.Sprint(freeport.Reserve(t).Port())+`}`)
	m.Refused(400, "MissingRequiredField", "adminPassword", "PATCH", post+"/"+people, `{"startTlsEnabled":false}`)
	m.Want(200, "PATCH", post+"/"+people, `{"startTlsEnabled":false,"adminPassword":"finds people"}`)

	// A user who gets another authenticator starts without earlier sessions.
	session := m.Want(201, "POST", "/api/v2/sessions", `{"username":"carol","password":"carols password"}`, "Authorization:")
	asSession := "Authorization: Basic " + session.Text("basicAuthenticationCredentials")
	m.Want(200, "PATCH", "/api/v2/users/"+carol, `{"authenticator":null,"password":"kept here now"}`)
	for name, header := range map[string]string{"the session from before": asSession, "the directory's password": as,
		"in other letters": apitest.BasicAuth("CAROL", "carols password")} {
		if r := m.Do("GET", "/api/v2/configurations", "", header); r.StatusCode != 401 && r.StatusCode != 429 {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.Body)
		}
	}
	m.Want(200, "GET", "/api/v2/users/"+carol+"/groups", "").None(t)
	m.Want(200, "GET", "/api/v2/configurations", "", apitest.BasicAuth("carol", "kept here now")).None(t)

	// Tokens of an issuer are only sent to that issuer, and a wrong token does not affect others.
	var asked atomic.Int64
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"active":false}`))
	}))
	defer partner.Close()
	m.ID(post, `{"type":"OAuthAuthorizationServer","name":"partner","enabled":true,"userClaim":"sub","groupClaim":"groups","emailClaim":"email",`+
		`"validationMethod":"AUTHORIZATION_SERVER","clientId":"portolan","clientSecret":"s","introspectionUrl":"`+partner.URL+`/i","audience":"portolan"}`)
	sso := m.ID(post, `{"type":"OAuthAuthorizationServer","name":"sso","enabled":true,"userClaim":"preferred_username","groupClaim":"groups",`+
		`"emailClaim":"email","validationMethod":"LOCAL","issuer":"`+p.URL+`","audience":"portolan","caCertificate":`+apitest.Quoted(p.Trusted())+`}`)
	m.ID("/api/v2/groups", `{"name":"netops","groupType":"SSO","authenticator":{"id":`+sso+`}}`)
	token := func(name string, until time.Duration) string {
		return "Authorization: Bearer " + p.Sign(t, map[string]any{"iss": p.URL, "aud": "portolan", "sub": name, "preferred_username": name,
			"groups": append(strings.Split(strings.Repeat("a long name of a group,", 300), ","), "netops"), "exp": time.Now().Add(until).Unix()})
	}
	for range 12 {
		m.Want(401, "GET", "/api/v2/configurations", "", token("dave", -time.Hour))
	}
	m.Want(200, "GET", "/api/v2/configurations", "", token("dave", time.Hour))
	if n := asked.Load(); n > 0 {
		t.Errorf("another one was asked %d times about tokens of sso", n)
	}
	for _, name := range []string{"Admin", "ADMIN", " dave", "dave ", "Dave"} {
		if r := m.Do("GET", "/api/v2/configurations", "", token(name, time.Hour)); r.StatusCode != 401 {
			t.Errorf("%q signs in: %d %s", name, r.StatusCode, r.Body)
		}
	}
	m.Want(200, "GET", "/api/v2/configurations", "", token(`x'y"`, time.Hour))

	// Valid tokens in between do not reset the limit on password guesses.
	settings := m.Want(200, "GET", "/api/v2/settings?"+apitest.Filter("type:'LoginPolicySettings'"), "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/settings/"+settings, `{"enabled":true,"failureLimit":3,"failureLimitPeriod":"PT10M","delayDuration":"PT10M"}`)
	waits := 0
	for range 12 {
		if r := m.Do("GET", "/api/v2/configurations", "", apitest.BasicAuth("admin", "wrong")); r.StatusCode == 429 {
			waits++
		}
		m.Do("GET", "/api/v2/configurations", "", token("dave", -time.Hour))
	}
	if waits < 8 {
		t.Errorf("who guesses had to wait %d times of 12", waits)
	}
	m.Verify()
}

// TestGroupsSurviveDirectoryOutage checks that users of a RADIUS server behind a directory keep their groups: the RADIUS server does not
// know any.
func TestGroupsSurviveDirectoryOutage(t *testing.T) {
	m := start(t)
	d := authntest.NewDirectory(t)
	const post = "/api/v2/authenticators"
	behind := m.ID(post, ldapBody("copy", d, `,"groupObjectClass":"person"`)) // which finds no groups
	people := m.ID(post, ldapBody("people", d, ""))
	group := m.ID("/api/v2/groups", `{"name":"cn=netops,dc=example,dc=net","groupType":"LDAP","authenticator":{"id":`+people+`}}`)
	configuration := m.ID("/api/v2/configurations", `{"name":"theirs"}`)
	m.Right(group, configuration, "VIEW", "")
	as := apitest.BasicAuth("carol", "carols password")
	m.Want(200, "GET", "/api/v2/configurations/"+configuration, "", as)
	m.Want(200, "PATCH", post+"/"+people, `{"port":`+fmt.Sprint(freeport.Reserve(t).Port())+`,"adminPassword":"finds people","secondaryAuthenticator":{"id":`+
		behind+`}}`)
	m.Want(200, "GET", "/api/v2/configurations/"+configuration, "", as)
	// While no authenticator answers, no user learns whether a password is right, and a stranger learns nothing more.
	m.Want(200, "PATCH", post+"/"+people, `{"secondaryAuthenticator":null}`)
	for _, header := range []string{as, apitest.BasicAuth("carol", "wrong"), apitest.BasicAuth("carol", "wrong again")} {
		m.Refused(503, "AuthenticatorUnavailable", "", "GET", "/api/v2/configurations", "", header)
	}
}

// TestSigningInByTACACSAndKerberos checks that users of a TACACS+ server sign in with the groups of the server, and that a Kerberos user
// signs in if the user exists here.
func TestSigningInByTACACSAndKerberos(t *testing.T) {
	m := start(t)
	const post = "/api/v2/authenticators"
	server := authntest.TACACS{Secret: "shared here", Name: "carol", Password: "carols password", Groups: []string{"group=netops"}}
	at := server.Start(t)
	body := func(more string) string {
		return `{"type":"TACACSPlusAuthenticator","name":"switches","hostname":"127.0.0.1","port":` + fmt.Sprint(at.Port()) +
			`,"sharedSecret":"shared here","authenticationProtocol":"CHAP"` + more + `}`
	}
	m.Refused(400, "MissingRequiredField", "sharedSecret", "POST", post, strings.Replace(body(""), `"sharedSecret":"shared here",`, "", 1))
	m.Refused(400, "DurationValueOutsideRange", "timeout", "POST", post, body(`,"timeout":"PT2M"`))
	m.Refused(400, "InvalidResourceFieldValue", "groupAttribute", "POST", post, body(`,"attributes":[{"name":"service","value":"portolan"}]`))
	m.Refused(400, "InvalidResourceFieldValue", "entry 0", "POST", post, body(`,"groupAttribute":"group","attributes":[{"name":"a=b","value":"c"}]`))
	switches := m.ID(post, body(`,"groupAttribute":"group"`))
	m.Refused(400, "AuthenticatorMismatch", "TACACSPlusAuthenticator", "POST", "/api/v2/groups", `{"name":"x","groupType":"TACACS_PLUS","authenticator":{"id":`+
		m.ID(post, ldapBody("people", &authntest.Directory{Port: 389}, ""))+`}}`)
	as := apitest.BasicAuth("carol", "carols password")
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "", as) // in no group that is known here
	group := m.ID("/api/v2/groups", `{"name":"netops","groupType":"TACACS_PLUS","authenticator":{"id":`+switches+`}}`)
	configuration := m.ID("/api/v2/configurations", `{"name":"theirs"}`)
	m.Right(group, configuration, "VIEW", "")
	m.Want(200, "GET", "/api/v2/configurations/"+configuration, "", as)
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "", apitest.BasicAuth("carol", "wrong"))
	m.Refused(400, "MissingRequiredField", "sharedSecret", "PATCH", post+"/"+switches, `{"hostname":"127.0.0.2"}`) // who does not know it

	realm := authntest.Kerberos(t, "daves password")
	kerberos := func(keytab string) string {
		return `{"type":"KerberosAuthenticator","name":"realm","hostname":"` + realm.At.String() + `","realm":"` + realm.Name + `"` + keytab + `}`
	}
	m.Refused(400, "MissingRequiredField", "keytab", "POST", post, kerberos(""))
	m.Refused(400, "InvalidResourceFieldValue", "keytab", "POST", post, kerberos(`,"keytab":"AAAA"`))
	m.Refused(400, "ConflictingResourceFieldValues", "keytab", "POST", post, kerberos(`,"keytab":"`+authntest.Keytab("EXAMPLE.ORG")+`"`))
	made := m.Want(201, "POST", post, kerberos(`,"keytab":"`+realm.Keytab+`"`))
	if made.Get("keytab") != nil {
		t.Errorf("the key is shown: %s", made.Body)
	}
	m.ID("/api/v2/users", `{"type":"User","name":"dave","email":"d@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","authenticator":{"id":`+
		made.Text("id")+`}}`)
	m.Want(200, "GET", "/api/v2/configurations", "", apitest.BasicAuth("dave", "daves password"))
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "", apitest.BasicAuth("dave", "wrong"))
	// A center that does not know the service's key is refused.
	m.Want(200, "PATCH", post+"/"+made.Text("id"), `{"keytab":"`+realm.Stale+`"}`)
	m.Refused(503, "AuthenticatorUnavailable", "", "GET", "/api/v2/configurations", "", apitest.BasicAuth("dave", "daves password"))
}
