package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// TestExpiryOf reads the expiry time of the certificate in a configuration. Other configurations have none.
func TestExpiryOf(t *testing.T) {
	end := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.AddDate(-1, 0, 0), NotAfter: end}
	text, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}))
	configuration, err := json.Marshal(map[string]any{"listen": []int{}, "tls": map[string]string{"certificate": certificate}})
	if err != nil {
		t.Fatal(err)
	}
	if got := expiryOf(string(configuration)); !got.Equal(end) {
		t.Errorf("it expires at %s, want %s", got, end)
	}
	for _, other := range []string{"", "{}", `{"tls":true}`, `{"tls":{"certificate":"-----BEGIN CERTIFICATE-----"}}`,
		`{"tls":{"certificate":"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}}`} {
		if got := expiryOf(other); !got.IsZero() {
			t.Errorf("%s: it expires at %s", other, got)
		}
	}
}
