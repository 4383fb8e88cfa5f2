package nameserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/zonedata"
)

// credentials returns a certificate for 127.0.0.1 with its key, in PEM, and a configuration that trusts it.
func credentials(t *testing.T) (certificate, key string, trust *tls.Config) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	der, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	trust = &tls.Config{RootCAs: x509.NewCertPool()} //nolint:gosec // a test
	trust.RootCAs.AddCert(s.Certificate())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), trust
}

// TestSecured checks that answers over TLS and HTTPS equal those over TCP, that a zone is transferred over TLS, and that invalid requests
// are rejected.
func TestSecured(t *testing.T) {
	certificate, key, trust := credentials(t)
	zone := given{name: "harbour.example.", records: harbour, transfer: []zonedata.Match{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}}
	a := start(t, nil, zone)
	plain, secure, web := freeport.Reserve(t), freeport.Reserve(t), freeport.Reserve(t)
	configuration := func(format string, args ...any) json.RawMessage {
		return fmt.Appendf(nil, `{"listen":[`+format+`],"tls":{"certificate":%q,"key":%q}}`, append(args, certificate, key)...)
	}
	if err := a.Configure(configuration(`{"address":"127.0.0.1","port":%d},{"address":"127.0.0.1","port":%d,"tls":true},`+
		`{"address":"127.0.0.1","port":%d,"https":true}`, plain.Port(), secure.Port(), web.Port())); err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg)
	m.SetQuestion("mail.harbour.example.", dns.TypeA)
	if r, _, err := (&dns.Client{Net: "tcp-tls", TLSConfig: trust}).Exchange(m, secure.String()); err != nil || len(r.Answer) != 1 {
		t.Errorf("over TLS: %v %v", r, err)
	}
	conn, err := tls.Dial("tcp", secure.String(), trust)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	axfr := new(dns.Msg)
	axfr.SetAxfr("harbour.example.")
	envelopes, err := (&dns.Transfer{Conn: &dns.Conn{Conn: conn}}).In(axfr, "")
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for e := range envelopes {
		if records += len(e.RR); e.Error != nil {
			t.Error(e.Error)
		}
	}
	if want := len(zone.entries(t)) + 1; records != want {
		t.Errorf("%d records are copied over TLS, not %d", records, want)
	}

	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}}
	ask := func(method, path, kind string, body []byte) (*http.Response, []byte) {
		t.Helper()
		rq, err := http.NewRequestWithContext(t.Context(), method, "https://"+web.String()+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		rq.Header.Set("Content-Type", kind)
		rs, err := client.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rs.Body.Close() }()
		text, err := io.ReadAll(rs.Body)
		if err != nil {
			t.Fatal(err)
		}
		return rs, text
	}
	for _, c := range []struct {
		method, path, kind string
		body               []byte
		status             int
	}{
		{"POST", webPath, webType, wire, 200}, {"GET", webPath + "?dns=" + base64.RawURLEncoding.EncodeToString(wire), "", nil, 200},
		{"POST", webPath, "text/plain", wire, 415}, {"POST", webPath, webType, wire[:5], 400},
		{"POST", webPath, webType, make([]byte, 70000), 413},
		{"GET", webPath, "", nil, 400}, {"GET", webPath + "?dns=!", "", nil, 400}, {"GET", "/", "", nil, 404},
		{"PUT", webPath, webType, wire, 405},
	} {
		rs, text := ask(c.method, c.path, c.kind, c.body)
		r := new(dns.Msg)
		if rs.StatusCode != c.status || c.status == 200 && (r.Unpack(text) != nil || len(r.Answer) != 1 ||
			rs.Header.Get("Content-Type") != webType || rs.ProtoMajor != 2 ||
			rs.Header.Get("Cache-Control") != "max-age="+fmt.Sprint(r.Answer[0].Header().Ttl)) {
			t.Errorf("%s %s is %d %v %q", c.method, c.path, rs.StatusCode, rs.Header, text)
		}
	}
	m.SetQuestion("nothing.harbour.example.", dns.TypeA)
	if wire, err = m.Pack(); err != nil {
		t.Fatal(err)
	}
	if rs, _ := ask("POST", webPath, webType, wire); rs.Header.Get("Cache-Control") != "max-age=300" {
		t.Errorf("that there is nothing is kept for %s", rs.Header.Get("Cache-Control"))
	}
	for deadline := time.Now().Add(time.Minute); len(a.Health()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(a.Health())
		}
	}

	// The transport of a listener changes.
	if err := a.Configure(configuration(`{"address":"127.0.0.1","port":%d,"tls":true}`, plain.Port())); err != nil {
		t.Fatal(err)
	}
	if r, _, err := (&dns.Client{Net: "tcp-tls", TLSConfig: trust}).Exchange(m, plain.String()); err != nil || r.Rcode != dns.RcodeNameError {
		t.Errorf("over TLS where it was plain: %v %v", r, err)
	}
}

// TestCredentials checks that keys are hidden and preserved, and required if a listener uses them.
func TestCredentials(t *testing.T) {
	certificate, key, _ := credentials(t)
	whole := json.RawMessage(fmt.Sprintf(`{"listen":[{"address":"::1","https":true}],"tls":{"certificate":%q,"key":%q}}`, certificate, key))
	shown := Kind().Hide(whole)
	if strings.Contains(string(shown), "PRIVATE") || !strings.Contains(string(shown), "CERTIFICATE") {
		t.Errorf("it is shown as %s", shown)
	}
	if err := Kind().Check(Kind().Fill(shown, whole)); err != nil {
		t.Error(err)
	}
	if claims := Kind().Claims(whole); len(claims) != 1 || claims[0] != "[::1]:443" {
		t.Errorf("it claims %v", claims)
	}
	for text, want := range map[string]string{
		string(shown): "configuration.tls.key",
		`{"listen":[{"address":"::1","tls":true}]}`:                                            "configuration.listen[0].tls",
		`{"listen":[{"address":"::1","tls":true,"https":true}]}`:                               "configuration.listen[0].https",
		strings.Replace(string(whole), `,"https":true`, ``, 1):                                 "configuration.tls",
		`{"listen":[{"address":"::1","tls":true}],"tls":{"certificate":"x","key":"y"}}`:        "configuration.tls",
		`{"listen":[{"address":"::1","port":853},{"address":"::1","tls":true}],"tls":` + "{}}": "configuration.listen[1]",
	} {
		if err := Kind().Check(json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
