package servicepoint

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portolan/internal/wire/checkin"
)

// signed creates a certificate that is valid for an hour from a time on, signed by another one, or self-signed if by is nil.
func signed(t *testing.T, from time.Time, name string, by *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: from,
		NotAfter: from.Add(time.Hour), IsCA: by == nil, BasicConstraintsValid: true}
	above, signer := c, any(key)
	if by != nil {
		above, signer = by.Leaf, by.PrivateKey
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, above, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	made := &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
	if made.Leaf, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	if by != nil {
		made.Certificate = append(made.Certificate, by.Certificate...)
	}
	return made
}

// meets connects a service point to a manager with a certificate.
func meets(t *testing.T, config *tls.Config, shown *tls.Certificate) error {
	t.Helper()
	here, there := net.Pipe()
	defer func() { _ = here.Close() }()
	ended := make(chan error, 1)
	go func() {
		server := tls.Server(there, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*shown}})
		ended <- server.Handshake()
		_ = there.Close()
	}()
	err := tls.Client(here, config).HandshakeContext(t.Context())
	_ = here.Close()
	<-ended
	return err
}

// TestClockOffByAYear checks that a service point connects although its clock is a year late or early. It trusts no other authority or
// name at any time.
func TestClockOffByAYear(t *testing.T) {
	for what, from := range map[string]time.Time{"right": time.Now().Add(-time.Minute), "a year behind": time.Now().AddDate(1, 0, 0),
		"a year ahead": time.Now().AddDate(-1, 0, 0)} {
		authority := signed(t, from, "authority", nil)
		config := pinnedConfig(sha256.Sum256(authority.Certificate[0]))
		if err := meets(t, config, signed(t, from, checkin.ServerName, authority)); err != nil {
			t.Errorf("with a clock that is %s: %v", what, err)
		}
		if err := meets(t, config, signed(t, from, "other.example", authority)); err == nil {
			t.Errorf("with a clock that is %s it trusts another name", what)
		}
		other := signed(t, from, checkin.ServerName, signed(t, from, "authority", nil))
		if err := meets(t, config, other); err == nil {
			t.Errorf("with a clock that is %s it trusts another authority", what)
		}
		// the chain includes an authority that did not sign the certificate
		other.Certificate = append(other.Certificate, authority.Certificate...)
		if err := meets(t, config, other); err == nil {
			t.Errorf("with a clock that is %s it trusts what merely names the authority", what)
		}
	}
}

// TestLogsAreRotated checks that the text of a full log is moved to a second file, and that its writer continues with an empty one.
func TestLogsAreRotated(t *testing.T) {
	p := &process{folder: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	path := filepath.Join(p.folder, logFile)
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	write := func(text string) {
		t.Helper()
		if _, err := log.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(path, want string) {
		t.Helper()
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s has %d bytes that end with %q, %v; want %d", filepath.Base(path), len(text), text[max(0, len(text)-20):], err, len(want))
		}
	}
	first := strings.Repeat("x", maxLog-2) + "\n"
	write(first)
	p.rotate()
	holds(path, first)
	write("\n")
	p.rotate()
	holds(path, "")
	holds(path+".1", first+"\n")
	write("and on\n")
	holds(path, "and on\n")
	if got := p.lastLogLine(); got != "and on" {
		t.Errorf("its last words are %q", got)
	}
	p.rotate()
	holds(path, "and on\n")
}
