package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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
