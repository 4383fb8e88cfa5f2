package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Column is a column of a table of resources: the path of its value, by member names and list positions, such as name, location.id or
// addresses[0].address.
type Column struct {
	// Name is the column's name as written.
	Name string
	path []step
}

// step is one step of a path: a member by its name or, if that is empty, a list element by its position.
type step struct {
	name  string
	place int
}

// maxPlace is the maximum number of elements of a list that a table may have columns for.
const maxPlace = 1000

// maxColumnName is the maximum length of a column's name, in bytes.
const maxColumnName = 255

// ColumnAt returns the column with a path of names.
func ColumnAt(names ...string) *Column {
	c := &Column{Name: strings.Join(names, ".")}
	for _, name := range names {
		c.path = append(c.path, step{name: name})
	}
	return c
}

// ParseColumn parses a column's name.
func ParseColumn(text string) (*Column, error) {
	c := &Column{Name: text}
	if len(text) > maxColumnName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return nil, fmt.Errorf("the name of a column must be UTF-8 of at most %d bytes, without control characters", maxColumnName)
	}
	for part := range strings.SplitSeq(text, ".") {
		name, rest, bracket := strings.Cut(part, "[")
		if name == "" || bracket && rest == "" {
			return nil, fmt.Errorf("%q is not a column; give a name such as name or location.id", text)
		}
		c.path = append(c.path, step{name: name})
		for rest != "" {
			place, after, ok := strings.Cut(rest, "]")
			n, err := strconv.Atoi(place)
			if !ok || err != nil || n < 0 || n >= maxPlace {
				return nil, fmt.Errorf("%q: a position in a list must be a number below %d in brackets", text, maxPlace)
			}
			c.path = append(c.path, step{place: n})
			rest = strings.TrimPrefix(after, "[")
		}
	}
	if len(c.path) > MaxPath {
		return nil, fmt.Errorf("%q must have at most %d parts", text, MaxPath)
	}
	return c, nil
}

// Member returns the name of the resource member that has the column's value.
func (c *Column) Member() string { return c.path[0].name }

// Text returns the column's value in a resource as text; null and missing values are empty.
func (c *Column) Text(members map[string]json.RawMessage) string {
	raw := members[c.path[0].name]
	for _, s := range c.path[1:] {
		if s.name == "" {
			var list []json.RawMessage
			if json.Unmarshal(raw, &list) != nil || s.place >= len(list) {
				return ""
			}
			raw = list[s.place]
			continue
		}
		var inner map[string]json.RawMessage
		if json.Unmarshal(raw, &inner) != nil || inner == nil {
			return ""
		}
		raw = inner[s.name]
	}
	if string(raw) == "null" {
		return ""
	}
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return PlainCell(text)
	}
	return string(raw)
}

// nullCell is the text of a cell that removes a value.
const nullCell = "null"

// formula are the characters that start a formula in a spreadsheet.
const formula = "=+-@\t\r"

// PlainCell prevents a spreadsheet from reading a text as a formula: it puts an apostrophe in front. Numbers are not texts, and stay
// unchanged.
func PlainCell(text string) string {
	if text != "" && strings.ContainsRune(formula+"'", rune(text[0])) || text == nullCell {
		return "'" + text
	}
	return text
}

// cellText removes the apostrophe of PlainCell.
func cellText(text string) string {
	if len(text) > 1 && text[0] == '\'' && (strings.ContainsRune(formula+"'", rune(text[1])) || text[1:] == nullCell) {
		return text[1:]
	}
	return text
}

// IsWhole reports whether the column is a whole member, not a part of one.
func (c *Column) IsWhole() bool { return len(c.path) == 1 }

// TableRow is a row of a table, as the members of a resource of a type.
type TableRow struct {
	t        *Type
	topLevel map[string]*node
}

// NewTableRow returns an empty row.
func NewTableRow(t *Type) *TableRow { return &TableRow{t, map[string]*node{}} }

// node is a value under construction: raw JSON, members of an object, or elements of a list.
type node struct {
	raw     json.RawMessage
	members map[string]*node
	list    []*node
}

// SetCell adds the value of a cell, as the body of a request would; it ignores blanks around it. A column for a part of a member overrides
// an earlier column for the whole member. A reference given as a string stays a string. Put refuses a cell that conflicts with another one
// of the row, and a string for a list of references.
func (r *TableRow) SetCell(c *Column, text string) error {
	f := r.t.ByName[c.path[0].name]
	value := c.cellValue(f, strings.TrimSpace(text))
	if f != nil && f.Kind == References && c.IsWhole() && value[0] == '"' {
		return fmt.Errorf("%s: is a list of references; name the column %s[0].%s", c.Name, c.Name, cmp.Or(f.Identify, "id"))
	}
	top := r.topLevel[c.path[0].name]
	if top == nil {
		top = &node{}
		r.topLevel[c.path[0].name] = top
	}
	for _, s := range c.path[1:] {
		var err error
		if top, err = top.part(s); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	*top = node{raw: value}
	return nil
}

// errConflictingCells reports a cell for a value that another cell has set in a different way.
var errConflictingCells = errors.New("conflicts with another column; keep one of them")

// part returns the part of a value at a step, and creates it if it is missing.
func (n *node) part(s step) (*node, error) {
	if n.raw != nil && string(n.raw) != "null" { // parse it into its parts
		var members map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case s.name != "" && json.Unmarshal(n.raw, &members) == nil:
			n.members = map[string]*node{}
			for name, raw := range members {
				n.members[name] = &node{raw: raw}
			}
		case s.name == "" && json.Unmarshal(n.raw, &list) == nil:
			for _, raw := range list {
				n.list = append(n.list, &node{raw: raw})
			}
		default:
			return nil, errConflictingCells
		}
	}
	n.raw = nil
	switch {
	case s.name != "" && n.list != nil, s.name == "" && n.members != nil:
		return nil, errConflictingCells
	case s.name != "":
		if n.members == nil {
			n.members = map[string]*node{}
		}
		if n.members[s.name] == nil {
			n.members[s.name] = &node{}
		}
		return n.members[s.name], nil
	case s.place > len(n.list):
		return nil, fmt.Errorf("the list has no entry [%d]; number the entries from 0 without gaps", len(n.list))
	case s.place == len(n.list):
		n.list = append(n.list, &node{})
	}
	return n.list[s.place], nil
}

// MarshalJSON encodes the value.
func (n *node) MarshalJSON() ([]byte, error) {
	switch {
	case n.members != nil:
		return json.Marshal(n.members)
	case n.list != nil:
		return json.Marshal(n.list)
	case n.raw == nil:
		return []byte("null"), nil
	}
	return n.raw, nil
}

// Members returns the members of the row.
func (r *TableRow) Members() (map[string]json.RawMessage, error) {
	members := make(map[string]json.RawMessage, len(r.topLevel))
	for name, top := range r.topLevel {
		if f := r.t.ByName[name]; f != nil && f.Kind == Reference && top.members["id"] != nil && string(top.members["id"].raw) == "null" {
			top = &node{} // null, whatever its name was
		}
		raw, err := top.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		members[name] = raw
	}
	return members, nil
}

// cellValue returns the JSON value of a cell, by the kind of the field, which may be nil.
func (c *Column) cellValue(f *Field, text string) json.RawMessage {
	if text == "" || text == nullCell {
		return json.RawMessage("null")
	}
	if f != nil && f.Members != nil {
		var names []string
		for _, s := range c.path[1:] {
			if s.name != "" {
				names = append(names, s.name)
			}
		}
		if len(names) > 0 {
			f = f.MemberAt(names)
		}
	}
	if f == nil || f.Kind == Map && len(c.path) > 1 {
		return AppendString(nil, cellText(text))
	}
	refers := f.Kind == Reference || f.Kind == References
	switch {
	case refers && len(c.path) > 1 && c.path[len(c.path)-1].name == "id" && hasOnlyDigits(text):
		return json.RawMessage(text)
	case refers && len(c.path) > 1:
	case f.Kind == Reference && hasOnlyDigits(text):
		return json.RawMessage(`{"id":` + text + `}`)
	case f.Kind == Bool: // a spreadsheet writes TRUE
		if lower := strings.ToLower(text); lower == "true" || lower == "false" {
			return json.RawMessage(lower)
		}
	case f.Kind == Integer || f.Kind == Float || f.Any || strings.ContainsRune("{[", rune(text[0])) && f.isStructured():
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	case f.Kind == Strings:
		return append(AppendString([]byte("["), cellText(text)), ']')
	}
	return AppendString(nil, cellText(text))
}

// isStructured reports whether a value of the field is an object or a list.
func (f *Field) isStructured() bool {
	switch f.Kind {
	case Map, Raw, Strings, Integers, Reference, References, Nested, NestedList:
		return true
	}
	return false
}

func hasOnlyDigits(text string) bool {
	return text != "" && len(bytes.Trim([]byte(text), "0123456789")) == 0
}
