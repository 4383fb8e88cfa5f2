package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"portolan/client"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"

	"go.yaml.in/yaml/v3"
)

// The output formats.
const (
	Table = "table"
	JSON  = "json"
	YAML  = "yaml"
	CSV   = "csv"
	Name  = "name"
)

// Columns returns the default columns of a table of resources: ID, type if there are several, key, name, and the most informative fields.
// These are states and kinds, a time, a message, references, texts and numbers.
func Columns(c *resource.Collection, types []*schema.Type) (names []string) {
	const limit = 8
	fields := map[string]*schema.Field{}
	var order []*schema.Field
	for _, t := range types {
		for _, f := range t.Fields {
			if fields[f.Name] == nil {
				fields[f.Name] = f
				order = append(order, f)
			}
		}
	}
	add := func(name string) {
		if f := fields[name]; f != nil && !f.WriteOnly && f.Kind != schema.SecretText && len(names) < limit && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add("id")
	if len(types) > 1 {
		add("type")
	}
	for _, name := range []string{"absoluteName", "range", "address"} { // for collections that contain several kinds of resources
		if len(types) == len(c.Types) && name != c.KeyField() {
			continue
		}
		add(name)
	}
	add(c.KeyField())
	if f := fields[c.KeyField()]; f == nil || !f.DNS { // the absolute name contains the name
		add("name")
	}
	for _, group := range []struct {
		max     int
		matches func(f *schema.Field) bool
	}{
		{2, func(f *schema.Field) bool {
			return len(f.Enum) > 0 && f.Kind == schema.Text && !strings.HasPrefix(f.Name, "check")
		}},
		{1, func(f *schema.Field) bool { return f.Kind == schema.Time }},
		{1, func(f *schema.Field) bool { return f.Name == "message" || f.Name == "description" }},
		{2, func(f *schema.Field) bool { return f.Kind == schema.Reference && f.Column != "parent" }},
		{2, func(f *schema.Field) bool {
			return f.Kind == schema.Text && len(f.Enum) == 0 || f.Kind == schema.Address || f.Kind == schema.Integer
		}},
	} {
		before := len(names)
		for _, f := range order {
			if group.matches(f) && f.Name != "type" && !f.Transient && f.Also == "" && len(names) < before+group.max {
				add(f.Name)
			}
		}
	}
	return names
}

// Output writes resources in a format.
type Output struct {
	Format string
	// Columns are the columns of a table or of CSV.
	Columns []string
	// Base is the collection of resources without a link to themselves.
	Base string
	w    io.Writer
	rows [][]string
	n    int
	csv  *csv.Writer
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer, format, base string, columns []string) *Output {
	return &Output{Format: format, Columns: columns, Base: base, w: w}
}

// tableRows is the number of rows that are buffered to compute the column widths of a table.
const tableRows = 1000

// Resource writes one resource.
func (o *Output) Resource(raw json.RawMessage) (err error) {
	defer func() { o.n++ }()
	switch o.Format {
	case JSON:
		before := ",\n"
		if o.n == 0 {
			before = "[\n"
		}
		_, err = fmt.Fprintf(o.w, "%s%s", before, raw)
		return err
	case YAML:
		return o.yaml(raw)
	case Name:
		var one struct {
			ID    int64 `json:"id"`
			Links map[string]struct {
				Href string `json:"href"`
			} `json:"_links"`
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			return err
		}
		if _, at, ok := strings.Cut(one.Links["self"].Href, client.AddressPath); ok {
			_, err := fmt.Fprintln(o.w, at)
			return err
		}
		_, err = fmt.Fprintf(o.w, "%s/%d\n", o.Base, one.ID)
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	text := fieldText
	if o.Format == CSV {
		text = cellText
	}
	return o.row(func(name string) string { return text(memberAt(members, strings.Split(name, "."))) })
}

// cellText returns a value as an import table contains it: a reference as its key, other objects and lists as JSON.
func cellText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
	case '{':
		var head struct {
			ID   int64  `json:"id"`
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &head) != nil || head.ID == 0 || head.Type == "" {
			return string(raw)
		}
	case '[':
		return string(raw)
	default:
		return fieldText(raw)
	}
	return schema.PlainCell(fieldText(raw))
}

// memberAt returns the member of a resource at a path.
func memberAt(members map[string]json.RawMessage, path []string) json.RawMessage {
	raw := members[path[0]]
	for _, name := range path[1:] {
		var inner map[string]json.RawMessage
		if json.Unmarshal(raw, &inner) != nil {
			return nil
		}
		raw = inner[name]
	}
	return raw
}

// yaml writes a resource as a YAML document, without the links of the API.
func (o *Output) yaml(raw json.RawMessage) error {
	var node yaml.Node
	if err := yaml.Unmarshal(raw, &node); err != nil {
		return err
	}
	withoutLinks(&node)
	text, err := encodeYAML(&node)
	if err == nil && o.n > 0 {
		_, err = io.WriteString(o.w, "---\n")
	}
	if err == nil {
		_, err = o.w.Write(text)
	}
	return err
}

func (o *Output) row(value func(name string) string) error {
	cells := make([]string, len(o.Columns))
	for i, name := range o.Columns {
		cells[i] = value(name)
	}
	if o.Format == CSV {
		if o.csv == nil {
			o.csv = csv.NewWriter(o.w)
			if err := o.csv.Write(o.Columns); err != nil {
				return err
			}
		}
		return o.csv.Write(cells)
	}
	if o.rows = append(o.rows, cells); len(o.rows) == tableRows {
		return o.flush()
	}
	return nil
}

// flush writes the buffered rows of a table.
func (o *Output) flush() error {
	if len(o.rows) == 0 {
		return nil
	}
	if o.n < tableRows {
		head := make([]string, len(o.Columns))
		for i, name := range o.Columns {
			head[i] = heading(name)
		}
		o.rows = slices.Insert(o.rows, 0, head)
	}
	err := WriteTable(o.w, o.rows)
	o.rows = nil
	return err
}

// heading returns the column heading of a field: absoluteName becomes ABSOLUTE NAME.
func heading(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// WriteTable writes rows as aligned columns. Cells are cut after 60 characters, except the last cell of a row.
func WriteTable(w io.Writer, rows [][]string) error {
	const widest = 60
	var widths []int
	clean := func(cell string, last bool) string {
		cell = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				return ' '
			}
			return r
		}, cell)
		if runes := []rune(cell); !last && len(runes) > widest {
			cell = string(runes[:widest-1]) + "…"
		}
		return cell
	}
	for _, row := range rows {
		for i := range row {
			if row[i] = clean(row[i], i == len(row)-1); row[i] == "" {
				row[i] = "-"
			}
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b bytes.Buffer
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}

// End writes the rest of the output. It returns the number of resources written.
func (o *Output) End() (shown int, err error) {
	switch o.Format {
	case JSON:
		end := "\n]\n"
		if o.n == 0 {
			end = "[]\n"
		}
		_, err = io.WriteString(o.w, end)
	case CSV:
		if o.csv == nil {
			o.csv = csv.NewWriter(o.w)
			err = o.csv.Write(o.Columns)
		}
		if o.csv.Flush(); err == nil {
			err = o.csv.Error()
		}
	default:
		err = o.flush()
	}
	return o.n, err
}

// WriteOne writes a single resource: as a list of its fields, or as JSON or YAML.
func (o *Output) WriteOne(raw json.RawMessage) error {
	switch o.Format {
	case JSON:
		var b bytes.Buffer
		if err := json.Indent(&b, raw, "", "  "); err != nil {
			return err
		}
		b.WriteByte('\n')
		_, err := o.w.Write(b.Bytes())
		return err
	case Table:
		return o.fields(raw)
	}
	if err := o.Resource(raw); err != nil {
		return err
	}
	_, err := o.End()
	return err
}

// fields writes the fields of a resource that have a value, one per line.
func (o *Output) fields(raw json.RawMessage) error {
	var node yaml.Node
	if err := yaml.Unmarshal(raw, &node); err != nil {
		return err
	}
	var rows [][]string
	members := node.Content[0].Content
	for i := 0; i+1 < len(members); i += 2 {
		name := members[i].Value
		if name == "_embedded" && members[i+1].Kind == yaml.MappingNode { // fields that the API shows as subcollections
			members = append(members, members[i+1].Content...)
			continue
		}
		if strings.HasPrefix(name, "_") {
			continue
		}
		var value any
		if err := members[i+1].Decode(&value); err != nil {
			return err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if shown := fieldText(text); shown != "" {
			rows = append(rows, []string{name, shown})
		}
	}
	return WriteTable(o.w, rows)
}

// toYAML converts JSON to YAML and keeps the order of the members.
func toYAML(raw json.RawMessage) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(raw, &node); err != nil {
		return nil, err
	}
	return encodeYAML(&node)
}

// withoutLinks deletes the links of the API from a resource and from the resources embedded in it.
func withoutLinks(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := len(n.Content) - 2; i >= 0; i -= 2 {
			if n.Content[i].Value == "_links" {
				n.Content = slices.Delete(n.Content, i, i+2)
			}
		}
	}
	for _, c := range n.Content {
		withoutLinks(c)
	}
}

func encodeYAML(node *yaml.Node) ([]byte, error) {
	clearStyle(node)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(node); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// clearStyle removes the JSON style of a node, so that the encoder quotes only where YAML requires it.
func clearStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	if n.Kind == yaml.SequenceNode && len(n.Content) > 0 && len(n.Content) <= 8 &&
		!slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Kind != yaml.ScalarNode }) {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		clearStyle(c)
	}
}
