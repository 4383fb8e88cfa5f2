// Package content is the envelope of what a service point is to serve beyond its configuration: zones, policies, and whatever else an
// application takes as a stream. A manager puts it in front of each stream. The service point keeps and orders streams by it, and gives
// them to the application, which alone reads what follows.
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

// Envelope begins a stream. On the wire it is the letter H, the length of the JSON as a varint, and the JSON.
type Envelope struct {
	// Kind says what follows, such as zonedata.Kind; managers of the release before leave it out.
	Kind string `json:"kind,omitempty"`
	// From is the Revision that the stream begins at; empty is nothing. To is the one that it leads to.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Size is how many octets follow, and Hash their SHA-256 in hexadecimal digits; both are left out by managers of the release before.
	Size int64  `json:"size,omitempty"`
	Hash string `json:"hash,omitempty"`
}

// letter begins an envelope, and maxLength bounds its JSON, in octets.
const (
	letter    = 'H'
	maxLength = 4 << 10
)

// ErrCut is the error of a stream that ends too early.
var ErrCut = errors.New("the content ends too early")

// Bytes returns the envelope as it is sent.
func (e Envelope) Bytes() ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(binary.AppendUvarint([]byte{letter}, uint64(len(text))), text...), nil
}

// Read reads the envelope at the beginning of a stream; in is behind it then.
func Read(in *bufio.Reader) (e Envelope, err error) {
	kind, err := in.ReadByte()
	if err != nil {
		return e, cut(err)
	}
	length, err := binary.ReadUvarint(in)
	if err != nil {
		return e, cut(err)
	}
	if kind != letter || length > maxLength {
		return e, fmt.Errorf("the content does not begin with an envelope, but with %q and a length of %d", kind, length)
	}
	text := make([]byte, length)
	if _, err = io.ReadFull(in, text); err != nil {
		return e, cut(err)
	}
	if err = json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("the envelope of the content: %w", err)
	}
	return e, nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

// Verify reads a stream to its end and returns its envelope. It fails if what follows has another size or hash than the envelope says, or
// if the envelope leads to no revision.
func Verify(in io.Reader) (Envelope, error) {
	e, size, hash, err := measure(in)
	if err != nil {
		return e, err
	}
	if _, err := ParseRevision(e.To); err != nil {
		return e, err
	}
	if e.Hash != "" && (size != e.Size || hash != e.Hash) {
		return e, fmt.Errorf("the content has %d octets of hash %.16s…, and its envelope says %d of %.16s…", size, hash, e.Size, e.Hash)
	}
	return e, nil
}

// Seal returns the envelope of a stream, with the size and the hash of what follows, and that without its envelope.
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

// measure reads a stream to its end: its envelope, and the size and hash of what follows.
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

// Revision names what an application serves: Number tells an earlier one from a later one in one database, and Hash what it is, in 64
// hexadecimal digits.
type Revision struct {
	Number int64
	Hash   string
}

// hashDigits is how many hexadecimal digits a hash has.
const hashDigits = 64

// String returns the number and the hash, with a hyphen between them.
func (r Revision) String() string { return fmt.Sprintf("%d-%s", r.Number, r.Hash) }

// ParseRevision reads what String writes.
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
