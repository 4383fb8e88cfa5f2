package authn

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/manager/outbound"
	"portolan/internal/testkit/authntest"
	"portolan/internal/testkit/freeport"
)

// counted counts the connections and packets to a port of 127.0.0.1, over TCP and UDP.
func counted(t *testing.T) (at netip.AddrPort, came *atomic.Int64) {
	t.Helper()
	at, came = freeport.Reserve(t), new(atomic.Int64)
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.Close(), packets.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			came.Add(1)
			_ = c.Close()
		}
	}()
	go func() {
		for _, _, err := packets.ReadFrom(make([]byte, 512)); err == nil; _, _, err = packets.ReadFrom(make([]byte, 512)) {
			came.Add(1)
		}
	}()
	return at, came
}

// TestForbiddenHosts checks that an authenticator with a forbidden host or URL opens no connection to it, for every kind of request.
func TestForbiddenHosts(t *testing.T) {
	at, came := counted(t)
	prefixes, err := outbound.Parse([]string{"192.0.2.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	outbound.Allow(prefixes)
	defer outbound.Allow(nil)
	now := time.Now()
	issuer, key := authntest.Issue(t, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "people"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	leaf, _ := authntest.Issue(t, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "ada"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, issuer, key)
	for _, host := range []string{"127.0.0.1", "localhost", "169.254.169.254"} {
		url := "https://" + net.JoinHostPort(host, port(at))
		tokens := func(change func(*Tokens)) *Tokens {
			one := &Tokens{Issuer: url, Audience: "portolan", UserClaim: "sub", ClientID: "portolan", ClientSecret: "s", Now: time.Now}
			change(one)
			return one
		}
		directory := LDAP{Host: host, Port: int64(at.Port()), BindDN: "cn=a", BindPassword: "b", Base: "dc=a"}
		secure, begun := directory, directory
		secure.TLS, begun.StartTLS = true, true
		for what, question := range map[string]func(context.Context) error{
			"LDAP":          func(ctx context.Context) error { _, err := directory.Check(ctx, "carol", "x"); return err },
			"LDAP over TLS": func(ctx context.Context) error { _, err := secure.Check(ctx, "carol", "x"); return err },
			"StartTLS":      func(ctx context.Context) error { _, err := begun.Check(ctx, "carol", "x"); return err },
			"RADIUS": func(ctx context.Context) error {
				_, err := RADIUS{Host: host, Port: int64(at.Port()), Secret: "s", Timeout: time.Second}.Check(ctx, "carol", "x")
				return err
			},
			"discovery of keys": func(ctx context.Context) error {
				_, _, err := tokens(func(*Tokens) {}).Verify(ctx, "a.b.c")
				return err
			},
			"discovery for people": func(ctx context.Context) error {
				_, err := tokens(func(*Tokens) {}).StartSignIn(ctx, Flow{State: "s"}, "https://here.example/back")
				return err
			},
			"introspection": func(ctx context.Context) error {
				_, _, err := tokens(func(one *Tokens) { one.IntrospectionURL = url + "/introspect" }).Verify(ctx, "a.b.c")
				return err
			},
			"whether a certificate is good": func(ctx context.Context) error {
				c := Certificates{Issuers: []*x509.Certificate{issuer}, Responders: []string{url}, Now: time.Now}
				_, err := c.Verify(ctx, []*x509.Certificate{leaf})
				return err
			},
		} {
			err := question(t.Context())
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), outbound.ErrDenied.Error()) {
				t.Errorf("%s at %s: %v", what, host, err)
			}
		}
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d connections or packets came inside", n)
	}
}

func port(at netip.AddrPort) string {
	_, text, _ := strings.Cut(at.String(), ":")
	return text
}

// TestForbiddenIssuerURLs checks that neither the URLs in an issuer's discovery document nor its redirects make the manager connect to a
// forbidden address.
func TestForbiddenIssuerURLs(t *testing.T) {
	at, inside := counted(t)
	for name, say := range map[string]func(w http.ResponseWriter, r *http.Request, self string){
		"keys": func(w http.ResponseWriter, _ *http.Request, self string) {
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": self, "jwks_uri": "http://169.254.169.254/keys",
				"authorization_endpoint": self + "/a", "token_endpoint": self + "/t"})
		},
		"sent on": func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, "http://"+at.String()+"/latest", http.StatusTemporaryRedirect)
		},
	} {
		var s *httptest.Server
		s = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			say(w, r, s.URL)
		}))
		p := authntest.Provider{Server: s}
		tokens := &Tokens{Issuer: s.URL, Audience: "portolan", UserClaim: "sub", Trusted: p.Trusted(), Now: time.Now}
		token := authntest.NewProvider(t).Sign(t, map[string]any{"iss": s.URL, "aud": "portolan", "sub": "7",
			"exp": time.Now().Add(time.Hour).Unix()})
		_, _, err := tokens.Verify(t.Context(), token)
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), map[string]string{"keys": outbound.ErrDenied.Error(),
			"sent on": "redirects are not followed"}[name]) {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
	if n := inside.Load(); n != 0 {
		t.Errorf("%d connections came inside", n)
	}
}
