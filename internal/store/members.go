package store

import (
	"bytes"
	"fmt"
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

// stringLength is how long the string is, with its quotes, that text begins with.
func stringLength(text []byte) int {
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
	out := make([]byte, 1, len(object)+256)
	out[0] = '{'
	err := Members(object, func(name, raw []byte) error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), name...), '"', ':')
		if value, ok := values[string(name)]; ok {
			raw = value
		}
		out = append(out, raw...)
		return nil
	})
	return append(out, '}'), err
}
