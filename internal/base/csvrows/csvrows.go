// Package csvrows reads files of values between commas (RFC 4180) of which some rows are wrong.
package csvrows

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Rows are the rows of a file. A row that cannot be read takes no other row with it.
type Rows struct {
	// rest is the text that is not read yet, as far as it is in memory. in has what follows; nil is the end.
	rest  string
	in    io.Reader
	comma rune
	// line is the line of rest.
	line int
	// single says that no row has more than one line.
	single bool
	// tries counts rows of more than longestRow that were tried.
	tries int
}

// New returns the rows of a text whose cells are separated by comma.
func New(text string, comma rune) *Rows { return &Rows{rest: text, comma: comma, line: 1} }

// NewReader returns the rows of a file, of which a few MiB are in memory at a time. A line may have up to 4 MiB.
func NewReader(in io.Reader, comma rune) *Rows { return &Rows{in: in, comma: comma, line: 1} }

// atOnce is how many bytes of a file are in memory at most.
const atOnce = 4 << 20

// ErrLong reports a line of more than 4 MiB. Reading ends there.
var ErrLong = fmt.Errorf("a line has more than %d MiB", atOnce>>20)

// fill reads on if less than want bytes, or no whole line, is in memory.
func (c *Rows) fill(want int) error {
	if c.in == nil || len(c.rest) > want && strings.Contains(c.rest, "\n") {
		return nil
	}
	buffer := make([]byte, atOnce)
	n := copy(buffer, c.rest)
	more, err := io.ReadFull(c.in, buffer[n:])
	c.rest = string(buffer[:n+more])
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.in = nil
		return nil
	case err == nil && !strings.Contains(c.rest, "\n"):
		return ErrLong
	}
	return err
}

// SingleLines lets each line be a row: a cell in quotation marks ends in its line.
func (c *Rows) SingleLines() { c.single = true }

// longestRow is the length up to which the end of a cell with line ends is searched, in bytes. Of the first longTries rows it is searched
// further, up to maxRow: a file of nothing but open quotation marks takes no quadratic time.
const (
	longestRow = 64 << 10
	maxRow     = 1 << 20
	longTries  = 64
)

// ErrQuotes is a row whose quotation marks are not those of RFC 4180.
var ErrQuotes = errors.New("a quotation mark is not closed, or stands behind a text in quotation marks")

// Next returns the next row that is not empty, and the line that it begins at. The error is io.EOF at the end, and ErrQuotes of a row that
// cannot be read, behind which it goes on with the next line. A quotation mark inside of a cell without quotation marks is part of it.
func (c *Rows) Next() (row []string, line int, err error) {
	for {
		if err := c.fill(longestRow); err != nil {
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
		part := c.rest[:min(len(c.rest), max(longestRow, len(text)+1))]
		if c.single {
			part = c.rest[:min(len(c.rest), len(text)+1)]
		}
		r := c.reader(part)
		if row, err = r.Read(); err != nil && !c.single && len(part) < len(c.rest) && c.tries < longTries {
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
