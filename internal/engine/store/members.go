package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Members calls fn for each member of a JSON object. The object must be valid and written by this program, without spaces between its
// parts. name has no quotes and contains no escapes. Members does not allocate.
func Members(object []byte, fn func(name, raw []byte) error) error {
	bad := func(at int) error { return fmt.Errorf("not a stored JSON object at byte %d", at) }
	if len(object) < 2 || object[0] != '{' || object[len(object)-1] != '}' {
		return bad(0)
	}
	at, end := 1, len(object)-1
	for at < end {
		if object[at] != '"' {
			return bad(at)
		}
		n := bytes.IndexByte(object[at+1:end], '"')
		if n < 0 || at+n+2 >= end || object[at+n+2] != ':' {
			return bad(at)
		}
		name := object[at+1 : at+1+n]
		from := at + n + 3
		to := from + valueLength(object[from:end])
		if to == from {
			return bad(from)
		}
		if err := fn(name, object[from:to]); err != nil {
			return err
		}
		if at = to; at < end {
			if object[at] != ',' {
				return bad(at)
			}
			at++
		}
	}
	return nil
}

// valueLength returns the length of the JSON value at the start of text. It returns 0 if the value is not terminated.
func valueLength(text []byte) int {
	if len(text) > 0 && text[0] == '"' {
		return stringLength(text)
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			n := stringLength(text[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	if depth != 0 {
		return 0
	}
	return len(text)
}

// stringLength returns the length, including quotes, of the JSON string at the start of text. It returns 0 if the string is not
// terminated.
func stringLength(text []byte) int {
	end := bytes.IndexByte(text[1:], '"') + 1
	if end == 0 {
		return 0
	}
	if bytes.IndexByte(text[1:end], '\\') < 0 { // the usual case
		return end + 1
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// Rewritten returns a copy of object with the given values for existing members. object must be written by this program.
func Rewritten(object []byte, values map[string][]byte) ([]byte, error) {
	var o Object
	err := o.Read(object)
	for name, raw := range values {
		o.Set(name, raw)
	}
	return o.Text(), err
}

// Object is a parsed JSON object that this program wrote. Its members can be read and replaced.
type Object struct{ members []member }

type member struct{ name, raw []byte }

// Read parses an object. It discards the previous content and reuses its memory. The Object refers to the memory of text.
func (o *Object) Read(text []byte) error {
	o.members = o.members[:0]
	return Members(text, func(name, raw []byte) error {
		o.members = append(o.members, member{name, raw})
		return nil
	})
}

// indexOf returns the index of a member, or -1 if it does not exist.
func (o *Object) indexOf(name string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return string(m.name) == name })
}

// Get returns the value of a member as JSON, or nil if it does not exist.
func (o *Object) Get(name string) []byte {
	if at := o.indexOf(name); at >= 0 {
		return o.members[at].raw
	}
	return nil
}

// Set replaces the value of a member, if it exists. raw is JSON.
func (o *Object) Set(name string, raw []byte) {
	if at := o.indexOf(name); at >= 0 {
		o.members[at].raw = raw
	}
}

// Text returns the current object in newly allocated memory.
func (o *Object) Text() []byte {
	size := 2
	for _, m := range o.members {
		size += len(m.name) + len(m.raw) + len(`"":,`)
	}
	text := append(make([]byte, 0, size), '{')
	for i, m := range o.members {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, '"'), m.name...), '"', ':')
		text = append(text, m.raw...)
	}
	return append(text, '}')
}

// AppendString appends s to b as a JSON string.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			var text bytes.Buffer
			e := json.NewEncoder(&text)
			e.SetEscapeHTML(false)              // the answers are not HTML, and links contain ampersands
			if err := e.Encode(s); err != nil { // encoding a string cannot fail
				panic(err)
			}
			return append(b, bytes.TrimSuffix(text.Bytes(), []byte{'\n'})...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
