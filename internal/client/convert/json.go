package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// wrongKind is a value of another kind than belongs there: it is left out, and all others are read.
type wrongKind string

func (e wrongKind) Error() string { return string(e) }

// readJSON reads JSON that another product has written. It words what is wrong with the line, the field and what belongs there.
func readJSON(text []byte, into any) error {
	if !utf8.Valid(text) {
		return errors.New("it is no UTF-8: save the file as UTF-8")
	}
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	line := func(offset int64) int { return 1 + bytes.Count(text[:min(int(offset), len(text))], []byte("\n")) }
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: it is no JSON: %w", line(syntax.Offset), syntax)
	case errors.As(err, &kind) && kind.Field == "":
		return wrongKind(fmt.Sprintf("line %d: has a JSON %s, where %s belongs", line(kind.Offset), kind.Value, kindOf(kind.Type)))
	case errors.As(err, &kind):
		return wrongKind(fmt.Sprintf("line %d: %s: has a JSON %s, where %s belongs", line(kind.Offset), kind.Field, kind.Value,
			kindOf(kind.Type)))
	}
	return err
}

// readPart reads one object of a list. wrong is a value of another kind than belongs there, which does not end the reading of the file.
func readPart(raw []byte, into any) (wrong, err error) {
	var kind *json.UnmarshalTypeError
	if err = json.Unmarshal(raw, into); !errors.As(err, &kind) {
		return nil, err
	}
	return fmt.Errorf("%s has a JSON %s, where %s belongs", kind.Field, kind.Value, kindOf(kind.Type)), nil
}

// jsonKeys compares the keys of JSON objects with the type that the text is read into.
type jsonKeys struct {
	text []byte
	in   *json.Decoder
	// unread is called for a key that the type has no member for; object is the key that the object is the value of.
	unread func(key, object string, line int)
}

// check reads the text. The error names a key that an object has twice. The text is JSON.
func (k *jsonKeys) check(into any) error {
	k.in = json.NewDecoder(bytes.NewReader(k.text))
	return k.value(reflect.TypeOf(into), "")
}

// value reads a value of a type; nil is a value that is not read, of which the keys do not matter.
func (k *jsonKeys) value(t reflect.Type, name string) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := k.in.Token()
	switch {
	case err != nil:
		return err
	case token == json.Delim('['):
		if t != nil && t.Kind() == reflect.Slice {
			t = t.Elem()
		} else {
			t = nil
		}
		for k.in.More() {
			if err := k.value(t, name); err != nil {
				return err
			}
		}
		_, err = k.in.Token()
		return err
	case token == json.Delim('{'):
		return k.object(t, name)
	}
	return nil
}

// object reads the members of an object.
func (k *jsonKeys) object(t reflect.Type, name string) error {
	if t != nil && t.Kind() != reflect.Struct {
		t = nil
	}
	met := map[string]int{}
	for k.in.More() {
		token, err := k.in.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		line := 1 + bytes.Count(k.text[:k.in.InputOffset()], []byte("\n"))
		if first := met[strings.ToLower(key)]; first != 0 && t != nil {
			return fmt.Errorf("line %d: %s is there in line %d already: remove one of the two", line, key, first)
		}
		met[strings.ToLower(key)] = line
		var of reflect.Type
		if t != nil {
			fields := reflect.VisibleFields(t)
			i := slices.IndexFunc(fields, func(f reflect.StructField) bool {
				tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				return strings.EqualFold(tag, key) || tag == "" && f.IsExported() && strings.EqualFold(f.Name, key)
			})
			if i >= 0 {
				of = fields[i].Type
			} else {
				k.unread(key, name, line)
			}
		}
		if err := k.value(of, key); err != nil {
			return err
		}
	}
	_, err := k.in.Token()
	return err
}

// kindOf is what JSON calls the values that a type is read from.
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
