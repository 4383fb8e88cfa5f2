package server

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/authntest"
)

// anIssuer is a certificate of an issuer, good until 2126.
const anIssuer = "MIIBeTCCAR+gAwIBAgIUHJz4UiXrWCkfcbexcrpRJs2cRO8wCgYIKoZIzj0EAwIwETEPMA0GA1UEAwwGcGVvcGxlMCAXDTI2MTEyNjEwMzYwNF" +
	"oYDzIxMjYxMTAyMTAzNjA0WjARMQ8wDQYDVQQDDAZwZW9wbGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQKWWfrRmDTNACeGp8nIt0mHUcz" +
	"LDKbKwqd69/yKxOEpPIYIw0YbmClV5XIHSkDLg72irxBvFppVMsTSnoX+NQXo1MwUTAdBgNVHQ4EFgQUziJHNoQ5X8dZO1eypyBje06usKMwHw" +
	"YDVR0jBBgwFoAUziJHNoQ5X8dZO1eypyBje06usKMwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiAJncZVou1WDuAaOTW7F6vC" +
	"dC6yGK5YWAVIv7X53Ri3IgIhAIZ4l2vxC+s2HgL7ahY9Ur3tflgU2IaEFIuVn5cwYA6z"

// people issues certificates and answers OCSP requests for them.
type people struct {
	t           *testing.T
	key         crypto.Signer
	certificate *x509.Certificate
	url         string
	// status is the status of all certificates. old makes the answers outdated, mute makes the responder silent.
	status    atomic.Int64
	old, mute atomic.Bool
	n         int64
}

func newPeople(t *testing.T) *people {
	t.Helper()
	p := &people{t: t}
	p.certificate, p.key = authntest.Issue(t, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "people"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}, nil, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		asked, fault := ocsp.ParseRequest(body)
		if err != nil || fault != nil || p.mute.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		now := time.Now()
		if p.old.Load() {
			now = now.Add(-24 * time.Hour)
		}
		answer, err := ocsp.CreateResponse(p.certificate, p.certificate, ocsp.Response{Status: int(p.status.Load()),
			SerialNumber: asked.SerialNumber, ThisUpdate: now.Add(-time.Minute), NextUpdate: now.Add(time.Hour)}, p.key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(answer)
	}))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// of returns a certificate for a name.
func (p *people) of(name string, change func(*x509.Certificate)) tls.Certificate {
	p.t.Helper()
	p.n++
	template := &x509.Certificate{SerialNumber: big.NewInt(100 + p.n), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(template)
	}
	certificate, key := authntest.Issue(p.t, template, p.certificate, p.key)
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// TestSigningInByCertificate checks that a user who requires a certificate signs in with it, and in no other way.
func TestSigningInByCertificate(t *testing.T) {
	apitest.Slow(t)
	if apitest.UnderRace {
		t.Skip("one client, and one request after another")
	}
	issuer := startOnce(t)
	dir := t.TempDir()
	pair, err := issuer.authority.ServerCertificate("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := pemFiles(t, pair)
	for name, text := range map[string]string{"cert.pem": certificate, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := startOnce(t, func(o *Options) { o.TLSCert, o.TLSKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem") })
	trusting := &tls.Config{RootCAs: issuer.authority.Pool(), MinVersion: tls.VersionTLS12}
	m.http = &http.Client{Transport: &http.Transport{TLSClientConfig: trusting}}
	p, stranger := newPeople(t), newPeople(t)
	const user = `"email":"a@example.net","accessType":"GUI_AND_API","securityPrivilege":"NO_ACCESS"`
	m.Refused(400, "InvalidResourceFieldValue", "X509Authenticator", "POST", "/api/v2/users",
		`{"name":"ada","password":"`+adminPassword+`","x509Required":true,`+user+`}`)
	authenticator := func(more string) string {
		return `{"type":"X509Authenticator","name":"cards","ldapUserMatchOption":"NONE","primaryServerUrl":"` + p.url + `","caCertificates":["` +
			base64.StdEncoding.EncodeToString(p.certificate.Raw) + `"]` + more + `}`
	}
	m.Refused(400, "UnsupportedResourceFieldValue", "ldapUserMatchOption", "POST", "/api/v2/authenticators",
		strings.Replace(authenticator(""), "NONE", "STRICT_DN_MATCH", 1))
	m.Refused(400, "InvalidX509CertificateValue", "caCertificates", "POST", "/api/v2/authenticators",
		strings.Replace(authenticator(""), `"caCertificates":["`, `"caCertificates":["x`, 1))
	m.Refused(400, "InvalidUrlValue", "primaryServerUrl", "POST", "/api/v2/authenticators",
		strings.Replace(authenticator(""), p.url, "ftp://x", 1))
	cards := m.ID("/api/v2/authenticators", authenticator(""))
	m.Refused(409, "ResourceConflictsWithOther", "already", "POST", "/api/v2/authenticators",
		strings.Replace(authenticator(""), "cards", "more", 1))
	ada := m.ID("/api/v2/users", `{"name":"ada","password":"`+adminPassword+`","x509Required":true,`+user+`}`)
	m.ID("/api/v2/users", `{"name":"bob","password":"`+adminPassword+`",`+user+`}`)
	apitest.Eventually(t, "browsers are asked for certificates", func() bool { return m.Identity.WantsCertificates(t.Context()) })
	sent := func(header string, shown ...tls.Certificate) (to, session string) {
		t.Helper()
		config := trusting.Clone()
		config.Certificates = shown
		transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.URL()+"/sign-in/"+cards, nil)
		if err != nil {
			t.Fatal(err)
		}
		if name, value, ok := strings.Cut(header, ": "); ok {
			r.Header.Set(name, value)
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		for _, set := range answer.Header.Values("Set-Cookie") {
			if value, _, _ := strings.Cut(set, ";"); strings.HasPrefix(value, "__Host-portolan=") {
				session = value
			}
		}
		return answer.Header.Get("Location"), session
	}
	show := func(shown ...tls.Certificate) (to, session string) { t.Helper(); return sent("", shown...) }
	to, session := show(p.of("ada", nil))
	if to != "/" || session == "" {
		t.Fatalf("ada comes to %s", to)
	}
	if r := m.Want(200, "GET", "/api/v2/sessions/current", "", "Authorization:", "Cookie: "+session); r.Text("user.name") != "ada" {
		t.Errorf("the session is %s", r.Body)
	}
	const refused = "/#refused=InvalidAuthorizationCredentials"
	changed := func(change func(*x509.Certificate)) []tls.Certificate { return []tls.Certificate{p.of("ada", change)} }
	for name, c := range map[string]struct {
		shown []tls.Certificate
		want  string
	}{
		"none":                    {nil, "/#refused=CertificateRequired"},
		"a stranger's":            {[]tls.Certificate{stranger.of("ada", nil)}, refused},
		"who needs none":          {[]tls.Certificate{p.of("bob", nil)}, refused},
		"nobody":                  {[]tls.Certificate{p.of("eve", nil)}, refused},
		"without a name":          {[]tls.Certificate{p.of("", nil)}, refused},
		"of a server":             {changed(func(c *x509.Certificate) { c.ExtKeyUsage[0] = x509.ExtKeyUsageServerAuth }), refused},
		"one that has ended":      {changed(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), refused},
		"one that is still to be": {changed(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), refused},
		"one that issues":         {changed(func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }), refused},
		"the issuer's, with its public certificate": {[]tls.Certificate{{Certificate: [][]byte{p.certificate.Raw}, PrivateKey: p.key}}, refused},
	} {
		if to, session := show(c.shown...); session != "" || to != c.want {
			t.Errorf("%s: %s", name, to)
		}
	}
	good := p.of("ada", nil)
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"} {
		if to, session := sent(header, good); session != "" || to != "/#refused=CrossOriginRequest" {
			t.Errorf("%s: %s", header, to)
		}
	}
	for name, set := range map[string]func(){"revoked": func() { p.status.Store(ocsp.Revoked) },
		"unknown": func() { p.status.Store(ocsp.Unknown) }} {
		set()
		if to, session := show(good); session != "" || to != refused {
			t.Errorf("%s: %s", name, to)
		}
	}
	p.status.Store(ocsp.Good)
	for name, set := range map[string]func(bool){"an old answer": p.old.Store, "no answer": p.mute.Store} {
		set(true)
		if to, session := show(good); session != "" || to != "/#refused=AuthenticatorUnavailable" {
			t.Errorf("%s: %s", name, to)
		}
		set(false)
	}
	// In no other way; tokens that ada has made go on.
	m.Want(401, "GET", "/api/v2/networks", "", apitest.BasicAuth("ada", adminPassword))
	m.Want(401, "POST", "/api/v2/sessions", `{"username":"ada","password":"`+adminPassword+`"}`, "Authorization:", "Content-Type: application/json")
	// The setting of users stays, and one administrator does not require a certificate.
	m.Refused(403, "ResourceInUse", "x509Required", "DELETE", "/api/v2/authenticators/"+cards, "")
	admin := m.Want(200, "GET", "/api/v2/users?"+filter("name:'admin'"), "").Text("data.0.id")
	m.Refused(403, "ResourceInUse", "last administrator", "PATCH", "/api/v2/users/"+admin, `{"x509Required":true}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/users/"+ada, `{"x509Required":false}`, apitest.MergePatch)
	m.Want(200, "GET", "/api/v2/users/"+ada, "", apitest.BasicAuth("ada", adminPassword))
	m.Want(204, "DELETE", "/api/v2/authenticators/"+cards, "")
	m.Verify()
}
