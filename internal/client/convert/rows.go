package convert

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

// csvRows are the rows of a file of values between commas (RFC 4180). A row that cannot be read takes no other row with it.
type csvRows struct {
	rest  string
	comma rune
	// line is that of the rest.
	line int
}

// longestRow is how long a row may be whose cells have line ends in them, in bytes.
const longestRow = 64 << 10

// errQuotes is a row whose quotation marks are not those of RFC 4180.
var errQuotes = errors.New("a quotation mark is not closed, or stands behind a text in quotation marks")

// next gives the next row that is not empty, and the line that it begins at. The error is io.EOF at the end, and errQuotes of a row that
// cannot be read, behind which it goes on with the next line. A quotation mark inside of a cell without quotation marks is part of it.
func (c *csvRows) next() (row []string, line int, err error) {
	for {
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
		part := c.rest[:min(len(c.rest), longestRow)]
		r := c.reader(part)
		if row, err = r.Read(); err == nil {
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
		return nil, line, errQuotes
	}
}

func (c *csvRows) reader(text string) *csv.Reader {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord = c.comma, -1
	return r
}
