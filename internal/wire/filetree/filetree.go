// Package filetree defines the content of the application tftp-service: the tree of files that a server offers over TFTP and HTTP. A stream
// contains a manifest of the complete tree, and the contents that the receiver does not have yet. Contents are identified by their hash, so
// an unchanged file is not sent again.
package filetree

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"portolan/internal/wire/content"
)

// Kind is the content kind of the stream (content.Envelope).
const Kind = "files"

// Limits of a tree. MaxFile is also the limit of an upload at the manager.
const (
	MaxFiles = 10_000
	MaxFile  = 100 << 20 // octets
	MaxTotal = 1 << 30   // octets of all files
	MaxPath  = 400       // octets; a longer path does not fit in a TFTP request of 512 octets with its options
)

// The parts of a stream after the envelope. Each part has a letter, its length as a varint, and its octets.
const (
	partManifest = 'M' // the Manifest, as JSON
	partBlob     = 'B' // the start of a content: its hash, in hexadecimal
	partData     = 'D' // some octets of the content
	partEnd      = 'E'
)

// maxManifest and maxData are the maximum sizes of a manifest and of a part of a content, in octets.
const (
	maxManifest = 16 << 20
	maxData     = 4 << 20
)

// Manifest lists the files of a tree, sorted by path.
type Manifest struct {
	Files []File `json:"files"`
}

// File is a file of a tree.
type File struct {
	// Path is the path of the file: names separated by slashes, without a leading slash.
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Hash is the SHA-256 of the content, in hexadecimal digits.
	Hash string `json:"hash"`
}

// Encode returns the manifest as JSON, and its hash for the revision (content.Revision).
func (m Manifest) Encode() (text []byte, hash string, err error) {
	if m.Files == nil {
		m.Files = []File{}
	}
	text, err = json.Marshal(m)
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:]), err
}

// Decode reads a manifest and checks it.
func Decode(text []byte) (m Manifest, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("the manifest of files: %w", err)
	}
	return m, m.Check()
}

// Check returns an error if the tree exceeds a limit, or has a path that is not valid or not in order.
func (m Manifest) Check() error {
	if len(m.Files) > MaxFiles {
		return fmt.Errorf("the tree has %d files, more than %d", len(m.Files), MaxFiles)
	}
	total := int64(0)
	for i, f := range m.Files {
		if err := CheckPath(f.Path); err != nil {
			return err
		}
		if i > 0 && m.Files[i-1].Path >= f.Path {
			return fmt.Errorf("the files %q and %q are not in order", m.Files[i-1].Path, f.Path)
		}
		if f.Size < 0 || f.Size > MaxFile {
			return fmt.Errorf("the file %q has %d octets, more than %d", f.Path, f.Size, MaxFile)
		}
		if hash, err := hex.DecodeString(f.Hash); err != nil || len(hash) != sha256.Size || strings.ToLower(f.Hash) != f.Hash {
			return fmt.Errorf("the file %q has the hash %q, which is not valid", f.Path, f.Hash)
		}
		total += f.Size
	}
	if total > MaxTotal {
		return fmt.Errorf("the files have %d octets together, more than %d", total, MaxTotal)
	}
	return nil
}

// CheckPath returns an error if a path is not valid: it is too long, or has an element that is empty, "." or "..", or has a character that
// a request cannot contain.
func CheckPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("the path %.40q… has %d octets, more than %d", path, len(path), MaxPath)
	}
	for element := range strings.SplitSeq(path, "/") {
		if element == "" || element == "." || element == ".." || strings.ContainsAny(element, "\\\x00\r\n") {
			return fmt.Errorf("%q is not a valid path of a file", path)
		}
	}
	return nil
}

// Hashes returns the hashes of the files.
func (m Manifest) Hashes() map[string]bool {
	all := map[string]bool{}
	for _, f := range m.Files {
		all[f.Hash] = true
	}
	return all
}

// Writer writes a stream.
type Writer struct {
	out *bufio.Writer
	err error
}

// NewWriter starts a stream with the complete manifest, as Encode returned it.
func NewWriter(w io.Writer, h content.Envelope, manifest []byte) *Writer {
	out := &Writer{out: bufio.NewWriterSize(w, 64<<10)}
	h.Kind = Kind
	head, err := h.Bytes()
	if out.err = err; err == nil {
		_, out.err = out.out.Write(head)
	}
	out.put(partManifest, manifest)
	return out
}

// Blob starts the content with a hash.
func (w *Writer) Blob(hash string) { w.put(partBlob, []byte(hash)) }

// Data writes the next octets of the current content, at most 4 MiB.
func (w *Writer) Data(data []byte) { w.put(partData, data) }

// Close ends the stream. It returns the first error.
func (w *Writer) Close() error {
	w.put(partEnd, nil)
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

func (w *Writer) put(kind byte, text []byte) {
	if w.err != nil {
		return
	}
	if kind == partData && len(text) > maxData || len(text) > maxManifest {
		w.err = fmt.Errorf("a part %q of %d octets is too large", kind, len(text))
		return
	}
	if _, w.err = w.out.Write(binary.AppendUvarint([]byte{kind}, uint64(len(text)))); w.err == nil {
		_, w.err = w.out.Write(text)
	}
}

// Receiver receives the parts of a stream in order. The octets of Data are valid until it returns.
type Receiver interface {
	Start(h content.Envelope, m Manifest) error
	Blob(hash string) error
	Data(data []byte) error
	// End is called once if the stream is complete.
	End() error
}

// Read reads one stream to its end. in may contain further streams.
func Read(in *bufio.Reader, t Receiver) error {
	h, err := content.Read(in)
	if err == nil && h.Kind != Kind {
		err = fmt.Errorf("the content is of the kind %q, and not %s", h.Kind, Kind)
	}
	if err != nil {
		return err
	}
	kind, text, err := readPart(in, nil)
	if err == nil && kind != partManifest {
		err = fmt.Errorf("the files begin with a part %q, and not with a manifest", kind)
	}
	if err != nil {
		return err
	}
	m, err := Decode(text)
	if err == nil {
		err = checkRevision(h.To, text)
	}
	if err == nil {
		err = t.Start(h, m)
	}
	for blob := false; err == nil; {
		if kind, text, err = readPart(in, text); err != nil {
			return err
		}
		switch {
		case kind == partBlob:
			blob, err = true, t.Blob(string(text))
		case kind == partData && blob:
			err = t.Data(text)
		case kind == partEnd:
			return t.End()
		default:
			err = fmt.Errorf("unexpected part %q in the stream of files", kind)
		}
	}
	return err
}

// checkRevision returns an error if the hash of a revision is not that of the manifest.
func checkRevision(to string, manifest []byte) error {
	r, err := content.ParseRevision(to)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(manifest); r.Hash != hex.EncodeToString(sum[:]) {
		return errors.New("the manifest of files does not have the hash of its revision")
	}
	return nil
}

// readPart reads a part. It uses the memory of buffer if that suffices.
func readPart(in *bufio.Reader, buffer []byte) (kind byte, text []byte, err error) {
	if kind, err = in.ReadByte(); err == nil {
		var length uint64
		length, err = binary.ReadUvarint(in)
		limit := uint64(maxData)
		if kind == partManifest {
			limit = maxManifest
		}
		if err == nil && length > limit {
			return 0, nil, fmt.Errorf("the file tree has an unexpected part %q of %d octets", kind, length)
		}
		if err == nil {
			if text = buffer[:0]; uint64(cap(text)) < length {
				text = make([]byte, length)
			}
			text = text[:length]
			_, err = io.ReadFull(in, text)
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = content.ErrCut
	}
	return kind, text, err
}

// EmptyRevision returns the revision of a server without files. WriteEmpty writes the stream that results in it.
func EmptyRevision() string {
	_, hash, _ := Manifest{}.Encode()
	return content.Revision{Hash: hash}.String()
}

// WriteEmpty writes a stream that removes all files.
func WriteEmpty(out io.Writer) error {
	text, _, err := Manifest{}.Encode()
	if err != nil {
		return err
	}
	return NewWriter(out, content.Envelope{To: EmptyRevision()}, text).Close()
}
