package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// wrongKind is the error for a value of another JSON kind than its member. The other values are read.
type wrongKind string

func (e wrongKind) Error() string { return string(e) }

// readJSON reads JSON of another product. Its errors contain the line, the field and the expected kind.
func readJSON(text []byte, into any) error {
	if !utf8.Valid(text) {
		return errors.New("it is not valid UTF-8: save the file as UTF-8")
	}
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	line := func(offset int64) int { return 1 + bytes.Count(text[:min(int(offset), len(text))], []byte("\n")) }
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: invalid JSON: %w", line(syntax.Offset), syntax)
	case errors.As(err, &kind) && kind.Field == "":
		return wrongKind(fmt.Sprintf("line %d: must be %s, not a JSON %s", line(kind.Offset), kindOf(kind.Type), kind.Value))
	case errors.As(err, &kind):
		return wrongKind(fmt.Sprintf("line %d: %s must be %s, not a JSON %s", line(kind.Offset), kind.Field,
			kindOf(kind.Type), kind.Value))
	}
	return err
}

// readPart reads one object of a list. wrong reports a value of another JSON kind than its member. The object is then skipped, and reading
// continues.
func readPart(raw []byte, into any) (wrong, err error) {
	var kind *json.UnmarshalTypeError
	if err = json.Unmarshal(raw, into); !errors.As(err, &kind) {
		return nil, err
	}
	field := strings.TrimPrefix(kind.Field, "keaLevel.")
	return fmt.Errorf("%s must be %s, not a JSON %s", cmp.Or(field, "it"), kindOf(kind.Type), kind.Value), nil
}

// isPartial reports whether a type decodes itself and reports its own wrong values.
func isPartial(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// jsonKeys compares JSON objects with the types that the text is decoded into.
type jsonKeys struct {
	text    []byte
	decoder *json.Decoder
	// offset is the offset up to the newlines counted so far, and line is the line there.
	offset, line int
	members      map[reflect.Type]map[string]reflect.Type
	// unread is called for a key without a member in the type. object is the key of the object.
	unread func(key, object string, line int)
	// wrong is called for a value of another kind than its member, unless the object is partial.
	wrong func(key string, line int, why string)
}

// check reads the text, which must be valid JSON. It returns an error for a key that an object contains twice.
func (k *jsonKeys) check(into any) error {
	k.decoder, k.line, k.members = json.NewDecoder(bytes.NewReader(k.text)), 1, map[reflect.Type]map[string]reflect.Type{}
	return k.value(reflect.TypeOf(into), "", func(string) {})
}

// lineNow returns the current line.
func (k *jsonKeys) lineNow() int {
	now := int(k.decoder.InputOffset())
	k.line += bytes.Count(k.text[k.offset:now], []byte("\n"))
	k.offset = now
	return k.line
}

// value reads a value of a type. A nil type means that the value is not decoded and its keys do not matter. other is called with the kind
// of a value of another kind.
func (k *jsonKeys) value(t reflect.Type, name string, other func(kind string)) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		t = nil
	}
	token, err := k.decoder.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		if t != nil && t.Kind() != reflect.Slice {
			other("array")
			t = nil
		}
		if t != nil {
			t = t.Elem()
		}
		for k.decoder.More() {
			if err := k.value(t, name, other); err != nil {
				return err
			}
		}
		_, err = k.decoder.Token()
		return err
	case json.Delim('{'):
		if t != nil && t.Kind() != reflect.Struct {
			other("object")
			t = nil
		}
		return k.object(t, name)
	}
	if t == nil || token == nil {
		return nil
	}
	var kind string
	var fits bool
	switch token.(type) {
	case string:
		kind, fits = "string", t.Kind() == reflect.String
	case bool:
		kind, fits = "bool", t.Kind() == reflect.Bool
	default:
		kind, fits = "number", t.Kind() == reflect.Int
	}
	if !fits && !isPartial(t) {
		other(kind)
	}
	return nil
}

// membersOf returns the types of the members of a struct, by lower-case key.
func (k *jsonKeys) membersOf(t reflect.Type) map[string]reflect.Type {
	if all, known := k.members[t]; known {
		return all
	}
	all := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() {
			all[strings.ToLower(cmp.Or(tag, f.Name))] = f.Type
		}
	}
	k.members[t] = all
	return all
}

// object reads the members of an object.
func (k *jsonKeys) object(t reflect.Type, name string) error {
	met := map[string]int{}
	for k.decoder.More() {
		token, err := k.decoder.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		line := k.lineNow()
		lower := strings.ToLower(key)
		if first := met[lower]; first != 0 && t != nil {
			return fmt.Errorf("line %d: %s is already in line %d: remove one of the two", line, key, first)
		}
		met[lower] = line
		var of reflect.Type
		other := func(string) {}
		if t != nil {
			var known bool
			if of, known = k.membersOf(t)[lower]; !known {
				k.unread(key, name, line)
			}
			if !isPartial(t) {
				other = func(kind string) {
					k.wrong(key, line, fmt.Sprintf("must be %s, not a JSON %s", kindOf(of), kind))
				}
			}
		}
		if err := k.value(of, key, other); err != nil {
			return err
		}
	}
	_, err := k.decoder.Token()
	return err
}

// kindOf returns the JSON name of the values that a type is decoded from.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return kindOf(t.Elem())
	}
	return "a number"
}
