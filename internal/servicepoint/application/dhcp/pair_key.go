package dhcp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// pairKey identifies a server to its partners. The key is created on the disk of the leases. The partner learns its fingerprint through the
// manager, so a certificate needs no authority and no time.
type pairKey struct {
	certificate tls.Certificate
	sum         [sha256.Size]byte
}

// pairKeyFile contains the private key in PEM.
const pairKeyFile = "pair.key"

// readPairKey reads the key of the server, and creates it at the first start.
func readPairKey(dir string) (*pairKey, error) {
	path := filepath.Join(dir, pairKeyFile)
	text, err := os.ReadFile(path) //nolint:gosec // in the folder that the service point provides
	if errors.Is(err, fs.ErrNotExist) {
		text, err = newPairKey(dir, path)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s contains no key", path)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Portolan DHCP server"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &pairKey{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parsed},
		sha256.Sum256(parsed.RawSubjectPublicKeyInfo)}, nil
}

// newPairKey creates a key on the disk, and returns it in PEM.
func newPairKey(dir, path string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	f, err := os.CreateTemp(dir, incompleteFile)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path) //nolint:gosec // in the folder that the service point provides
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name())) //nolint:gosec // as above
	}
	return text, syncFolder(dir)
}

// fingerprint returns the SHA-256 of the public key in hexadecimal digits. k may be nil.
func (k *pairKey) fingerprint() string {
	if k == nil {
		return ""
	}
	return hex.EncodeToString(k.sum[:])
}

// config returns the TLS settings of a connection. verify examines the fingerprint of the other side.
func (k *pairKey) config(verify func(sum [sha256.Size]byte) error) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{k.certificate}, ClientAuth: tls.RequireAnyClientCert,
		InsecureSkipVerify: true, SessionTicketsDisabled: true, //nolint:gosec // VerifyConnection compares the key
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 {
				return errors.New("the partner has no certificate")
			}
			return verify(sha256.Sum256(c.PeerCertificates[0].RawSubjectPublicKeyInfo))
		}}
}
