package rest

import (
	"bytes"
	stdcsv "encoding/csv"
	"encoding/json"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// csvRows writes a list as CSV (RFC 4180), one line for each resource. The columns are the selected fields, or every field of the list's
// types; a reference has two columns, its id and its name.
type csvRows struct {
	columns []*schema.Column
	out     *bytes.Buffer
	writer  *stdcsv.Writer
}

func newCSVRows(s resource.Scope, p *schema.Projection) *csvRows {
	c := &csvRows{out: &bytes.Buffer{}}
	c.writer = stdcsv.NewWriter(c.out)
	c.writer.UseCRLF = true
	if p != nil && p.Only != nil {
		for _, path := range p.Only.Leaves(nil) {
			c.columns = append(c.columns, schema.ColumnAt(path...))
		}
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
				c.columns = append(c.columns, schema.ColumnAt(f.Name, "id"), schema.ColumnAt(f.Name, "name"))
				continue
			}
			c.columns = append(c.columns, schema.ColumnAt(f.Name))
		}
	}
	return c
}

func (c *csvRows) write(b []byte, record []string) []byte {
	c.out.Reset()
	_ = c.writer.Write(record) // a bytes.Buffer never fails
	c.writer.Flush()
	return append(b, c.out.Bytes()...)
}

func (c *csvRows) writeHead(b []byte) []byte {
	names := make([]string, len(c.columns))
	for i, column := range c.columns {
		names[i] = column.Name
	}
	return c.write(b, names)
}

func (c *csvRows) row(b []byte, object []byte, _ bool) ([]byte, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(object, &top); err != nil {
		return b, err
	}
	cells := make([]string, len(c.columns))
	for i, column := range c.columns {
		cells[i] = column.Text(top)
	}
	return c.write(b, cells), nil
}

func (c *csvRows) end(b []byte, _ footer) []byte { return b }
