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

// identity is the identity of an enrolled service point, stored in the state directory. The file is replaced atomically, and exists only
// after the manager has answered the enrolment.
type identity struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Node is the number of this machine among the nodes of the service point; 0 means 1.
	Node     int64  `json:"node,omitempty"`
	Endpoint string `json:"endpoint"` // the registration endpoint used at enrolment
	Variant  string `json:"variant"`
	// OriginalVersion is the version at enrolment.
	OriginalVersion string `json:"originalVersion"`
	credentials
	Authority string `json:"authority"` // PEM
	// Registered is the SHA-256 of the registration key used at enrolment. Another key causes a new enrolment.
	Registered string `json:"registered,omitempty"`
	// Previous is the certificate before the renewal. It is kept until the new one has been used.
	Previous *credentials `json:"previous,omitempty"`
}

// nodeID returns the id of this machine.
func (id *identity) nodeID() string { return fmt.Sprintf("%s-node-%d", id.ID, max(1, id.Node)) }

// credentials are a certificate and its key in PEM.
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

// load reads the identity; nil if there is none yet.
func (s state) load() (*identity, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return nil, fmt.Errorf("read the state in %s: %w", s.dir, err)
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

// write replaces a file atomically: the new file is synced to the disk before it takes the name.
func (s state) write(name string, data []byte) error {
	f, err := os.CreateTemp(s.dir, name+".*")
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
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
	switch { // without the random name of the temporary file, so that repeated errors are equal
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &link):
		err = link.Err
	}
	if err != nil {
		return fmt.Errorf("write the state: %s: %w", name, err)
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

// enrolmentKey returns the key pair for enrolment. It is stored before its first use, so that an enrolment can be repeated with the same
// pair after a lost answer.
func (s state) enrolmentKey() (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, keyFile))
	if err == nil {
		if key, err := decodeKey(data); err == nil {
			return key, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	key, text, err := newKey()
	if err != nil {
		return nil, err
	}
	return key, s.write(keyFile, text)
}

// removeEnrolmentKey removes the files that only enrolment needed.
func (s state) removeEnrolmentKey() error {
	err := os.Remove(filepath.Join(s.dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("create a key: %w", err)
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

// certificateRequest returns a PKCS #10 certificate request for the key in PEM.
func certificateRequest(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return "", fmt.Errorf("create a certificate request: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// tlsConfig returns the TLS configuration of an enrolled service point: its own certificate, and the manager's authority as the only
// root.
func (id *identity) tlsConfig() (*tls.Config, error) {
	pair, err := tls.X509KeyPair([]byte(id.Certificate), []byte(id.Key))
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	block, _ := pem.Decode([]byte(id.Authority))
	if block == nil {
		return nil, errors.New("read the manager's authority: no certificate in PEM")
	}
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the manager's authority: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: checkin.ServerName, Certificates: []tls.Certificate{pair},
		ClientSessionCache: tls.NewLRUClientSessionCache(sessions),
		// VerifyConnection verifies the chain without this machine's clock.
		InsecureSkipVerify: true, //nolint:gosec // see VerifyConnection
		VerifyConnection:   func(c tls.ConnectionState) error { return verify(authority, c) }}, nil
}

// sessions is the size of the TLS session cache, one entry a manager.
const sessions = 4

// newProcess returns a new process id together with the id of the previous process.
func (s state) newProcess() (p checkin.Process, err error) {
	before, err := os.ReadFile(filepath.Join(s.dir, processFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("read the state: %w", err)
	}
	return newProcess(firstLine(before)), nil
}

// newProcess returns a new process id; before is the id of the previous process.
func newProcess(before string) checkin.Process {
	return checkin.Process{ID: rand.Text(), Before: before}
}

// firstLine returns the first line of a file; empty if it is longer than 64 bytes.
func firstLine(text []byte) string {
	line, _, _ := strings.Cut(string(text), "\n")
	if len(line) > 64 || strings.ContainsRune(line, 0) {
		return ""
	}
	return line
}

// sequenceStep is the number of report sequence numbers that are reserved at a time.
const sequenceStep = 1000

// reserveSequence returns the first of sequenceStep report sequence numbers that no earlier process used. After an error the numbers are
// still usable, because the manager reports the number that it has seen.
func (s state) reserveSequence(after int64) (next int64, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, sequenceFile))
	if err == nil {
		next, _ = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // an unreadable file counts as 0
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	next = max(next, after) + 1
	if err == nil {
		err = s.write(sequenceFile, []byte(strconv.FormatInt(next+sequenceStep, 10)+"\n"))
	}
	return next, err
}
