package servicepoint

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"portolan/internal/wire/checkin"
)

// identity is what a service point is, as its state directory keeps it. The file is written whole or
// not at all, and only once the manager has answered: it is there exactly when enrolment is done.
type identity struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Node is which of its nodes this machine is; 0 stands for 1.
	Node     int64  `json:"node,omitempty"`
	Endpoint string `json:"endpoint"` // the registration endpoint it enrolled at
	Variant  string `json:"variant"`
	// OriginalVersion is the version it enrolled with.
	OriginalVersion string `json:"originalVersion"`
	credentials
	Authority string `json:"authority"` // PEM
	// Registered is the SHA-256 of the registration key that it enrolled with: another key enrols anew.
	Registered string `json:"registered,omitempty"`
	// Previous is what was good before the certificate was renewed, until the new one was used.
	Previous *credentials `json:"previous,omitempty"`
}

// nodeID names this machine.
func (id *identity) nodeID() string { return fmt.Sprintf("%s-node-%d", id.ID, max(1, id.Node)) }

// credentials are a certificate and its key, in PEM.
type credentials struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// state is the state directory.
type state struct{ dir string }

const (
	identityFile = "identity.json"
	keyFile      = "enrolment.key"
	sequenceFile = "sequence"
	processFile  = "process"
)

// load reads the identity; nil where there is none yet.
func (s state) load() (*identity, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return nil, fmt.Errorf("reading the state in %s: %w", s.dir, err)
	}
	return &id, nil
}

func (s state) save(id *identity) error {
	data, err := json.MarshalIndent(id, "", " ")
	if err != nil {
		return err
	}
	return s.write(identityFile, data)
}

// write replaces a file by a new one that is on disk before it takes the name.
func (s state) write(name string, data []byte) error {
	f, err := os.CreateTemp(s.dir, name+".*")
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.dir, name))
	}
	if err == nil {
		err = syncDir(s.dir)
	}
	var at *fs.PathError
	var link *os.LinkError
	switch { // the name of the temporary file would make each report another one
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &link):
		err = link.Err
	}
	if err != nil {
		return fmt.Errorf("writing the state: %s: %w", name, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

// enrolmentKey gives the key pair that enrolment uses. It is kept before it is used, so that an
// enrolment whose answer was lost can be repeated with the same pair.
func (s state) enrolmentKey() (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, keyFile))
	if err == nil {
		if key, err := decodeKey(data); err == nil {
			return key, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	key, text, err := newKey()
	if err != nil {
		return nil, err
	}
	return key, s.write(keyFile, text)
}

// enrolled removes what only enrolment needed.
func (s state) enrolled() error {
	err := os.Remove(filepath.Join(s.dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func decodeKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no key in PEM")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// certificateRequest asks for a certificate for the key.
func certificateRequest(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return "", fmt.Errorf("making a certificate request: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// tlsConfig is how an enrolled service point talks to its manager: its own certificate, and no
// authority but the manager's.
func (id *identity) tlsConfig() (*tls.Config, error) {
	pair, err := tls.X509KeyPair([]byte(id.Certificate), []byte(id.Key))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	block, _ := pem.Decode([]byte(id.Authority))
	if block == nil {
		return nil, errors.New("reading the manager's authority: no certificate in PEM")
	}
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the manager's authority: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: checkin.ServerName, Certificates: []tls.Certificate{pair},
		ClientSessionCache: tls.NewLRUClientSessionCache(sessions),
		// Verified below, without a look at this machine's clock.
		InsecureSkipVerify: true, //nolint:gosec // see VerifyConnection
		VerifyConnection:   func(c tls.ConnectionState) error { return verify(authority, c) }}, nil
}

// sessions is how many managers' sessions are kept, to come back to without another handshake.
const sessions = 4

// newProcess gives this process an id, and reads that of the one before.
func (s state) newProcess() (p checkin.Process, err error) {
	before, err := os.ReadFile(filepath.Join(s.dir, processFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("reading the state: %w", err)
	}
	return newProcess(firstLine(before)), nil
}

// newProcess gives a process an id; before is that of the process before it.
func newProcess(before string) checkin.Process {
	return checkin.Process{ID: rand.Text(), Before: before}
}

// firstLine is the first line of a file, of up to 64 bytes; empty where it is longer.
func firstLine(text []byte) string {
	line, _, _ := strings.Cut(string(text), "\n")
	if len(line) > 64 || strings.ContainsRune(line, 0) {
		return ""
	}
	return line
}

// sequenceStep is how many numbers of reports are reserved at a time.
const sequenceStep = 1000

// reserve gives numbers for reports, from next on, that no earlier start has used. Where they cannot be kept, they are good all the
// same: the manager says which it has seen.
func (s state) reserve(after int64) (next int64, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, sequenceFile))
	if err == nil {
		next, _ = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // what cannot be read is begun anew
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	next = max(next, after) + 1
	if err == nil {
		err = s.write(sequenceFile, []byte(strconv.FormatInt(next+sequenceStep, 10)+"\n"))
	}
	return next, err
}
