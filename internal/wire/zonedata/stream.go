package zonedata

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"portolan/internal/wire/content"
)

// Kind is the content kind of the stream (content.Envelope).
const Kind = "zones"

// A stream contains the changes from one revision of a server's content to another: an envelope, the settings if they have changed, the
// records of each changed zone, and an end mark. Each part has a letter, its length, and its bytes.
const (
	partSettings = 'S'
	partZone     = 'Z'
	partRemoved  = '-'
	partAdded    = '+'
	partGone     = 'X'
	partEnd      = 'E'
)

// Header is the envelope at the start of a stream.
type Header = content.Envelope

// Change starts the part of a zone. The removed records follow, then the added ones.
type Change struct {
	ID string `json:"id"`
	// From is the hash of the content before the change; empty if there was none, or if it is replaced completely. To is the hash after it.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Serial is the serial number of the zone after the change.
	Serial uint32 `json:"serial"`
}

// partSize is the approximate size of a part with records, and MaxPart the maximum size of any part, in bytes. The settings of a server are
// one part: they name all its zones, with some 600 bytes for a zone, and 1,200 for a signed one.
const (
	partSize = 64 << 10
	MaxPart  = 64 << 20
)

// Writer writes a stream.
type Writer struct {
	out  *bufio.Writer
	kind byte
	part []byte
	err  error
}

// NewWriter starts a stream.
func NewWriter(w io.Writer, h Header) *Writer {
	out := &Writer{out: bufio.NewWriterSize(w, partSize)}
	h.Kind = Kind
	head, err := h.Bytes()
	if out.err = err; err == nil {
		_, out.err = out.out.Write(head)
	}
	return out
}

// Settings writes changed settings, as JSON.
func (w *Writer) Settings(text []byte) { w.write(partSettings, text) }

// Zone starts the part of a zone.
func (w *Writer) Zone(c Change) { w.document(partZone, c) }

// Removed writes a removed record of the current zone.
func (w *Writer) Removed(r Record) { w.record(partRemoved, r) }

// Added writes an added record of the current zone.
func (w *Writer) Added(r Record) { w.record(partAdded, r) }

// Deleted reports that a zone is not served any more.
func (w *Writer) Deleted(id string) { w.write(partGone, []byte(id)) }

// Close ends the stream. It returns the first error.
func (w *Writer) Close() error {
	w.write(partEnd, nil)
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

func (w *Writer) document(kind byte, v any) {
	text, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.write(kind, text)
}

func (w *Writer) record(kind byte, r Record) {
	if w.kind != kind || len(w.part) > partSize {
		w.flush()
		w.kind = kind
	}
	w.part = AppendRecord(w.part, r)
}

func (w *Writer) flush() {
	if w.kind != 0 {
		kind, part := w.kind, w.part
		w.kind, w.part = 0, w.part[:0]
		w.put(kind, part)
	}
}

func (w *Writer) write(kind byte, text []byte) {
	w.flush()
	w.put(kind, text)
}

func (w *Writer) put(kind byte, text []byte) {
	if w.err != nil {
		return
	}
	var head [1 + binary.MaxVarintLen64]byte
	head[0] = kind
	n := binary.PutUvarint(head[1:], uint64(len(text)))
	if _, w.err = w.out.Write(head[:1+n]); w.err == nil {
		_, w.err = w.out.Write(text)
	}
}

// AppendRecord appends a record with its length.
func AppendRecord(to []byte, r Record) []byte {
	return append(binary.AppendUvarint(to, uint64(len(r))), r...)
}

// Records calls fn for each record that AppendRecord wrote. The records refer to text.
func Records(text []byte, fn func(Record) error) error {
	for len(text) > 0 {
		length, n := binary.Uvarint(text)
		if n <= 0 || length > uint64(len(text)-n) {
			return content.ErrCut
		}
		r := Record(text[n : n+int(length)]) //nolint:gosec // it is at most the length of text
		if err := r.Check(); err != nil {
			return err
		}
		if err := fn(r); err != nil {
			return err
		}
		text = text[n+int(length):] //nolint:gosec // as above
	}
	return nil
}

// Receiver receives the parts of a stream in order. The records stay valid after the call.
type Receiver interface {
	Start(Header) error
	Settings(text []byte) error
	Zone(Change) error
	Removed(Record) error
	Added(Record) error
	Deleted(id string) error
	// End is called once if the stream is complete.
	End() error
}

// Read reads a stream to its end.
func Read(in io.Reader, t Receiver) error {
	r := bufio.NewReaderSize(in, partSize)
	h, err := content.Read(r)
	if err == nil && h.Kind != "" && h.Kind != Kind {
		err = fmt.Errorf("the content is of the kind %q, and not %s", h.Kind, Kind)
	}
	if err == nil {
		err = t.Start(h)
	}
	if err != nil {
		return err
	}
	for zone := false; ; {
		kind, text, err := readPart(r)
		if err != nil {
			return err
		}
		if !zone && (kind == partAdded || kind == partRemoved) {
			return fmt.Errorf("unexpected part %q in the stream of zones", kind)
		}
		switch kind {
		case partSettings:
			err = t.Settings(text)
		case partZone:
			var c Change
			if err = json.Unmarshal(text, &c); err == nil {
				err = t.Zone(c)
			}
			zone = true
		case partRemoved:
			err = Records(text, t.Removed)
		case partAdded:
			err = Records(text, t.Added)
		case partGone:
			err = t.Deleted(string(text))
			zone = false
		case partEnd:
			return t.End()
		default:
			err = fmt.Errorf("read zone stream: unknown part %q; the sender may be newer than this program", kind)
		}
		if err != nil {
			return err
		}
	}
}

func readPart(r *bufio.Reader) (kind byte, text []byte, err error) {
	if kind, err = r.ReadByte(); err == nil {
		var length uint64
		length, err = binary.ReadUvarint(r)
		if err == nil && length > MaxPart {
			return 0, nil, fmt.Errorf("the data of zones has a part of %d bytes", length)
		}
		if err == nil {
			text = make([]byte, length)
			_, err = io.ReadFull(r, text)
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = content.ErrCut
	}
	return kind, text, err
}

// EmptyRevision returns the revision of a server without content. WriteEmpty writes the stream that results in it.
func EmptyRevision() string { return Revision{Hash: Total(nothing, nil)}.String() }

var nothing = []byte("{}")

// WriteEmpty writes a stream that removes all content.
func WriteEmpty(out io.Writer) error {
	w := NewWriter(out, Header{To: EmptyRevision()})
	w.Settings(nothing)
	return w.Close()
}
