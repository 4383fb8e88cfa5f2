package csvrows

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A row with a wrong quotation mark takes no other row with it.
func TestRows(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n\nc,d\r\n":                            "1 a|b, 3 c|d",
		"a,\"b\nc\",d\ne":                           "1 a|b\nc|d, 3 e",
		"19\" rack,b\nc":                            "1 19\" rack|b, 2 c",
		"a,\"b\" c,d\ne,f":                          "1 !, 2 e|f",
		"a,\"b,c\nd,e\nf,g":                         "1 !, 2 d|e, 3 f|g",
		"\"a \"\"b\"\"\",c":                         "1 a \"b\"|c",
		"x\n\"" + strings.Repeat("y\n", longestRow): "",
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
		if got := strings.Join(all, ", "); want != "" && got != want || want == "" && len(all) != longestRow+1 {
			t.Errorf("%.40q: %.100q (%d rows), want %q", text, got, len(all), want)
		}
	}
}

// TestSingleLines reads a quotation mark that is not closed: no other line is taken for a part of the cell.
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
