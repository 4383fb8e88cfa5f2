// Package content defines the envelope of the content that a service point serves besides its configuration: zones, policies, and other
// streams for applications. A manager puts it in front of each stream. The service point uses it to store and order the streams, and passes
// them to the application, which alone reads the rest.
package content

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Envelope is the start of a stream. On the wire it is the letter H, the length of the JSON as a varint, and the JSON.
type Envelope struct {
	// Kind is the kind of the content, such as zonedata.Kind. Managers of the previous release leave it out.
	Kind string `json:"kind,omitempty"`
	// From is the Revision that the stream applies to; empty for complete content. To is the resulting Revision.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Size is the number of octets that follow, and Hash their SHA-256 in hexadecimal digits. Managers of the previous release leave both
	// out.
	Size int64  `json:"size,omitempty"`
	Hash string `json:"hash,omitempty"`
	// Restores reports that the manager restores the leases of DHCP servers that have lost them. Managers of the previous release leave it
	// out.
	Restores bool `json:"restores,omitempty"`
}

// envelopeLetter is the first octet of an envelope. maxEnvelope is the maximum size of its JSON, in octets.
const (
	envelopeLetter = 'H'
	maxEnvelope    = 4 << 10
)

// ErrCut is the error for a truncated stream.
var ErrCut = errors.New("the content ends too early")

// Bytes returns the envelope in wire form.
func (e Envelope) Bytes() ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(binary.AppendUvarint([]byte{envelopeLetter}, uint64(len(text))), text...), nil
}

// Read reads the envelope at the start of a stream. The rest of the stream stays unread.
func Read(in *bufio.Reader) (e Envelope, err error) {
	kind, err := in.ReadByte()
	if err != nil {
		return e, truncated(err)
	}
	length, err := binary.ReadUvarint(in)
	if err != nil {
		return e, truncated(err)
	}
	if kind != envelopeLetter || length > maxEnvelope {
		return e, fmt.Errorf("the content does not begin with an envelope, but with %q and a length of %d", kind, length)
	}
	text := make([]byte, length)
	if _, err = io.ReadFull(in, text); err != nil {
		return e, truncated(err)
	}
	if err = json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("the envelope of the content: %w", err)
	}
	return e, nil
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

// Verify reads a stream to its end and returns its envelope. It returns an error if the size or hash of the rest differs from the envelope,
// or if To is not a valid revision.
func Verify(in io.Reader) (Envelope, error) {
	e, size, hash, err := measure(in)
	if err != nil {
		return e, err
	}
	if _, err := ParseRevision(e.To); err != nil {
		return e, err
	}
	if e.Hash != "" && (size != e.Size || hash != e.Hash) {
		return e, fmt.Errorf("the content has %d octets with the hash %.16s…, but its envelope states %d with %.16s…", size, hash, e.Size, e.Hash)
	}
	return e, nil
}

// Seal returns the envelope of a stream, with the size and the hash of the rest, and a reader for the rest.
func Seal(in io.ReadSeeker) (Envelope, io.Reader, error) {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return Envelope{}, nil, err
	}
	e, size, hash, err := measure(in)
	if err != nil {
		return e, nil, err
	}
	e.Size, e.Hash = size, hash
	if _, err := in.Seek(-size, io.SeekEnd); err != nil {
		return e, nil, err
	}
	return e, io.LimitReader(in, size), nil
}

// measure reads a stream to its end. It returns the envelope, and the size and hash of the rest.
func measure(in io.Reader) (e Envelope, size int64, hash string, err error) {
	r := bufio.NewReaderSize(in, 64<<10)
	if e, err = Read(r); err != nil {
		return e, 0, "", err
	}
	sum := sha256.New()
	if size, err = io.Copy(sum, r); err != nil {
		return e, 0, "", err
	}
	return e, size, hex.EncodeToString(sum.Sum(nil)), nil
}

// Revision identifies the content of an application. Number orders the revisions of one database. Hash identifies the content, in 64
// hexadecimal digits.
type Revision struct {
	Number int64
	Hash   string
}

// hashDigits is the number of hexadecimal digits of a hash.
const hashDigits = 64

// String returns the number and the hash, separated by a hyphen.
func (r Revision) String() string { return fmt.Sprintf("%d-%s", r.Number, r.Hash) }

// ParseRevision parses the output of String.
func ParseRevision(text string) (r Revision, err error) {
	number, hash, _ := strings.Cut(text, "-")
	if r.Number, err = strconv.ParseInt(number, 10, 64); err != nil || r.Number < 0 {
		return r, fmt.Errorf("%q is not a revision: it does not begin with a number", text)
	}
	if _, err := hex.DecodeString(hash); err != nil || len(hash) != hashDigits {
		return r, fmt.Errorf("%q is not a revision: it does not end with %d hexadecimal digits", text, hashDigits)
	}
	r.Hash = hash
	return r, nil
}
