package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Members calls fn for each member of a JSON object that was written here: without a space between
// its parts, and valid. name is without its quotes; names have no escapes. It allocates nothing.
func Members(object []byte, fn func(name, raw []byte) error) error {
	bad := func(at int) error { return fmt.Errorf("no JSON object of ours at byte %d", at) }
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

// valueLength is how long the JSON value is that text begins with; 0 where it does not end.
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

// stringLength is how long the string is, with its quotes, that text begins with; 0 where it does not end.
func stringLength(text []byte) int {
	end := bytes.IndexByte(text[1:], '"') + 1
	if end == 0 {
		return 0
	}
	if bytes.IndexByte(text[1:end], '\\') < 0 { // as nearly all are
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

// Rewritten gives an object that was written here with other values for some of its members.
func Rewritten(object []byte, values map[string][]byte) ([]byte, error) {
	var o Object
	err := o.Read(object)
	for name, raw := range values {
		o.Set(name, raw)
	}
	return o.Text(), err
}

// An Object is a JSON object that was written here, read once: its members can be looked at, and set to other values.
type Object struct{ members []member }

type member struct{ name, raw []byte }

// Read reads an object. What an Object had before is forgotten, and its memory used again; it refers to that of the text.
func (o *Object) Read(text []byte) error {
	o.members = o.members[:0]
	return Members(text, func(name, raw []byte) error {
		o.members = append(o.members, member{name, raw})
		return nil
	})
}

// at gives where a member is, -1 where there is none.
func (o *Object) at(name string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return string(m.name) == name })
}

// Get gives the value of a member as JSON; nil where there is none.
func (o *Object) Get(name string) []byte {
	if at := o.at(name); at >= 0 {
		return o.members[at].raw
	}
	return nil
}

// Set gives a member that is there another value, as JSON.
func (o *Object) Set(name string, raw []byte) {
	if at := o.at(name); at >= 0 {
		o.members[at].raw = raw
	}
}

// Text gives the object as it is by now, in memory of its own.
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

// AppendString writes a JSON string.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			var text bytes.Buffer
			e := json.NewEncoder(&text)
			e.SetEscapeHTML(false)              // the answers are no HTML, and links have ampersands
			if err := e.Encode(s); err != nil { // a string can always be encoded
				panic(err)
			}
			return append(b, bytes.TrimSuffix(text.Bytes(), []byte{'\n'})...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
