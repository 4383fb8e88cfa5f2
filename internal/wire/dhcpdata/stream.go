package dhcpdata

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"portolan/internal/wire/content"
)

// A stream contains the changes from one revision of a server's content to another: an envelope, the records of each changed unit, and an
// end mark. Each part has a letter, its length, and its bytes.
const (
	partUnit    = 'N'
	partRemoved = '-'
	partAdded   = '+'
	partGone    = 'X'
	partEnd     = 'E'
)

// Change starts the part of a unit. The removed records follow, then the added ones.
type Change struct {
	Unit string `json:"unit"`
	// From is the hash of the unit before the change; empty if the unit is complete. To is the hash after it.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
}

// partSize is the approximate size of a part with records, and maxPart the maximum size of any part, in octets.
const (
	partSize = 64 << 10
	maxPart  = 1 << 20
)

// Writer writes a stream.
type Writer struct {
	out  *bufio.Writer
	kind byte
	part []byte
	err  error
}

// NewWriter starts a stream from a revision, which may be empty, to another.
func NewWriter(w io.Writer, from, to string) *Writer {
	out := &Writer{out: bufio.NewWriterSize(w, partSize)}
	head, err := content.Envelope{Kind: Kind, From: from, To: to, Restores: true}.Bytes()
	if out.err = err; err == nil {
		_, out.err = out.out.Write(head)
	}
	return out
}

// Change starts the part of a unit.
func (w *Writer) Change(c Change) {
	text, err := json.Marshal(c)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.write(partUnit, text)
}

// Removed writes a removed record of the current unit.
func (w *Writer) Removed(r Record) { w.record(partRemoved, r) }

// Added writes an added record of the current unit.
func (w *Writer) Added(r Record) { w.record(partAdded, r) }

// Deleted reports that a unit does not exist any more.
func (w *Writer) Deleted(unit string) { w.write(partGone, []byte(unit)) }

// Close ends the stream. It returns the first error.
func (w *Writer) Close() error {
	w.write(partEnd, nil)
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

func (w *Writer) record(kind byte, r Record) {
	if w.kind != kind || len(w.part) > partSize {
		w.flush()
		w.kind = kind
	}
	w.part = append(binary.AppendUvarint(w.part, uint64(len(r))), r...)
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
	head := binary.AppendUvarint([]byte{kind}, uint64(len(text)))
	if _, w.err = w.out.Write(head); w.err == nil {
		_, w.err = w.out.Write(text)
	}
}

// WriteAll writes a stream with all content to a revision.
func WriteAll(out io.Writer, to string, units Units) error {
	w := NewWriter(out, "", to)
	for _, id := range slices.Sorted(maps.Keys(units)) {
		one := units[id]
		w.Change(Change{Unit: id, To: one.Hash})
		for _, r := range one.Records {
			w.Added(r)
		}
	}
	return w.Close()
}

// ReadAll applies all streams of in, one after another, to content at a revision, and returns the resulting content with its envelope. It
// does not change before. A stream from nothing replaces the content. If a stream after the first one is invalid, ReadAll returns the
// content before it together with the error; an invalid first stream, or one of a chain from nothing, changes nothing.
func ReadAll(in io.Reader, revision string, before Units) (content.Envelope, Units, error) {
	r := bufio.NewReaderSize(in, partSize)
	last := content.Envelope{To: revision}
	first, start := last, before
	fromNothing := false
	for n := 0; ; n++ {
		if _, err := r.Peek(1); n > 0 && errors.Is(err, io.EOF) {
			return last, before, nil
		}
		e, after, err := readStream(r, last.To, before)
		fromNothing = fromNothing || n == 0 && e.From == ""
		if err != nil {
			if fromNothing {
				return first, start, err
			}
			return last, before, err
		}
		last, before = e, after
	}
}

// readStream applies one stream.
func readStream(in *bufio.Reader, revision string, before Units) (e content.Envelope, after Units, err error) {
	if e, err = content.Read(in); err != nil {
		return e, nil, err
	}
	if e.Kind != Kind {
		return e, nil, fmt.Errorf("the content is of the kind %q, and not %s", e.Kind, Kind)
	}
	after = Units{}
	switch {
	case e.From != "" && e.From != revision:
		return e, nil, fmt.Errorf("the content begins at the revision %s, and not at %s", e.From, revision)
	case e.From != "":
		maps.Copy(after, before)
	}
	if err := applyParts(in, after); err != nil {
		return e, nil, err
	}
	to, err := content.ParseRevision(e.To)
	if err == nil && to.Hash != after.Hash().String() {
		err = fmt.Errorf("the content has another hash than its revision %s", e.To)
	}
	return e, after, err
}

// applyParts applies the parts of a stream up to its end mark.
func applyParts(in *bufio.Reader, units Units) error {
	var now *unitChange
	for {
		kind, text, err := readPart(in)
		if err != nil {
			return err
		}
		if now == nil && (kind == partAdded || kind == partRemoved) {
			return fmt.Errorf("unexpected part %q in the content", kind)
		}
		if now != nil && kind != partAdded && kind != partRemoved {
			if err := now.finish(units); err != nil {
				return err
			}
			now = nil
		}
		switch kind {
		case partUnit:
			now, err = startChange(text, units)
		case partRemoved:
			err = eachRecord(text, now.remove)
		case partAdded:
			err = eachRecord(text, now.add)
		case partGone:
			if units[string(text)] == nil {
				return fmt.Errorf("the content removes the unit %q, which does not exist", text)
			}
			delete(units, string(text))
		case partEnd:
			return nil
		default:
			err = fmt.Errorf("the content has a part %q, which does not exist", kind)
		}
		if err != nil {
			return err
		}
	}
}

// unitChange is a unit that is being changed.
type unitChange struct {
	Change
	records map[string]bool
}

func startChange(text []byte, units Units) (*unitChange, error) {
	c := &unitChange{records: map[string]bool{}}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c.Change); err != nil {
		return nil, err
	}
	if _, _, err := parseUnit(c.Unit); err != nil {
		return nil, err
	}
	old := units[c.Unit]
	if c.From == "" {
		return c, nil
	}
	if old == nil || old.Hash != c.From {
		return nil, fmt.Errorf("the unit %s begins at another hash", c.Unit)
	}
	for _, r := range old.Records {
		c.records[string(r)] = true
	}
	return c, nil
}

func (c *unitChange) remove(r Record) error {
	if !c.records[string(r)] {
		return fmt.Errorf("the unit %s lacks a removed record", c.Unit)
	}
	delete(c.records, string(r))
	return nil
}

func (c *unitChange) add(r Record) error {
	if c.records[string(r)] {
		return fmt.Errorf("the unit %s has an added record already", c.Unit)
	}
	if _, err := Decode(r); err != nil {
		return fmt.Errorf("%s: %w", c.Unit, err)
	}
	c.records[string(r)] = true
	return nil
}

// finish stores the changed unit.
func (c *unitChange) finish(units Units) error {
	records := make([]Record, 0, len(c.records))
	for r := range c.records {
		records = append(records, Record(r))
	}
	one, err := NewUnit(c.Unit, records)
	if err == nil && one.Hash != c.To {
		err = fmt.Errorf("the unit %s has another hash than announced", c.Unit)
	}
	if err == nil {
		units[c.Unit] = one
	}
	return err
}

// eachRecord calls fn for each record of a part. The records are copies.
func eachRecord(text []byte, fn func(Record) error) error {
	for len(text) > 0 {
		length, n := binary.Uvarint(text)
		if n <= 0 || length > uint64(len(text)-n) {
			return content.ErrCut
		}
		end := n + int(length)
		if err := fn(bytes.Clone(text[n:end])); err != nil {
			return err
		}
		text = text[end:]
	}
	return nil
}

func readPart(r *bufio.Reader) (kind byte, text []byte, err error) {
	if kind, err = r.ReadByte(); err == nil {
		var length uint64
		length, err = binary.ReadUvarint(r)
		if err == nil && length > maxPart {
			return 0, nil, fmt.Errorf("the content has a part of %d octets", length)
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
