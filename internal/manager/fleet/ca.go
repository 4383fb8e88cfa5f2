package fleet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// Lifetimes of the certificates of the authority, of a manager and of a service point. clockSkew is how far before the time of issue a
// certificate becomes valid.
const (
	authorityLife    = 20 * 365 * 24 * time.Hour
	managerLife      = 365 * 24 * time.Hour
	servicePointLife = 30 * 24 * time.Hour
	clockSkew        = 5 * time.Minute
)

// Authority issues the certificates of a fleet. Its key is in the database, so that all managers of a database share it.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         func() time.Time
}

// Sealer encrypts secrets (resource.Sealer).
type Sealer interface {
	Seal(tx *store.Tx, about, plain string) (sealed string, err error)
	Open(tx *store.Tx, about, sealed string) (plain string, err error)
}

// sealedKey is the prefix of an encrypted authority key. Databases of an earlier release contain the key in plain form.
const sealedKey = "sealed:"

// LoadAuthority reads the authority, and creates it at the first start. Its key is stored encrypted.
func LoadAuthority(ctx context.Context, s *store.Store, sealer Sealer) (*Authority, error) {
	a := &Authority{now: s.Now}
	read := func(tx *store.Tx) error {
		var der, key []byte
		if err := tx.QueryRow("SELECT value FROM secret WHERE name = 'authority-certificate'").Scan(&der); err != nil {
			return err
		}
		if err := tx.QueryRow("SELECT value FROM secret WHERE name = 'authority-key'").Scan(&key); err != nil {
			return err
		}
		text, sealed := strings.CutPrefix(string(key), sealedKey)
		if sealed {
			plain, err := sealer.Open(tx, authorityKey, text)
			if err != nil {
				return err
			}
			key = []byte(plain)
		}
		if !sealed && !tx.IsUpdate() {
			return errKeyNotSealed
		}
		if !sealed {
			if err := writeSealedKey(tx, sealer, key); err != nil {
				return err
			}
		}
		var err error
		if a.certificate, err = x509.ParseCertificate(der); err != nil {
			return fmt.Errorf("read the authority's certificate: %w", err)
		}
		if a.key, err = x509.ParseECPrivateKey(key); err != nil {
			return fmt.Errorf("read the authority's key: %w", err)
		}
		return nil
	}
	err := s.View(ctx, read)
	if !errors.Is(err, sql.ErrNoRows) && !errors.Is(err, errKeyNotSealed) {
		return a, err
	}
	return a, s.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
		if err := read(tx); !errors.Is(err, sql.ErrNoRows) {
			return err // another manager was faster
		}
		der, key, err := newAuthority(tx.Now())
		if err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO secret (name, value) VALUES ('authority-certificate', ?), ('authority-key', ?)", der,
			[]byte{}); err != nil {
			return err
		}
		if err := writeSealedKey(tx, sealer, key); err != nil {
			return err
		}
		return read(tx)
	})
}

// authorityKey is the purpose that the authority's key is sealed with.
const authorityKey = "authority-key"

// errKeyNotSealed reports that the stored key is not encrypted yet.
var errKeyNotSealed = errors.New("the authority's key is not sealed")

// writeSealedKey writes the authority's key in encrypted form.
func writeSealedKey(tx *store.Tx, sealer Sealer, key []byte) error {
	sealed, err := sealer.Seal(tx, authorityKey, string(key))
	if err != nil {
		return err
	}
	return tx.Write("UPDATE secret SET value = ? WHERE name = 'authority-key'", []byte(sealedKey+sealed))
}

func newAuthority(now time.Time) (der, keyDER []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("create the authority's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Portolan fleet authority"},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if der, err = x509.CreateCertificate(rand.Reader, template, template, key.Public(), key); err != nil {
		return nil, nil, fmt.Errorf("create the authority's certificate: %w", err)
	}
	keyDER, err = x509.MarshalECPrivateKey(key)
	return der, keyDER, err
}

// serial returns a random serial number of 127 bits (RFC 5280 section 4.1.2.2).
func serial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // crypto/rand.Read never fails
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b)
}

// Fingerprint returns the SHA-256 of the authority's certificate.
func (a *Authority) Fingerprint() [32]byte { return sha256.Sum256(a.certificate.Raw) }

// NotAfter returns the expiry time of the authority's certificate.
func (a *Authority) NotAfter() time.Time { return a.certificate.NotAfter }

// PEM returns the authority's certificate.
func (a *Authority) PEM() string { return encodeCertificate(a.certificate.Raw) }

// Pool returns a pool that contains only the authority's certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func encodeCertificate(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// ServerCertificate issues a manager's certificate for its check-in listener. With hosts the certificate is also valid for these names and
// addresses, for other listeners.
func (a *Authority) ServerCertificate(hosts ...string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: checkin.ServerName}, DNSNames: []string{checkin.ServerName},
		NotBefore: a.now().Add(-clockSkew), NotAfter: a.now().Add(managerLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("issue a manager's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// issue issues a service point's certificate of a generation. It takes only the key from the certificate request.
func (a *Authority) issue(at nodeID, generation int64, request *x509.CertificateRequest) (der []byte, err error) {
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: at.id, SerialNumber: strconv.FormatInt(generation, 10)},
		NotBefore: a.now().Add(-clockSkew), NotAfter: a.now().Add(servicePointLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if at.node > 1 {
		template.Subject.OrganizationalUnit = []string{strconv.FormatInt(at.node, 10)}
	}
	if der, err = x509.CreateCertificate(rand.Reader, template, a.certificate, request.PublicKey, a.key); err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	return der, nil
}

// generationOf returns the generation of a service point's certificate; later certificates have higher ones. It is 0 for certificates
// issued before generations were introduced.
func generationOf(certificate *x509.Certificate) int64 {
	n, err := strconv.ParseInt(certificate.Subject.SerialNumber, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// nodeIDOf returns the node that a certificate was issued to. A certificate without a node number belongs to node 1.
func nodeIDOf(certificate *x509.Certificate) nodeID {
	at := nodeID{certificate.Subject.CommonName, 1}
	if units := certificate.Subject.OrganizationalUnit; len(units) == 1 {
		if n, err := strconv.ParseInt(units[0], 10, 64); err == nil {
			at.node = n
		}
	}
	return at
}

// Verify checks that the authority has issued a certificate to a service point. It ignores the expiry: CheckIn checks that with the time of
// the database, not of this machine.
func (a *Authority) Verify(certificate *x509.Certificate) error {
	_, err := certificate.Verify(x509.VerifyOptions{Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		CurrentTime: certificate.NotBefore})
	return err
}

// derive returns 32 secret bytes that depend only on the authority's key, the purpose and the texts.
func (a *Authority) derive(purpose string, texts ...string) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	info := purpose
	for _, text := range texts {
		info += fmt.Sprintf("\n%d %s", len(text), text)
	}
	return hkdf.Key(sha256.New, der, nil, info, sha256.Size)
}

// parseRequest parses a certificate request and checks its signature.
func parseRequest(text string) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, problem.Invalid("request", "is not a certificate request in PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || request.CheckSignature() != nil {
		return nil, problem.Invalid("request", "is not a certificate request signed by its own key")
	}
	key, ok := request.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, problem.Invalid("request", "must have an ECDSA P-256 key")
	}
	return request, nil
}

// fingerprint returns the SHA-256 of a certificate or a public key in hexadecimal.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
