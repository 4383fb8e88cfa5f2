package resolver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/testkit/freeport"
)

// credentials creates a certificate for a name.
func credentials(t *testing.T, name string) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(7), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(made)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})), pool
}

// text returns a configuration with a plain listener and a TLS listener.
func text(plain, secure int, certificate, key, more string) json.RawMessage {
	return fmt.Appendf(nil, `{"listen":[{"address":"127.0.0.1","port":%d},{"address":"127.0.0.1","port":%d,"tls":true}],`+
		`"tls":{"certificate":%q,"key":%q},"upstreams":[{"address":"127.0.0.1:%s"}]}`, plain, secure, certificate, key, more)
}

// TestListenersOverTLS checks that a TLS listener uses the configured certificate and its replacements.
func TestListenersOverTLS(t *testing.T) {
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	upstream := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg)
		_ = w.WriteMsg(m.SetReply(r))
	})}
	go func() { _ = upstream.ActivateAndServe() }()
	defer func() { _ = upstream.Shutdown() }()
	_, back, _ := strings.Cut(packets.LocalAddr().String(), ":")

	app := Kind().New(slog.New(slog.NewTextHandler(io.Discard, nil)))
	defer func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	}()
	plain, secure := int(freeport.Reserve(t).Port()), int(freeport.Reserve(t).Port())
	asked := func(name string, pool *x509.CertPool) error {
		q := new(dns.Msg)
		q.SetQuestion("quay.example.", dns.TypeA)
		client := dns.Client{Net: "tcp-tls", TLSConfig: &tls.Config{RootCAs: pool, ServerName: name}, Timeout: 5 * time.Second}
		_, _, err := client.Exchange(q, fmt.Sprintf("127.0.0.1:%d", secure))
		return err
	}
	for _, name := range []string{"one.example", "two.example"} {
		certificate, key, pool := credentials(t, name)
		configuration := text(plain, secure, certificate, key, back)
		if err := Kind().Check(configuration); err != nil {
			t.Fatal(err)
		}
		if err := app.Configure(configuration); err != nil {
			t.Fatal(err)
		}
		if err := asked(name, pool); err != nil {
			t.Errorf("over TLS, %s gives %v", name, err)
		}
		if err := asked("elsewhere.example", pool); err == nil {
			t.Error("its certificate is good for any name")
		}
	}
	q := new(dns.Msg)
	q.SetQuestion("version.bind.", dns.TypeTXT)
	q.Question[0].Qclass = dns.ClassCHAOS
	if a, _, err := new(dns.Client).Exchange(q, fmt.Sprintf("127.0.0.1:%d", plain)); err != nil || a.Rcode != dns.RcodeSuccess ||
		len(a.Answer) != 1 {
		t.Errorf("it says of itself %v, %v", a, err)
	}
	for deadline := time.Now().Add(20 * time.Second); len(app.Health()) > 0; time.Sleep(20 * time.Millisecond) { // polling interval
		if time.Now().After(deadline) {
			t.Fatalf("it does not become well: %v, %+v", app.Health(), app.Diagnostics())
		}
	}
}

// TestPrivateKeyIsKept checks that the private key is hidden, and preserved if the certificate is unchanged.
func TestPrivateKeyIsKept(t *testing.T) {
	certificate, key, _ := credentials(t, "one.example")
	other, _, _ := credentials(t, "two.example")
	whole := text(53, 853, certificate, key, "5300")
	shown := hide(whole)
	if strings.Contains(string(shown), "PRIVATE") || !strings.Contains(string(shown), "BEGIN CERTIFICATE") {
		t.Errorf("what is shown is %s", shown)
	}
	if err := Kind().Check(application.FillKey(shown, whole)); err != nil {
		t.Errorf("the shown configuration is refused: %v", err)
	}
	for what, c := range map[string]struct {
		text  json.RawMessage
		wrong string
	}{
		"without a key":                             {shown, "tls.key"},
		"with another certificate":                  {application.FillKey(text(53, 853, other, "", "5300"), whole), "tls.key"},
		"with a key of another":                     {text(53, 853, other, key, "5300"), "private key does not match"},
		"without a certificate":                     {json.RawMessage(`{"listen":[{"address":"::1","tls":true}],"upstreams":[{"address":"::2"}]}`), "listen[0].tls"},
		"with a certificate without a TLS listener": {fmt.Appendf(nil, `{"listen":[{"address":"::1"}],"tls":{"certificate":%q,"key":%q},"upstreams":[{"address":"::2"}]}`, certificate, key), "no listener"},
	} {
		if err := Kind().Check(c.text); err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v, want %q", what, err, c.wrong)
		}
	}
	if plain := json.RawMessage(`{"listen":[{"address":"::1"}],"upstreams":[{"address":"::2"}]}`); string(hide(plain)) != string(plain) ||
		string(application.FillKey(plain, whole)) != string(plain) {
		t.Error("a configuration without a key is changed")
	}
}
