// Package archive writes the whole database into one file, and a file into an empty database. The file is a zstd stream of JSON lines: a
// head, the rows of each table, and an end with the counts and the SHA-256 of all lines before it. It is a consistent snapshot and can be
// restored into either kind of database.
package archive

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"portolan/internal/engine/store"

	"github.com/klauspost/compress/zstd"
)

// format is the version of the file format.
const format = 1

// head is the first line.
type head struct {
	Portolan string      `json:"portolan"`
	Format   int         `json:"format"`
	Schema   int         `json:"schema"`
	Created  time.Time   `json:"created"`
	Marks    store.Marks `json:"marks"`
}

// line is any other line: a row of a table, or the end. Columns with bytes are in base64.
type line struct {
	Table string `json:"t,omitempty"`
	Row   []any  `json:"r,omitempty"`
	// Bytes are the indexes of the elements of Row that contain bytes.
	Bytes []int `json:"b,omitempty"`
	End   *end  `json:"end,omitempty"`
}

type end struct {
	Counts map[string]int64 `json:"counts"`
	SHA256 string           `json:"sha256"`
}

// Summary describes the content of an archive.
type Summary struct {
	Created time.Time
	Counts  map[string]int64
}

// Rows returns the number of rows.
func (s Summary) Rows() (n int64) {
	for _, count := range s.Counts {
		n += count
	}
	return n
}

// Write writes the whole store to w. It calls progress with the number of rows from time to time.
func Write(ctx context.Context, s *store.Store, w io.Writer, version string, progress func(rows int64)) (sum Summary, err error) {
	z, err := zstd.NewWriter(w)
	if err != nil {
		return sum, err
	}
	digest := sha256.New()
	e := json.NewEncoder(io.MultiWriter(z, digest))
	e.SetEscapeHTML(false)
	sum = Summary{Created: s.Now().UTC(), Counts: map[string]int64{}}
	rows := int64(0)
	err = s.Dump(ctx, func(m store.Marks) error {
		return e.Encode(head{version, format, s.Layout().Version(), sum.Created, m})
	}, func(t *store.Table, row []any) error {
		sum.Counts[t.Name]++
		if rows++; rows%1000 == 0 {
			progress(rows)
		}
		l := line{Table: t.Name, Row: row}
		for i, v := range row {
			if _, ok := v.([]byte); ok {
				l.Bytes = append(l.Bytes, i)
			}
		}
		return e.Encode(l)
	})
	if err == nil {
		err = json.NewEncoder(z).Encode(line{End: &end{sum.Counts, hex.EncodeToString(digest.Sum(nil))}})
	}
	if e := z.Close(); err == nil {
		err = e
	}
	progress(rows)
	return sum, err
}

// errDamaged is returned for a file that has changed since it was written.
var errDamaged = errors.New("the file is damaged")

// reader reads lines and computes their digest.
type reader struct {
	in     *bufio.Reader
	digest hash.Hash
	// maxLength is the maximum length of a line in bytes; 0 means no limit.
	maxLength int
}

// maxLine is the maximum length in bytes of a line in an untrusted file. Rows are stored in parts of about 1 MiB.
const maxLine = 64 << 20

// errLong is returned for a line longer than maxLine.
var errLong = fmt.Errorf("it has a line of more than %d bytes", maxLine)

// line reads a line including its end.
func (r *reader) line() (text []byte, err error) {
	for {
		part, err := r.in.ReadSlice('\n')
		if text = append(text, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
		if r.maxLength > 0 && len(text) > r.maxLength {
			return nil, errLong
		}
	}
}

func (r *reader) next(v any) ([]byte, error) {
	text, err := r.line()
	if errors.Is(err, errLong) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it ends too early (%w)", errDamaged, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("%w: a line cannot be read (%w)", errDamaged, err)
	}
	return text, nil
}

// Restore writes the content of a file into an empty database, completely or not at all. A file of an older version is written into its
// own schema version, which is then migrated like the database of that version. Restore rejects a damaged file and a file of a newer
// version.
func Restore(ctx context.Context, o store.Options, in io.Reader, progress func(rows int64)) (sum Summary, err error) {
	z, err := zstd.NewReader(in)
	if err != nil {
		return sum, err
	}
	defer z.Close()
	r := &reader{in: bufio.NewReaderSize(z, 1<<20), digest: sha256.New()}
	h, err := r.head(o.Layout)
	if err != nil {
		return sum, err
	}
	o.Schema = h.Schema
	s, err := store.Open(o)
	if err != nil {
		return sum, err
	}
	sum, err = r.load(ctx, s, h, progress)
	if e := s.Close(); err == nil {
		err = e
	}
	if err != nil || h.Schema == o.Layout.Version() {
		return sum, err
	}
	o.Schema = 0
	if s, err = store.Open(o); err != nil {
		return sum, fmt.Errorf("migrate the restored data: %w", err)
	}
	return sum, s.Close()
}

// maxWindow is the maximum size in bytes of the decompression window. Write needs less.
const maxWindow = 32 << 20

// Verify reads a file to its end, like Restore, and writes nothing. It is for untrusted files: it limits the memory and stops when ctx
// ends.
func Verify(ctx context.Context, l *store.Layout, in io.Reader) (sum Summary, err error) {
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return sum, err
	}
	defer z.Close()
	r := &reader{in: bufio.NewReaderSize(z, 1<<20), digest: sha256.New(), maxLength: maxLine}
	h, err := r.head(l)
	if err != nil {
		return sum, err
	}
	sum = Summary{Created: h.Created, Counts: map[string]int64{}}
	return sum, r.rows(l, &sum, func(*store.Table, []any) error { return ctx.Err() }, func(int64) {})
}

// head reads the first line.
func (r *reader) head(l *store.Layout) (h head, err error) {
	text, err := r.next(&h)
	switch {
	case errors.Is(err, zstd.ErrMagicMismatch):
		return h, errNone
	case err != nil:
		return h, err
	case h.Format == 0 || h.Portolan == "" || h.Schema < 1:
		return h, errNone
	case h.Format > format || h.Schema > l.Version():
		return h, fmt.Errorf("the file was written by a newer portolan (%s, schema %d; this one has schema %d)", h.Portolan, h.Schema,
			l.Version())
	}
	r.digest.Write(text)
	return h, nil
}

func (r *reader) load(ctx context.Context, s *store.Store, h head, progress func(rows int64)) (sum Summary, err error) {
	sum = Summary{Created: h.Created, Counts: map[string]int64{}}
	err = s.Load(ctx, func(mark func(store.Marks) error, add func(t *store.Table, row []any) error) error {
		if err := mark(h.Marks); err != nil {
			return err
		}
		return r.rows(s.Layout(), &sum, add, progress)
	})
	return sum, err
}

// rows reads all rows and the end.
func (r *reader) rows(l *store.Layout, sum *Summary, add func(t *store.Table, row []any) error, progress func(rows int64)) error {
	tables := map[string]*store.Table{}
	for _, t := range l.ListCarried() {
		tables[t.Name] = t
	}
	for rows := int64(0); ; {
		var at line
		text, err := r.next(&at)
		if err != nil {
			return err
		}
		if at.End != nil {
			progress(rows)
			if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
				return fmt.Errorf("%w: it has data after its end", errDamaged)
			}
			return r.finish(sum, at.End)
		}
		r.digest.Write(text)
		t := tables[at.Table]
		if t == nil {
			return fmt.Errorf("%w: it has rows of an unknown table %q", errDamaged, at.Table)
		}
		row, err := at.values(text)
		if err != nil {
			return err
		}
		if err := add(t, row); err != nil {
			return err
		}
		sum.Counts[t.Name]++
		if rows++; rows%1000 == 0 {
			progress(rows)
		}
	}
}

func (r *reader) finish(sum *Summary, e *end) error {
	if e.SHA256 != hex.EncodeToString(r.digest.Sum(nil)) {
		return fmt.Errorf("%w: its content does not match its hash", errDamaged)
	}
	for name, n := range e.Counts {
		if sum.Counts[name] != n {
			return fmt.Errorf("%w: %d rows of %s, not %d", errDamaged, sum.Counts[name], name, n)
		}
	}
	return nil
}

// values returns a row with the types of the store: int64, string, []byte and nil.
func (l *line) values(text []byte) ([]any, error) {
	var exact struct {
		Row []json.RawMessage `json:"r"`
	}
	if err := json.Unmarshal(text, &exact); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	row := make([]any, len(exact.Row))
	for i, raw := range exact.Row {
		var number int64
		var word string
		switch {
		case string(raw) == "null":
		case raw[0] == '"' && json.Unmarshal(raw, &word) == nil:
			row[i] = word
		case json.Unmarshal(raw, &number) == nil:
			row[i] = number
		default:
			return nil, fmt.Errorf("%w: a value is neither text nor a whole number", errDamaged)
		}
	}
	for _, i := range l.Bytes {
		var data []byte
		if i < 0 || i >= len(row) || json.Unmarshal(exact.Row[i], &data) != nil {
			return nil, fmt.Errorf("%w: bytes cannot be read", errDamaged)
		}
		row[i] = data
	}
	return row, nil
}
