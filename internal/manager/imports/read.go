package imports

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strings"
	"unicode/utf8"

	"portolan/internal/base/csvrows"
	"portolan/internal/base/leasefile"
	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
)

// The supported media types.
const (
	csvType   = "text/csv"
	jsonType  = "application/json"
	linesType = "application/x-ndjson"
	textType  = "text/plain"
)

// row is one row of a file.
type row struct {
	// number is the number of the row, from 1. at describes its position to users: a line of the file, or the number.
	number int64
	at     string
	// members are the members of the row, as in the body of a request. cells are its columns if the file is a table; the type of the row
	// determines which members they are.
	members map[string]json.RawMessage
	cells   []cell
	// guessed reports that the row has no type, and gets that of the import.
	guessed bool
	// wrong is the error of a row that cannot be read; otherwise nil.
	wrong *problem.Problem
	// kind is the type of the row, and sent its members as a resource of the type, if they were prepared (job.readAhead). object is sent,
	// decoded, if that is possible without a look at the database.
	kind   *schema.Type
	sent   map[string]json.RawMessage
	object schema.Object
	// lease is the lease of a row of a lease file; otherwise nil.
	lease *leasefile.Lease
}

// wrongRow returns a row that cannot be read. The rows after it can.
func wrongRow(number int64, at, format string, args ...any) *row {
	return &row{number: number, at: at, wrong: problem.BadRequest("InvalidFileDataValue", format, args...)}
}

// cell is a column of a row and its text.
type cell struct {
	column *schema.Column
	text   string
}

// rowReader returns the rows of a file, and io.EOF at the end. Any other error ends the import.
type rowReader interface{ next() (*row, error) }

// Limits of a row.
const (
	maxRow     = 1 << 20
	maxColumns = 1000
)

// badFile returns the error of a file that cannot be read any further.
func badFile(format string, args ...any) error {
	return problem.BadRequest("InvalidFileDataValue", format, args...)
}

// budget limits the bytes read for one row, including those read ahead.
type budget struct {
	in   io.Reader
	left int
}

// errTooLong reports a row that exceeds the limit.
var errTooLong = fmt.Errorf("a row has more than %d bytes, or does not end", maxRow)

// Read reads within the budget.
func (b *budget) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.in.Read(into)
	b.left -= n
	return n, err
}

// reset sets the budget for another row.
func (b *budget) reset() { b.left = 4 * maxRow }

// readRows opens a file of a media type. h maps the columns of a table; nil if their names are those of fields.
func readRows(kind string, from io.Reader, h *headings) (rowReader, error) {
	file := &budget{in: from}
	file.reset()
	in := bufio.NewReaderSize(file, 64<<10)
	mark, err := in.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(mark) == "\ufeff" {
		_, _ = in.Discard(len(mark)) // it is in the buffer
	}
	switch kind {
	case csvType:
		file.left = math.MaxInt // csvrows limits the rows
		return newCSV(in, h)
	case jsonType:
		return newJSON(in, file)
	}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 0, 64<<10), maxRow)
	if kind == linesType {
		return &jsonLines{lines{scanner: scanner, file: file}}, nil
	}
	return &names{lines{scanner: scanner, file: file}}, nil
}

// csvReader reads a table (RFC 4180) whose first line has the names of the columns.
type csvReader struct {
	in      *csvrows.Rows
	columns []*schema.Column
	count   int64
	// above is the number of lines above the line with the column names.
	above int
	// headings are nil if the names of the columns are those of fields.
	headings *headings
}

// separators are the supported separators of cells.
const separators = ",;\t"

// newCSV reads the column names.
func newCSV(in *bufio.Reader, h *headings) (rowReader, error) {
	head, err := in.Peek(in.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	r := &csvReader{headings: h}
	if bytes.HasPrefix(line, []byte("sep=")) { // written by spreadsheets
		if _, err := in.Discard(min(len(line)+1, len(head))); err != nil {
			return nil, err
		}
		r.above = 1
	}
	comma := rune(separators[0])
	if i := strings.IndexFunc(separators, func(one rune) bool { return bytes.ContainsRune(line, one) }); i >= 0 {
		comma = rune(separators[i])
	}
	r.in = csvrows.NewReader(in, comma)
	names, _, err := r.in.Next()
	if errors.Is(err, io.EOF) {
		return nil, badFile("the file is empty: its first line names the columns")
	}
	if err != nil {
		return nil, badFile("the first line, which names the columns: %v", err)
	}
	if len(names) > maxColumns {
		return nil, badFile("the file has more than %d columns", maxColumns)
	}
	for i, name := range names {
		names[i] = strings.Clone(strings.TrimSpace(name))
	}
	if h != nil {
		r.columns, err = h.columns(names)
		return r, err
	}
	seen := map[string]bool{}
	for _, name := range names {
		column, err := schema.ParseColumn(name)
		if err != nil {
			return nil, badFile("the first line, which names the columns: %v", err)
		}
		if seen[name] {
			return nil, badFile("the header names the column %s twice", name)
		}
		seen[name] = true
		r.columns = append(r.columns, column)
	}
	return r, nil
}

func (r *csvReader) next() (*row, error) {
	var record []string
	var line int
	for strings.Join(record, "") == "" { // skip rows of empty cells
		var err error
		record, line, err = r.in.Next()
		switch {
		case errors.Is(err, csvrows.ErrLong):
			return nil, badFile("behind row %d: %v", r.count, err)
		case errors.Is(err, csvrows.ErrQuotes):
			r.count++
			return wrongRow(r.count, fmt.Sprintf("line %d", line+r.above), "%v", err), nil
		case err != nil:
			return nil, err
		}
	}
	r.count++
	one := &row{number: r.count, at: fmt.Sprintf("line %d", line+r.above)}
	if len(record) != len(r.columns) {
		return wrongRow(r.count, one.at, "%d cells, but the header has %d", len(record), len(r.columns)), nil
	}
	one.cells = make([]cell, 0, len(record))
	length := 0
	for i, text := range record {
		if length += len(text); length > maxRow {
			return wrongRow(r.count, one.at, "it has more than %d bytes", maxRow), nil
		}
		if r.columns[i] != nil {
			one.cells = append(one.cells, cell{r.columns[i], strings.Clone(text)})
		}
	}
	if r.headings != nil && r.headings.of != nil {
		one.cells = r.headings.translate(one.cells)
	}
	return one, nil
}

// jsonReader reads an array of resources, or an object of the API with such an array in its member data.
type jsonReader struct {
	in    *json.Decoder
	file  *budget
	count int64
}

// newJSON reads up to the first resource.
func newJSON(in io.Reader, file *budget) (rowReader, error) {
	r := &jsonReader{in: json.NewDecoder(in), file: file}
	for first := true; ; first = false {
		token, err := r.in.Token()
		switch {
		case err != nil:
			return nil, badFile("the file is neither an array of resources nor an object with such an array as its member data: %v", err)
		case token == json.Delim('['):
			return r, nil
		case token == json.Delim('{') && first || token == "data" && !first:
		default: // another member and its value
			var other json.RawMessage
			if err := r.in.Decode(&other); err != nil {
				return nil, badFile("the file is neither an array of resources nor an object with such an array as its member data")
			}
		}
	}
}

func (r *jsonReader) next() (*row, error) {
	r.file.reset()
	if !r.in.More() {
		if _, err := r.in.Token(); err != nil {
			return nil, badFile("the file ends within its list, behind resource %d", r.count)
		}
		for { // the members after the array
			if _, err := r.in.Token(); errors.Is(err, io.EOF) {
				return nil, io.EOF
			} else if err != nil {
				return nil, badFile("behind the list, resource %d being its last: %v", r.count, err)
			}
		}
	}
	var raw json.RawMessage
	if err := r.in.Decode(&raw); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, badFile("the file ends within resource %d", r.count+1)
		}
		return nil, badFile("resource %d: %v", r.count+1, err)
	}
	r.count++
	return objectRow(r.count, fmt.Sprintf("resource %d", r.count), raw)
}

// objectRow returns the row of a JSON object.
func objectRow(number int64, at string, raw json.RawMessage) (*row, error) {
	if len(raw) > maxRow {
		return wrongRow(number, at, "it has more than %d bytes", maxRow), nil
	}
	members, err := schema.ParseObject(raw, maxColumns)
	if p, ok := problem.As(err); ok {
		return wrongRow(number, at, "%s", p.Message), nil
	}
	return &row{number: number, at: at, members: members}, err
}

// lines reads a file line by line and skips blank lines.
type lines struct {
	scanner     *bufio.Scanner
	file        *budget
	line, count int64
}

func (l *lines) text() (string, error) {
	for l.file.reset(); l.scanner.Scan(); l.file.reset() {
		l.line++
		if text := strings.TrimSpace(l.scanner.Text()); text != "" {
			l.count++
			return text, nil
		}
	}
	err := l.scanner.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return "", badFile("line %d has more than %d bytes", l.line+1, maxRow)
	}
	if err == nil {
		err = io.EOF
	}
	return "", err
}

// jsonLines reads a resource from each line.
type jsonLines struct{ lines }

func (r *jsonLines) next() (*row, error) {
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	return objectRow(r.count, fmt.Sprintf("line %d", r.line), json.RawMessage(text))
}

// names reads a name from each line. # starts a comment.
type names struct{ lines }

func (r *names) next() (*row, error) {
	for {
		text, err := r.text()
		if err != nil {
			return nil, err
		}
		text, _, _ = strings.Cut(text, "#")
		parts := strings.Fields(text)
		if len(parts) == 2 { // a line of a hosts file
			if _, err := netip.ParseAddr(parts[0]); err == nil {
				parts = parts[1:]
			}
		}
		if len(parts) == 0 {
			r.count--
			continue
		}
		text = strings.ToLower(strings.TrimSuffix(strings.Join(parts, " "), "."))
		at := fmt.Sprintf("line %d", r.line)
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\ufffd") // a character that is invalid in names, so the row is rejected
		}
		return &row{number: r.count, at: at, members: map[string]json.RawMessage{"name": schema.AppendString(nil, text)}}, nil
	}
}
