package server

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/authntest"

	"github.com/crewjam/saml"
	"software.sslmate.com/src/go-pkcs12"
)

// samlStage is a manager that an identity provider knows.
type samlStage struct {
	*manager
	p        *authntest.IdentityProvider
	sso      string
	settings string
}

func startSAML(t *testing.T) *samlStage {
	t.Helper()
	m := startAlone(t)
	settings := "/api/v2/settings/" + m.Want(200, "GET", "/api/v2/settings?"+filter("type:'SAMLServiceProviderSettings'"),
		"").Text("data.0.id")
	host := strings.TrimPrefix(m.URL(), "http://")
	if r := m.Want(200, "PATCH", settings, `{"addressManagerFqdn":"`+host+`"}`, apitest.MergePatch); r.Text("consumeUrl") != m.URL()+"/saml/consume" ||
		r.Text("metadataUrl") != m.URL()+"/saml/metadata" || r.Text("logoutUrl") != m.URL()+"/saml/logout" {
		t.Errorf("the settings are %s", r.Body)
	}
	p := authntest.NewIdentityProvider(t, m.Want(200, "GET", "/saml/metadata", "", "Authorization:").Body)
	sso := m.ID("/api/v2/authenticators", `{"type":"SAMLIdentityProvider","name":"harbour id","enabled":true,"groupAttribute":"eduPersonAffiliation",`+
		`"emailAttribute":"mail","signOnUrl":"https://idp.example/sso","logoutUrl":"https://idp.example/logout","entityId":"https://idp.example/metadata",`+
		`"signingCertificate":"`+p.Signer()+`"}`)
	m.ID("/api/v2/groups", `{"name":"netops","groupType":"SSO","authenticator":{"id":`+sso+`}}`)
	return &samlStage{m, p, sso, settings}
}

// post sends a form as the page of another site has a browser do, and gives where the browser is sent on to.
func (s *samlStage) post(path string, form url.Values) *http.Response {
	s.T.Helper()
	r, err := http.NewRequestWithContext(s.T.Context(), http.MethodPost, s.URL()+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.T.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://idp.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.T.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		s.T.Fatal(err)
	}
	return answer
}

// send sends a browser to the provider, and gives where, with the cookie that the browser keeps.
func (s *samlStage) send() (to, cookie string) {
	s.T.Helper()
	sent := s.visit("/sign-in/" + s.sso)
	if sent.StatusCode != 303 || !strings.HasPrefix(sent.Header.Get("Location"), "https://idp.example/sso?SAMLRequest=") {
		s.T.Fatalf("people are sent to %d %s", sent.StatusCode, sent.Header.Get("Location"))
	}
	cookie, _, _ = strings.Cut(sent.Header.Get("Set-Cookie"), ";")
	return sent.Header.Get("Location"), cookie
}

// arrive sends the form, and returns the target of the redirect and the session cookie.
func (s *samlStage) arrive(posted *http.Response, cookie string) (to, session string) {
	s.T.Helper()
	to = posted.Header.Get("Location")
	if posted.StatusCode != 303 || !strings.HasPrefix(to, "/saml/consume?arrived=") {
		return to, ""
	}
	in := s.visit(to, "Cookie", cookie)
	for _, set := range in.Header.Values("Set-Cookie") {
		if value, _, _ := strings.Cut(set, ";"); strings.HasPrefix(value, "portolan=") {
			session = value
		}
	}
	return in.Header.Get("Location"), session
}

var carol = saml.Session{NameID: "carol", UserEmail: "carol@example.net", Groups: []string{"staff", "netops"}}

// TestPeopleSignInBySAML checks that users sign in at a SAML identity provider and sign out there.
func TestPeopleSignInBySAML(t *testing.T) {
	s := startSAML(t)
	to, cookie := s.send()
	to, session := s.arrive(s.post("/saml/consume", s.p.Answer(t, to, carol, nil)), cookie)
	if to != "/" || session == "" {
		t.Fatalf("who was let in comes to %s", to)
	}
	as := "Cookie: " + session
	current := s.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", as)
	seen := s.Want(200, "GET", "/api/v2/sessions/"+current.Text("id"), "")
	if seen.Text("user.name") != "carol" || seen.Text("authenticator.name") != "harbour id" {
		t.Errorf("the session is %s", seen.Body)
	}
	user := s.Want(200, "GET", "/api/v2/users/"+seen.Text("user.id"), "")
	if groups := s.Want(200, "GET", "/api/v2/users/"+user.Text("id")+"/groups", ""); groups.Text("data.0.name") != "netops" ||
		groups.Text("count") != "1" ||
		user.Text("email") != "carol@example.net" {
		t.Errorf("the user is %s, in %s", user.Body, groups.Body)
	}
	if r := s.Want(200, "GET", "/sign-out", "", "Authorization:", as); !strings.HasPrefix(r.Text("to"),
		"https://idp.example/logout?SAMLRequest=") {
		t.Errorf("they sign out at %s", r.Body)
	}
	if r := s.Want(200, "GET", "/sign-out", ""); r.Text("to") != "" {
		t.Errorf("the administrator signs out at %s", r.Body)
	}
	s.Want(401, "GET", "/sign-out", "", "Authorization:")
	// A user who signed out at the provider is signed out here.
	if r := s.post("/saml/logout", s.p.SignOut(t, "carol", false)); r.Header.Get("Location") != "/#refused=InvalidAuthorizationCredentials" {
		t.Errorf("an unsigned request to sign out leads to %s", r.Header.Get("Location"))
	}
	s.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", as)
	// A replayed sign-out request is refused.
	if r := s.post("/saml/logout", s.p.SignOutAt(t, "carol", true, time.Now().Add(-70*time.Second))); !strings.HasPrefix(
		r.Header.Get("Location"), "https://idp.example/logout?SAMLResponse=") {
		t.Errorf("a request that is sent again leads to %s", r.Header.Get("Location"))
	}
	s.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", as)
	if r := s.post("/saml/logout", s.p.SignOut(t, "carol", true)); !strings.HasPrefix(r.Header.Get("Location"),
		"https://idp.example/logout?SAMLResponse=") {
		t.Errorf("a request to sign out leads to %s", r.Header.Get("Location"))
	}
	s.Want(401, "GET", "/api/v2/sessions/current", "", "Authorization:", as)
	if r := s.post("/saml/logout", url.Values{"SAMLResponse": {"x"}}); r.Header.Get("Location") != "/" {
		t.Errorf("an answer leads to %s", r.Header.Get("Location"))
	}
	// A password of theirs is not kept here, and the group is the provider's to fill.
	s.Refused(400, "AuthenticatorMismatch", "password", "PATCH", "/api/v2/users/"+user.Text("id"), `{"password":"a long password"}`)
	s.Want(200, "PATCH", "/api/v2/authenticators/"+s.sso, `{"enabled":false}`)
	if r := s.visit("/sign-in/" + s.sso); r.Header.Get("Location") != "/#refused=ResourceNotFound" {
		t.Errorf("one that is disabled leads to %s", r.Header.Get("Location"))
	}
	s.Verify()
}

// TestHostileSAML checks that forged, wrapped, replayed and foreign SAML responses are refused.
func TestHostileSAML(t *testing.T) {
	s := startSAML(t)
	stranger := authntest.NewIdentityProvider(t, s.Want(200, "GET", "/saml/metadata", "").Body)
	wrapped := func(place func(evil, signed, response string) string) func(string) string {
		return func(response string) string {
			signed := authntest.ReadAssertion(response)
			evil := strings.Replace(strings.ReplaceAll(signed, ">carol<", ">admin<"), ` ID="`, ` ID="evil-`, 1)
			from, to := strings.Index(evil, "<ds:Signature"), strings.Index(evil, "</ds:Signature>")
			if from >= 0 && to > from {
				evil = evil[:from] + evil[to+len("</ds:Signature>"):]
			}
			return place(evil, signed, response)
		}
	}
	for name, c := range map[string]struct {
		change func(*saml.Assertion)
		edit   func(string) string
		by     *authntest.IdentityProvider
		who    saml.Session
		relay  string
		cookie func(string) string
	}{
		"begun elsewhere":      {cookie: func(string) string { return "" }},
		"another browser's":    {cookie: func(string) string { _, other := s.send(); return other }},
		"another state":        {relay: "guessed"},
		"signed by a stranger": {by: stranger},
		"another name":         {edit: func(x string) string { return strings.Replace(x, ">carol<", ">admin<", 1) }},
		"unsigned": {edit: func(x string) string {
			for {
				from, to := strings.Index(x, "<ds:Signature"), strings.Index(x, "</ds:Signature>")
				if from < 0 || to < from {
					return x
				}
				x = x[:from] + x[to+len("</ds:Signature>"):]
			}
		}},
		"not asked for": {edit: func(x string) string { return strings.ReplaceAll(x, "InResponseTo=", "Was=") }},
		"for another audience": {change: func(a *saml.Assertion) {
			a.Conditions.AudienceRestrictions[0].Audience.Value = "https://evil.example/saml/metadata"
		}},
		"for another recipient": {change: func(a *saml.Assertion) {
			a.Subject.SubjectConfirmations[0].SubjectConfirmationData.Recipient = "https://evil.example/saml/consume"
		}},
		"an answer to another": {change: func(a *saml.Assertion) {
			a.Subject.SubjectConfirmations[0].SubjectConfirmationData.InResponseTo = "id-1"
		}},
		"an answer without a request": {change: func(a *saml.Assertion) {
			a.Subject.SubjectConfirmations[0].SubjectConfirmationData.InResponseTo = ""
		}},
		"too old": {change: func(a *saml.Assertion) {
			past := time.Now().Add(-time.Hour)
			a.IssueInstant, a.Conditions.NotOnOrAfter = past, past
			a.Subject.SubjectConfirmations[0].SubjectConfirmationData.NotOnOrAfter = past
		}},
		"another issuer's":     {change: func(a *saml.Assertion) { a.Issuer.Value = "https://evil.example" }},
		"a name for this time": {change: func(a *saml.Assertion) { a.Subject.NameID.Format = string(saml.TransientNameIDFormat) }},
		"no name":              {change: func(a *saml.Assertion) { a.Subject.NameID.Value = "" }},
		"in no group":          {who: saml.Session{NameID: "dave", Groups: []string{"staff"}}},
		"the administrator":    {who: saml.Session{NameID: "admin", Groups: []string{"netops"}}},
		"a name of spaces":     {who: saml.Session{NameID: " ", Groups: []string{"netops"}}},
		"an entity": {edit: func(x string) string {
			return `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>` + strings.Replace(x, ">carol<", ">&b;<", 1)
		}},
		"no XML": {edit: func(string) string { return "<x" }},
		"wrapped, the evil one first": {edit: wrapped(func(evil, signed, response string) string {
			return strings.Replace(response, signed, evil+signed, 1)
		})},
		"wrapped, the evil one last": {edit: wrapped(func(evil, signed, response string) string {
			return strings.Replace(response, signed, signed+evil, 1)
		})},
		"wrapped, the signed one in the evil one": {edit: wrapped(func(evil, signed, response string) string {
			return strings.Replace(response, signed, strings.Replace(evil, "</saml:Assertion>", signed+"</saml:Assertion>", 1), 1)
		})},
		"wrapped, the signed one aside": {edit: wrapped(func(evil, signed, response string) string {
			return strings.Replace(response, signed, "<samlp:Extensions>"+signed+"</samlp:Extensions>"+evil, 1)
		})},
		"wrapped, the signed one in its signature": {edit: wrapped(func(evil, signed, response string) string {
			from, to := strings.Index(signed, "<ds:Signature"), strings.Index(signed, "</ds:Signature>")
			if from < 0 || to < from {
				t.Fatal("the assertion is not signed")
			}
			bare := signed[:from] + signed[to+len("</ds:Signature>"):]
			signature := signed[from:to] + "<ds:Object>" + bare + "</ds:Object></ds:Signature>"
			return strings.Replace(response, signed, strings.Replace(evil, "<saml:Subject>", signature+"<saml:Subject>", 1), 1)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			to, cookie := s.send()
			by, who := s.p, c.who
			if c.by != nil {
				by = c.by
			}
			if who.NameID == "" {
				who = carol
			}
			form := by.Answer(t, to, who, c.change)
			if c.edit != nil {
				form = authntest.Edited(t, form, c.edit)
			}
			if c.relay != "" {
				form.Set("RelayState", c.relay)
			}
			if c.cookie != nil {
				cookie = c.cookie(cookie)
			}
			if to, session := s.arrive(s.post("/saml/consume", form), cookie); session != "" || to != "/#refused=InvalidAuthorizationCredentials" {
				t.Errorf("leads to %s, with the session %q", to, session)
			}
		})
	}
	// A comment does not cut a name short (CVE-2017-11427): the signature does not cover it.
	to, cookie := s.send()
	form := authntest.Edited(t, s.p.Answer(t, to, saml.Session{NameID: "carol.evil", Groups: []string{"netops"}}, nil), func(x string) string {
		return strings.Replace(x, ">carol.evil<", ">carol<!---->.evil<", 1)
	})
	if to, session := s.arrive(s.post("/saml/consume", form), cookie); session != "" {
		current := s.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", "Cookie: "+session)
		if r := s.Want(200, "GET", "/api/v2/sessions/"+current.Text("id"), ""); r.Text("user.name") != "carol.evil" {
			t.Errorf("a comment in a name leads to %s, as %s", to, r.Text("user.name"))
		}
	}
	// A response is not valid twice, nor in another browser.
	to, cookie = s.send()
	form = s.p.Answer(t, to, carol, nil)
	posted := s.post("/saml/consume", form)
	in := s.visit(posted.Header.Get("Location"), "Cookie", cookie)
	cleared := false
	for _, set := range in.Header.Values("Set-Cookie") {
		cleared = cleared || strings.HasPrefix(set, "portolan-flow=;")
	}
	if in.Header.Get("Location") != "/" || !cleared {
		t.Errorf("it leads to %s, with %v", in.Header.Get("Location"), in.Header.Values("Set-Cookie"))
	}
	if again := s.visit(posted.Header.Get("Location"), "Cookie", cookie); again.Header.Get("Location") !=
		"/#refused=InvalidAuthorizationCredentials" {
		t.Errorf("the same answer, with the same cookie, leads to %s", again.Header.Get("Location"))
	}
	_, other := s.send()
	if to, session := s.arrive(s.post("/saml/consume", form), other); session != "" {
		t.Errorf("replayed in another browser it leads to %s", to)
	}
	for _, form := range []url.Values{{}, {"SAMLResponse": {"!"}}, {"SAMLResponse": {base64.StdEncoding.EncodeToString([]byte("<a/>"))}},
		{"SAMLResponse": {strings.Repeat("A", 2<<20)}}} {
		if r := s.post("/saml/consume", form); r.Header.Get("Location") != "/#refused=InvalidAuthorizationCredentials" {
			t.Errorf("a form of nothing leads to %d %s", r.StatusCode, r.Header.Get("Location"))
		}
	}
	if r := s.visit("/saml/consume?arrived=e30", "Cookie", other); r.Header.Get("Location") != "/#refused=InvalidAuthorizationCredentials" {
		t.Errorf("a made-up arrival leads to %s", r.Header.Get("Location"))
	}
	if r := s.post("/saml/logout", stranger.SignOut(t, "carol",
		true)); r.Header.Get("Location") != "/#refused=InvalidAuthorizationCredentials" {
		t.Errorf("a stranger's request to sign out leads to %s", r.Header.Get("Location"))
	}
	s.Want(405, "DELETE", "/saml/consume", "")
	s.Want(405, "POST", "/saml/metadata", "")
	s.Verify()
}

// TestSettingsOfSAML checks that the settings of SAML have an effect: names, keys, encryption. Impossible settings are refused.
func TestSettingsOfSAML(t *testing.T) {
	s := startSAML(t)
	key, certificate := authntest.KeyPair(t)
	store, err := pkcs12.Modern.Encode(key, certificate, nil, "hush")
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(store)
	s.Refused(400, "InvalidResourceFieldValue", "encryptionEnabled", "PATCH", s.settings, `{"encryptionEnabled":true}`, apitest.MergePatch)
	s.Refused(400, "InvalidResourceFieldValue", "signingEnabled", "PATCH", s.settings, `{"signingEnabled":true}`, apitest.MergePatch)
	s.Refused(400, "InvalidResourceFieldValue", "keyStore", "PATCH", s.settings, `{"keyStore":"`+text+`","keyStorePassword":"guessed"}`, apitest.MergePatch)
	s.Refused(400, "InvalidResourceFieldValue", "keyStore", "PATCH", s.settings, `{"keyStore":"!"}`, apitest.MergePatch)
	s.Refused(400, "InvalidResourceFieldValue", "serviceKey", "PATCH", s.settings, `{"serviceKey":"rubbish"}`, apitest.MergePatch)
	s.Refused(400, "UnsupportedResourceFieldValue", "nameIdFormat", "PATCH", s.settings, `{"nameIdFormat":"TRANSIENT"}`, apitest.MergePatch)
	for _, host := range []string{"", "https://x", "x/y", "a b", ":80", "u@x"} {
		s.Refused(400, "InvalidResourceFieldValue", "addressManagerFqdn", "PATCH", s.settings, `{"addressManagerFqdn":`+apitest.Quoted(host)+`}`, apitest.MergePatch)
	}
	r := s.Want(200, "PATCH", s.settings, `{"keyStore":"`+text+`","keyStorePassword":"hush","encryptionEnabled":true,"nameIdFormat":"EMAIL_ADDRESS",`+
		`"organizationName":"Harbour Authority","organizationUrl":"https://harbour.example","contactName":"Ada","contactEmail":"ada@harbour.example"}`, apitest.MergePatch)
	if strings.Contains(string(r.Body), text[:40]) || strings.Contains(string(r.Body), "PRIVATE") || r.Get("serviceKey") != nil {
		t.Errorf("the settings show their key: %s", r.Body)
	}
	s.Want(200, "PUT", s.settings, string(s.Want(200, "GET", s.settings, "").Body))
	metadata := s.Want(200, "GET", "/saml/metadata", "").Body
	if strings.Contains(string(metadata), `use="signing"`) {
		t.Errorf("it says that its messages are signed, which they are not: %s", metadata)
	}
	for _, word := range []string{`use="encryption"`, "Harbour Authority", "mailto:ada@harbour.example", "emailAddress", s.URL() + "/saml/logout"} {
		if !strings.Contains(string(metadata), word) {
			t.Errorf("the metadata lacks %s: %s", word, metadata)
		}
	}
	// An assertion that is not encrypted is not taken any more; one that is, is.
	to, cookie := s.send()
	if to, session := s.arrive(s.post("/saml/consume", s.p.Answer(t, to, carol, nil)), cookie); session != "" || to == "/" {
		t.Errorf("one that is not encrypted leads to %s", to)
	}
	s.Want(200, "PATCH", s.settings, `{"signingEnabled":true}`, apitest.MergePatch)
	s.p.Learn(t, s.Want(200, "GET", "/saml/metadata", "").Body)
	to, cookie = s.send()
	if !strings.Contains(to, "&Signature=") {
		t.Errorf("the request is not signed: %s", to)
	}
	if to, session := s.arrive(s.post("/saml/consume", s.p.Answer(t, to, carol, nil)), cookie); session == "" || to != "/" {
		t.Errorf("one that is encrypted leads to %s", to)
	}
	for field, body := range map[string]string{"entityId": `{"type":"SAMLIdentityProvider","name":"again","signOnUrl":"https://idp.example/sso","entityId":"https://idp.example/metadata","signingCertificate":"` +
		s.p.Signer() + `"}`} {
		s.Refused(409, "ResourceConflictsWithOther", field, "POST", "/api/v2/authenticators", body)
	}
	other := func(members string) string {
		return `{"type":"SAMLIdentityProvider","name":"other","entityId":"https://other.example"` + members + `}`
	}
	s.Refused(400, "InvalidUrlScheme", "signOnUrl", "POST", "/api/v2/authenticators", other(`,"signOnUrl":"http://idp.example/sso","signingCertificate":"`+s.p.Signer()+`"`))
	s.Refused(400, "InvalidUrlValue", "logoutUrl", "POST", "/api/v2/authenticators", other(`,"signOnUrl":"https://idp.example/sso","logoutUrl":"x","signingCertificate":"`+s.p.Signer()+`"`))
	s.Refused(400, "InvalidX509CertificateValue", "signingCertificate", "POST", "/api/v2/authenticators", other(`,"signOnUrl":"https://idp.example/sso","signingCertificate":"x"`))
	s.Refused(400, "AuthenticatorMismatch", "authenticator", "POST", "/api/v2/groups", `{"name":"x","groupType":"LDAP","authenticator":{"id":`+s.sso+`}}`)
	s.Verify()
}
