package server

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// healthOver gets a manager's /healthz over TLS and returns the certificate of the manager.
func healthOver(t *testing.T, m *manager, config *tls.Config) (*tls.ConnectionState, error) {
	t.Helper()
	_, port, _ := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(m.URL(), "[::]", "any"), "https://"), ":")
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	rs, err := h.Get("https://127.0.0.1:" + port + "/healthz")
	if err != nil {
		return nil, err
	}
	_ = rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		t.Errorf("/healthz answers %d", rs.StatusCode)
	}
	return rs.TLS, nil
}

// TestListenersBeyondLoopbackUseTLS checks that listeners beyond loopback use TLS, with a certificate of the manager's own authority if
// none is configured.
func TestListenersBeyondLoopbackUseTLS(t *testing.T) {
	m := startOnce(t, func(o *Options) { o.Listen = "0.0.0.0:0" })
	if !strings.HasPrefix(m.URL(), "https://") {
		t.Fatalf("the API is served at %s", m.URL())
	}
	if _, err := healthOver(t, m, &tls.Config{RootCAs: m.authority.Pool(), MinVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("with the manager's authority: %v", err)
	}
	if _, err := healthOver(t, m, &tls.Config{MinVersion: tls.VersionTLS12}); err == nil {
		t.Error("a client that does not know the authority is content")
	}
}

// TestConfiguredCertificate checks that a configured certificate is used, also on loopback, and is reloaded when its file changes.
func TestConfiguredCertificate(t *testing.T) {
	issuer := startOnce(t)
	dir := t.TempDir()
	write := func() []byte {
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
		return pair.Certificate[0]
	}
	first := write()
	m := startOnce(t, func(o *Options) {
		o.TLSCert, o.TLSKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	})
	config := &tls.Config{RootCAs: issuer.authority.Pool(), MinVersion: tls.VersionTLS12}
	shown := func() string {
		state, err := healthOver(t, m, config)
		if err != nil {
			t.Fatal(err)
		}
		return string(state.PeerCertificates[0].Raw)
	}
	if shown() != string(first) {
		t.Error("another certificate is shown")
	}
	second := write()
	apitest.Eventually(t, "the renewed certificate", func() bool { return shown() == string(second) })
}
