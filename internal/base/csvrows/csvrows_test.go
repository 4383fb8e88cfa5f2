package csvrows

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestRows checks that a row with a wrong quotation mark does not affect other rows.
func TestRows(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n\nc,d\r\n":                          "1 a|b, 3 c|d",
		"a,\"b\nc\",d\ne":                         "1 a|b\nc|d, 3 e",
		"19\" rack,b\nc":                          "1 19\" rack|b, 2 c",
		"a,\"b\" c,d\ne,f":                        "1 !, 2 e|f",
		"a,\"b,c\nd,e\nf,g":                       "1 !, 2 d|e, 3 f|g",
		"\"a \"\"b\"\"\",c":                       "1 a \"b\"|c",
		"x\n\"" + strings.Repeat("y\n", shortRow): "",
	} {
		rows := New(text, ',')
		var all []string
		for {
			row, line, err := rows.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				row = []string{"!"}
			}
			all = append(all, fmt.Sprint(line, " ", strings.Join(row, "|")))
		}
		if got := strings.Join(all, ", "); want != "" && got != want || want == "" && len(all) != shortRow+1 {
			t.Errorf("%.40q: %.100q (%d rows), want %q", text, got, len(all), want)
		}
	}
}

// TestSingleLines reads a quotation mark that is not closed. The cell does not include other lines.
func TestSingleLines(t *testing.T) {
	rows := New("a,\"b\nc,d\ne,f\"\n\"g\",h\n", ',')
	rows.SingleLines()
	var all []string
	for {
		row, line, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			row = []string{"!"}
		}
		all = append(all, fmt.Sprint(line, " ", strings.Join(row, "|")))
	}
	if got := strings.Join(all, ", "); got != "1 !, 2 c|d, 3 e|f\", 4 g|h" {
		t.Errorf("got %q", got)
	}
}

// TestReader reads a file larger than the buffer in small pieces, and a line that is too long.
func TestReader(t *testing.T) {
	const rows = 200_000
	text := strings.Repeat("some name,10.1.0.1,\"a \"\"b\"\"\nc\"\n", rows)
	r := NewReader(iotest.HalfReader(strings.NewReader(text)), ',')
	for i := range rows {
		row, line, err := r.Next()
		if err != nil || line != 1+2*i || strings.Join(row, "|") != "some name|10.1.0.1|a \"b\"\nc" {
			t.Fatalf("row %d: %q in line %d, %v", i, row, line, err)
		}
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last row: %v", err)
	}
	long := NewReader(strings.NewReader("a\n"+strings.Repeat("x", 2*maxBuffered)), ',')
	if _, _, err := long.Next(); err != nil {
		t.Error(err)
	}
	if _, _, err := long.Next(); !errors.Is(err, ErrLong) {
		t.Errorf("a long line: %v", err)
	}
}

// TestLongCells reads a cell of many lines as one row, and reads a file of open quotation marks in reasonable time.
func TestLongCells(t *testing.T) {
	cell := "note\n" + strings.Repeat("a,b\n", 3*shortRow/4)
	for _, r := range []*Rows{New("x,\""+cell+"\"\ny,z\n", ','), NewReader(strings.NewReader("x,\""+cell+"\"\ny,z\n"), ',')} {
		row, _, err := r.Next()
		if err != nil || len(row) != 2 || row[1] != cell {
			t.Fatalf("a long cell is %d cells, %v", len(row), err)
		}
		if row, _, err := r.Next(); err != nil || strings.Join(row, "|") != "y|z" {
			t.Errorf("behind it: %q %v", row, err)
		}
	}
	r, wrong := New(strings.Repeat("\"x y\n", 4*maxLongRows)+strings.Repeat("a,b\n", shortRow), ','), 0
	for {
		_, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, ErrQuotes) {
			wrong++
		}
	}
	if wrong != 4*maxLongRows {
		t.Errorf("%d rows are wrong, want %d", wrong, 4*maxLongRows)
	}
}
