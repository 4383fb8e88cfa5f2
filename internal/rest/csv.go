package rest

import (
	"bytes"
	stdcsv "encoding/csv"
	"encoding/json"
	"strings"

	"portolan/internal/resource"
	"portolan/internal/schema"
)

// csvRows writes a list as CSV (RFC 4180), one line a resource. The columns are the fields asked
// for, or every field of the list's types; a reference shows as its id and its name.
type csvRows struct {
	columns [][]string
	out     *bytes.Buffer
	writer  *stdcsv.Writer
}

func newCSVRows(s resource.Scope, p *schema.Projection) *csvRows {
	c := &csvRows{out: &bytes.Buffer{}}
	c.writer = stdcsv.NewWriter(c.out)
	c.writer.UseCRLF = true
	if p != nil && p.Only != nil {
		c.columns = p.Only.Leaves(nil)
		return c
	}
	seen := map[string]bool{}
	for _, t := range s.Types {
		for _, f := range t.Fields {
			if seen[f.Name] || f.WriteOnly || f.Transient || p != nil && p.Not.Cuts(f.Name) {
				continue
			}
			seen[f.Name] = true
			if f.Kind == schema.Reference {
				c.columns = append(c.columns, []string{f.Name, "id"}, []string{f.Name, "name"})
				continue
			}
			c.columns = append(c.columns, []string{f.Name})
		}
	}
	return c
}

func (c *csvRows) write(b []byte, record []string) []byte {
	c.out.Reset()
	_ = c.writer.Write(record) // a bytes.Buffer takes everything
	c.writer.Flush()
	return append(b, c.out.Bytes()...)
}

func (c *csvRows) begin(b []byte) []byte {
	names := make([]string, len(c.columns))
	for i, path := range c.columns {
		names[i] = strings.Join(path, ".")
	}
	return c.write(b, names)
}

func (c *csvRows) row(b []byte, object []byte, _ bool) ([]byte, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(object, &top); err != nil {
		return b, err
	}
	cells := make([]string, len(c.columns))
	for i, path := range c.columns {
		cells[i] = cell(top, path)
	}
	return c.write(b, cells), nil
}

func (c *csvRows) end(b []byte, _ footer) []byte { return b }

// cell gives the value at a path as text; null and what is not there are empty.
func cell(object map[string]json.RawMessage, path []string) string {
	raw := object[path[0]]
	if len(path) > 1 {
		var inner map[string]json.RawMessage
		if json.Unmarshal(raw, &inner) != nil || inner == nil {
			return ""
		}
		return cell(inner, path[1:])
	}
	if string(raw) == "null" {
		return ""
	}
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return plainCell(text)
	}
	return string(raw)
}

// plainCell keeps a spreadsheet from taking a text for a formula: an apostrophe stands before what would begin
// one. Numbers are no texts, and stay as they are.
func plainCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
