package authn

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"portolan/internal/testkit/authntest"
)

// TestOCSPSigners checks that an OCSP answer must be signed by the issuer or by a responder that the issuer has authorized, and must be
// current.
func TestOCSPSigners(t *testing.T) {
	now := time.Now()
	issuer, issuerKey := authntest.Issue(t, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "people"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}, nil, nil)
	of := func(n int64, name string, until time.Time, usage x509.ExtKeyUsage) (*x509.Certificate, crypto.Signer) {
		return authntest.Issue(t, &x509.Certificate{SerialNumber: big.NewInt(n), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-48 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{usage}}, issuer, issuerKey)
	}
	ada, adaKey := of(7, "ada", now.Add(time.Hour), x509.ExtKeyUsageClientAuth)
	responder, responderKey := of(8, "responder", now.Add(time.Hour), x509.ExtKeyUsageOCSPSigning)
	ended, endedKey := of(9, "responder", now.Add(-time.Hour), x509.ExtKeyUsageOCSPSigning)
	for name, c := range map[string]struct {
		signer     *x509.Certificate
		by         crypto.Signer
		this, next time.Time
		good       bool
	}{
		"the issuer":                   {issuer, issuerKey, now.Add(-time.Minute), now.Add(time.Hour), true},
		"its responder":                {responder, responderKey, now.Add(-time.Minute), now.Add(time.Hour), true},
		"a responder that has ended":   {ended, endedKey, now.Add(-time.Minute), now.Add(time.Hour), false},
		"the certificate itself":       {ada, adaKey, now.Add(-time.Minute), now.Add(time.Hour), false},
		"new, and good for ever":       {issuer, issuerKey, now.Add(-time.Minute), time.Time{}, true},
		"a day old, and good for ever": {issuer, issuerKey, now.Add(-24 * time.Hour), time.Time{}, false},
		"not good any more":            {issuer, issuerKey, now.Add(-24 * time.Hour), now.Add(-time.Hour), false},
		"of tomorrow":                  {issuer, issuerKey, now.Add(24 * time.Hour), now.Add(48 * time.Hour), false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			said := ocsp.Response{Status: ocsp.Good, SerialNumber: ada.SerialNumber, ThisUpdate: c.this, NextUpdate: c.next}
			if c.signer != issuer {
				said.Certificate = c.signer
			}
			answer, err := ocsp.CreateResponse(issuer, c.signer, said, c.by)
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(answer)
		}))
		known := Certificates{Issuers: []*x509.Certificate{issuer}, Responders: []string{s.URL}, Now: time.Now}
		id, err := known.Verify(t.Context(), []*x509.Certificate{ada})
		if good := err == nil && id.Name == "ada"; good != c.good || !c.good && !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %q (%v)", name, id.Name, err)
		}
		s.Close()
	}
}
