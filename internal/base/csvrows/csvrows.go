// Package csvrows reads CSV files (RFC 4180) that may contain invalid rows.
package csvrows

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Rows reads the rows of a file. An invalid row does not affect other rows.
type Rows struct {
	// rest is the unread text in memory. source is the rest of the file; nil at the end.
	rest   string
	source io.Reader
	comma  rune
	// line is the line number of rest.
	line int
	// single is true if each row is one line.
	single bool
	// tries counts the rows that were searched beyond shortRow bytes.
	tries int
}

// New returns the rows of a text whose cells are separated by comma.
func New(text string, comma rune) *Rows { return &Rows{rest: text, comma: comma, line: 1} }

// NewReader returns the rows of a file. It buffers up to 4 MiB, which is also the maximum length of a line.
func NewReader(in io.Reader, comma rune) *Rows { return &Rows{source: in, comma: comma, line: 1} }

// maxBuffered is the maximum number of bytes in memory.
const maxBuffered = 4 << 20

// ErrLong reports a line of more than 4 MiB. Reading ends there.
var ErrLong = fmt.Errorf("a line has more than %d MiB", maxBuffered>>20)

// fill reads more if memory contains less than want bytes or no complete line.
func (c *Rows) fill(want int) error {
	if c.source == nil || len(c.rest) > want && strings.Contains(c.rest, "\n") {
		return nil
	}
	buffer := make([]byte, maxBuffered)
	n := copy(buffer, c.rest)
	more, err := io.ReadFull(c.source, buffer[n:])
	c.rest = string(buffer[:n+more])
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.source = nil
		return nil
	case err == nil && !strings.Contains(c.rest, "\n"):
		return ErrLong
	}
	return err
}

// SingleLines treats each line as a row: a quoted cell cannot contain line breaks.
func (c *Rows) SingleLines() { c.single = true }

// shortRow is the number of bytes that are searched for the end of a multi-line cell. For the first maxLongRows rows, up to maxRow bytes
// are searched. The limit avoids quadratic time for a file of open quotation marks.
const (
	shortRow    = 64 << 10
	maxRow      = 1 << 20
	maxLongRows = 64
)

// ErrQuotes reports a row whose quotation marks do not conform to RFC 4180.
var ErrQuotes = errors.New("a quoted cell has no closing quotation mark, or text after it")

// Next returns the next non-empty row and its first line number. The error is io.EOF at the end, and ErrQuotes for an invalid row; the next
// call continues with the next line. A quotation mark within an unquoted cell is part of the cell.
func (c *Rows) Next() (row []string, line int, err error) {
	for {
		if err := c.fill(shortRow); err != nil {
			return nil, c.line, err
		}
		if c.rest == "" {
			return nil, c.line, io.EOF
		}
		line = c.line
		text, behind, _ := strings.Cut(c.rest, "\n")
		if plain := strings.TrimSuffix(text, "\r"); plain == "" {
			c.rest, c.line = behind, c.line+1
			continue
		} else if !strings.Contains(plain, `"`) {
			c.rest, c.line = behind, c.line+1
			return strings.Split(plain, string(c.comma)), line, nil
		}
		part := c.rest[:min(len(c.rest), max(shortRow, len(text)+1))]
		if c.single {
			part = c.rest[:min(len(c.rest), len(text)+1)]
		}
		r := c.reader(part)
		if row, err = r.Read(); err != nil && !c.single && len(part) < len(c.rest) && c.tries < maxLongRows {
			c.tries++
			if err := c.fill(maxRow); err != nil {
				return nil, c.line, err
			}
			text, behind, _ = strings.Cut(c.rest, "\n")
			r = c.reader(c.rest[:min(len(c.rest), max(maxRow, len(text)+1))])
			row, err = r.Read()
		}
		if err == nil {
			at := int(r.InputOffset())
			c.line += strings.Count(c.rest[:at], "\n")
			c.rest = c.rest[at:]
			return row, line, nil
		}
		bare := errors.Is(err, csv.ErrBareQuote)
		c.rest, c.line = behind, c.line+1
		if r = c.reader(text); bare {
			r.LazyQuotes = true
			if row, err = r.Read(); err == nil {
				return row, line, nil
			}
		}
		return nil, line, ErrQuotes
	}
}

func (c *Rows) reader(text string) *csv.Reader {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord = c.comma, -1
	return r
}
