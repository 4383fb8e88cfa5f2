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

// Kind is the kind of content that a stream has (content.Envelope).
const Kind = "zones"

// A stream says how to come from one revision of what a server serves to another one: an envelope, the settings where they are others, what
// there is of each zone that changed, and the end. Each part has a letter, its length, and its bytes.
const (
	partSettings = 'S'
	partZone     = 'Z'
	partRemoved  = '-'
	partAdded    = '+'
	partGone     = 'X'
	partEnd      = 'E'
)

// Header begins a stream.
type Header = content.Envelope

// Change begins what a stream says of a zone: records that are removed, then those that are added.
type Change struct {
	ID string `json:"id"`
	// From is the hash of the content before; empty means that there was none, or that it is replaced whole. To is the one after.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Serial is the serial number of the zone after the change.
	Serial uint32 `json:"serial"`
}

// partSize is how long a part of records is, about, and maxPart how long any may be, in bytes.
const (
	partSize = 64 << 10
	maxPart  = 16 << 20
)

// Writer writes a stream.
type Writer struct {
	out  *bufio.Writer
	kind byte
	part []byte
	err  error
}

// NewWriter begins a stream.
func NewWriter(w io.Writer, h Header) *Writer {
	out := &Writer{out: bufio.NewWriterSize(w, partSize)}
	h.Kind = Kind
	head, err := h.Bytes()
	if out.err = err; err == nil {
		_, out.err = out.out.Write(head)
	}
	return out
}

// Settings gives other settings, as JSON.
func (w *Writer) Settings(text []byte) { w.write(partSettings, text) }

// Zone begins what there is of a zone.
func (w *Writer) Zone(c Change) { w.document(partZone, c) }

// Removed and Added give a record of the zone that was begun.
func (w *Writer) Removed(r Record) { w.record(partRemoved, r) }

// Added gives a record that is added.
func (w *Writer) Added(r Record) { w.record(partAdded, r) }

// Gone says that a zone is served no more.
func (w *Writer) Gone(id string) { w.write(partGone, []byte(id)) }

// Close ends the stream. It gives the first error that there was.
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

// AppendRecord writes a record behind others.
func AppendRecord(to []byte, r Record) []byte {
	return append(binary.AppendUvarint(to, uint64(len(r))), r...)
}

// Records gives the records that AppendRecord wrote, to fn, which may keep them as long as text stays.
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

// Taker takes what a stream says, in its order. Records stay as they are while it is being read and after.
type Taker interface {
	Begin(Header) error
	Settings(text []byte) error
	Zone(Change) error
	Removed(Record) error
	Added(Record) error
	Gone(id string) error
	// End comes once, where the stream is whole.
	End() error
}

// Read reads a stream to its end.
func Read(in io.Reader, t Taker) error {
	r := bufio.NewReaderSize(in, partSize)
	h, err := content.Read(r)
	if err == nil && h.Kind != "" && h.Kind != Kind {
		err = fmt.Errorf("the content is of the kind %q, and not %s", h.Kind, Kind)
	}
	if err == nil {
		err = t.Begin(h)
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
			return fmt.Errorf("the data of zones has a part %q in a wrong place", kind)
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
			err = t.Gone(string(text))
			zone = false
		case partEnd:
			return t.End()
		default:
			err = fmt.Errorf("the data of zones has a part %q, which there is not", kind)
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
		if err == nil && length > maxPart {
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

// Nothing names the content of a server that serves nothing, and WriteNothing writes the stream that leads to it.
func Nothing() string { return Revision{Hash: Total(nothing, nil)}.String() }

var nothing = []byte("{}")

// WriteNothing writes a stream behind which nothing is served.
func WriteNothing(out io.Writer) error {
	w := NewWriter(out, Header{To: Nothing()})
	w.Settings(nothing)
	return w.Close()
}
