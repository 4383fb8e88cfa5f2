package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
)

// Decode writes the members of a request into the object. It ignores unknown and read-only members (spec.md 2.8). It returns the names of
// the fields it set, and all problems it found.
func (t *Type) Decode(o Object, members map[string]json.RawMessage, create bool) (given map[string]bool, problems []*problem.Problem) {
	return t.DecodeOver(o, o, members, create)
}

// DecodeOver is Decode into an object that replaces the object was.
func (t *Type) DecodeOver(o, was Object, members map[string]json.RawMessage, create bool) (given map[string]bool,
	problems []*problem.Problem,
) {
	v := reflect.ValueOf(o).Elem()
	given = map[string]bool{}
	for _, f := range t.Fields {
		raw, ok := members[f.Name]
		if !ok || f.ReadOnly || f.CreateOnly && !create || f.Name == "type" || f.Column != "" {
			continue
		}
		if f.Also != "" && members[f.Also] != nil { // both are compared together
			continue
		}
		if f.alternative != nil && members[f.alternative.Name] != nil {
			given[f.alternative.Name] = true
			one, p := t.chooseValue(was, f, raw, members[f.alternative.Name])
			if p != nil {
				problems = append(problems, p)
				continue
			}
			raw = one
		}
		if p := decodeField(f, raw, v.FieldByIndex(f.Index)); p != nil {
			problems = append(problems, p)
			continue
		}
		given[f.Name] = true
		if f.Also != "" {
			given[f.Also] = true
		}
	}
	return given, problems
}

// chooseValue returns the value of a field that the request has by both of its names: the one that differs from the current value. It
// refuses two values that both differ from it and from each other.
func (t *Type) chooseValue(o Object, f *Field, raw, other json.RawMessage) (json.RawMessage, *problem.Problem) {
	switch {
	case bytes.Equal(raw, other), !t.DiffersFrom(o, f.alternative, other):
		return raw, nil
	case !t.DiffersFrom(o, f, raw):
		return other, nil
	}
	return nil, problem.Field("ConflictingResourceFieldValues", f.alternative.Name,
		"is another name of %s, which has a different value: give only one of them", f.Name)
}

// DiffersFrom reports whether a member has another value than an object's field. Values that cannot be parsed differ.
func (t *Type) DiffersFrom(o Object, f *Field, raw json.RawMessage) bool {
	if f.Kind == SecretText && string(raw) == "null" { // every secret is shown as null
		return false
	}
	other := reflect.New(t.goType).Elem()
	if decodeField(f, raw, other.FieldByIndex(f.Index)) != nil {
		return true
	}
	return !reflect.DeepEqual(other.FieldByIndex(f.Index).Interface(), reflect.ValueOf(o).Elem().FieldByIndex(f.Index).Interface())
}

// codedError is an error about a value, with its published code.
type codedError struct {
	code string
	error
}

// Unwrap returns the error without the code.
func (c codedError) Unwrap() error { return c.error }

// valueError returns an error about a value.
func valueError(code, format string, args ...any) error {
	return codedError{code, fmt.Errorf(format, args...)}
}

// withCode adds a code to an error; nil stays nil.
func withCode(code string, err error) error {
	if err == nil {
		return nil
	}
	return codedError{code, err}
}

// codeOf returns the code of an error about a value, or the code for other errors.
func codeOf(err error) string {
	if c := (codedError{}); errors.As(err, &c) {
		return c.code
	}
	return problem.InvalidValue
}

// decodeField writes one JSON value into a field of an object.
func decodeField(f *Field, raw json.RawMessage, v reflect.Value) *problem.Problem {
	if string(raw) == "null" {
		if !f.Nullable && f.Kind != SecretText { // secrets are shown as null
			return problem.Field("EmptyFieldValue", f.Name, "must not be null")
		}
		v.SetZero()
		if f.Kind == References {
			v.Set(reflect.ValueOf(RefList{IsSet: true}))
		}
		return nil
	}
	x, err := f.parse(raw)
	if p := (nestedError{}); errors.As(err, &p) {
		return p.inField(f.Name)
	}
	if err != nil {
		return problem.Field(codeOf(err), f.Name, "%v", err)
	}
	value := reflect.ValueOf(x)
	if f.ptr {
		p := reflect.New(value.Type())
		p.Elem().Set(value)
		value = p
	}
	v.Set(value)
	return nil
}

// parse converts the field's JSON value into the Go value of its struct member.
func (f *Field) parse(raw json.RawMessage) (any, error) {
	switch f.Kind {
	case Bool:
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return nil, valueError("JsonDeserializationError", "must be true or false")
		}
		return b, nil
	case Integer:
		return f.parseInteger(raw)
	case Float:
		var x float64
		if json.Unmarshal(raw, &x) != nil {
			return nil, valueError("JsonDeserializationError", "must be a number")
		}
		if f.Min != nil && x < float64(*f.Min) || f.Max != nil && x > float64(*f.Max) {
			return nil, valueError("ValueOutsideRange", "must be between %d and %d", *f.Min, *f.Max)
		}
		return x, nil
	case Map:
		return f.parseMap(raw)
	case Raw:
		switch {
		case f.List && raw[0] != '[':
			return nil, valueError("JsonDeserializationError", "must be a list")
		case !f.List && !f.Any && raw[0] != '{':
			return nil, valueError("JsonDeserializationError", "must be an object")
		}
		if bytes.Contains(raw, []byte(`$sealed`)) {
			return nil, fmt.Errorf("must not contain $sealed, which is reserved for secrets")
		}
		if bytes.Contains(raw, []byte(`\u0000`)) {
			return nil, fmt.Errorf("must not contain a NUL character")
		}
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil {
			return nil, err
		}
		return json.RawMessage(b.Bytes()), nil
	case Strings:
		var list []string
		if json.Unmarshal(raw, &list) != nil {
			return nil, valueError("JsonDeserializationError", "must be an array of strings")
		}
		return list, f.checkList(list)
	case Integers:
		var list []int64
		if json.Unmarshal(raw, &list) != nil {
			return nil, valueError("JsonDeserializationError", "must be an array of whole numbers")
		}
		return list, nil
	case Reference:
		return f.parseRef(raw)
	case References:
		return f.parseRefs(raw)
	case SecretText:
		return f.parseSecret(raw)
	case Nested, NestedList:
		return f.parseNested(raw, false)
	}
	var text string
	if f.Digits && len(bytes.Trim(raw, "0123456789")) == 0 {
		text = string(raw)
	} else if json.Unmarshal(raw, &text) != nil {
		return nil, valueError("JsonDeserializationError", "must be a string")
	}
	return f.parseText(text)
}

func (f *Field) parseInteger(raw json.RawMessage) (any, error) {
	if inner := bytes.Trim(raw, `"`); len(inner) == len(raw)-2 && len(inner) > 0 && len(bytes.Trim(inner, "-0123456789")) == 0 {
		raw = inner // published examples have numbers as strings
	}
	var x float64
	var n int64
	if json.Unmarshal(raw, &n) != nil {
		if json.Unmarshal(raw, &x) != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return nil, valueError("JsonDeserializationError", "must be a whole number")
		}
		n = int64(x)
	}
	switch {
	case f.Min != nil && n < *f.Min:
		return nil, valueError("ValueLessThanMinimum", "must be %d or more", *f.Min)
	case f.Max != nil && n > *f.Max:
		return nil, valueError("ValueOutsideRange", "must be %d or less", *f.Max)
	}
	return n, nil
}

// maxNameLength is the maximum length of names and similar texts, in bytes; only longer texts may have several lines.
const maxNameLength = 255

// parseText parses the kinds that JSON writes as strings.
func (f *Field) parseText(text string) (any, error) {
	switch f.Kind {
	case Address:
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || a.Zone() != "" {
			return nil, valueError("InvalidIpAddressValue", "%q is not an IP address", text)
		}
		return a.Unmap(), nil
	case Span:
		for _, v4 := range []bool{true, false} {
			bits, sized, err := space.ParseSize(text, v4)
			if sized && (err == nil || !v4) {
				return Range{Bits: bits, SizeOnly: true}, withCode("InvalidIpRangeValue", err)
			}
		}
		if strings.Contains(text, ",") {
			relative, err := space.ParseRelative(text)
			return Range{Relative: relative}, withCode("InvalidIpRangeValue", err)
		}
		if mac, err := net.ParseMAC(strings.TrimSpace(text)); err == nil && len(mac) <= 8 {
			return Range{Hardware: mac}, nil
		}
		r, err := space.Parse(text)
		return Range{Range: r}, withCode("InvalidIpRangeValue", err)
	case Time:
		at, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "T", 1)) // published examples have a blank
		if err != nil {
			return nil, valueError("InvalidDateValue", "%q is not a time as in RFC 3339", text)
		}
		return at, nil
	}
	if len(text) > f.MaxLength {
		return nil, valueError("InvalidStringLength", "must have at most %[2]d bytes; it has %[1]d", len(text), f.MaxLength)
	}
	for _, r := range text {
		if unicode.IsControl(r) && (r != '\n' && r != '\t' || f.NonBlank || f.MaxLength <= maxNameLength) {
			return nil, fmt.Errorf("must not contain a control character")
		}
	}
	if f.NonBlank && strings.TrimSpace(text) == "" {
		return nil, valueError("BlankFieldValue", "must not be blank")
	}
	if f.Duration {
		if _, err := ParseDuration(text); err != nil {
			return nil, withCode("InvalidDurationValue", err)
		}
	}
	if f.Enum != nil && !slices.Contains(f.Enum, text) && (f.Others == nil || !f.Others.MatchString(text)) {
		return nil, valueError("InvalidEnumValue", "must be one of %[2]s, not %[1]q", text, strings.Join(f.Enum, ", "))
	}
	return text, nil
}

// checkList checks the length of a list of strings, and each of them.
func (f *Field) checkList(list []string) error {
	if f.Min != nil && int64(len(list)) < *f.Min {
		return valueError("EmptyFieldValue", "must have %d or more entries", *f.Min)
	}
	for i, text := range list {
		one := Field{Kind: Text, MaxLength: f.MaxLength, NonBlank: f.NonBlank, Enum: f.Enum}
		if _, err := one.parseText(text); err != nil {
			return fmt.Errorf("entry %d %w", i, err)
		}
	}
	return nil
}

// isControl reports whether a character is a control character that no value may have. Line feeds and tabs are allowed.
func isControl(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

func (f *Field) parseMap(raw json.RawMessage) (any, error) {
	var loose map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&loose) != nil {
		return nil, valueError("JsonDeserializationError", "must be an object")
	}
	values := make(map[string]string, len(loose))
	for name, value := range loose {
		if name == "$sealed" {
			return nil, fmt.Errorf("must not have a member $sealed, which is reserved for secrets")
		}
		if name == "" || len(name) > f.MaxLength || strings.ContainsFunc(name, isControl) {
			return nil, fmt.Errorf("the name of a member must have 1 to %d bytes, without control characters", f.MaxLength)
		}
		switch x := value.(type) {
		case nil:
		case string:
			if strings.ContainsFunc(x, isControl) {
				return nil, fmt.Errorf("member %q must not contain a control character", name)
			}
			values[name] = x
		case bool, json.Number:
			values[name] = fmt.Sprint(x)
		default:
			return nil, fmt.Errorf("member %q must be a string, a number or a boolean", name)
		}
	}
	return values, nil
}

func (f *Field) parseRef(raw json.RawMessage) (any, error) {
	item, err := parseItem(raw)
	if err != nil {
		return nil, err
	}
	ref := Ref{ID: item.ID}
	if ref.ID == 0 && f.Identify != "" {
		ref.By = item.Text[f.Identify]
	}
	if ref.ID == 0 && ref.By == "" {
		by := "id"
		if f.Identify != "" {
			by += " or " + f.Identify
		}
		return nil, valueError("InvalidInlinedResource", "must name a resource by its %s", by)
	}
	return ref, nil
}

func (f *Field) parseRefs(raw json.RawMessage) (any, error) {
	var raws []json.RawMessage
	if json.Unmarshal(raw, &raws) != nil {
		return nil, valueError("JsonDeserializationError", "must be an array")
	}
	if f.Min != nil && int64(len(raws)) < *f.Min {
		return nil, valueError("EmptyFieldValue", "must have %d or more entries", *f.Min)
	}
	list := RefList{IsSet: true}
	for i, one := range raws {
		item, err := parseItem(one)
		if err != nil {
			return nil, fmt.Errorf("entry %d %w", i, err)
		}
		if item.ID == 0 && len(item.Text) == 0 {
			return nil, valueError("InvalidInlinedResource", "entry %d has no id: choose a resource", i)
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

func parseItem(raw json.RawMessage) (RefItem, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return RefItem{}, valueError("JsonDeserializationError", "must be an object")
	}
	item := RefItem{Text: map[string]string{}}
	if id, ok := members["id"]; ok && string(id) != "null" {
		if json.Unmarshal(id, &item.ID) != nil || item.ID < 1 {
			return item, valueError("InvalidResourceId", "must have a positive number as its id")
		}
	}
	for name, value := range members {
		var text string
		if json.Unmarshal(value, &text) == nil && text != "" {
			item.Text[name] = text
		}
	}
	item.Type = item.Text["type"]
	return item, nil
}

// Missing returns the problem with the required fields that are missing, if any.
func (t *Type) Missing(members map[string]json.RawMessage, put bool) []*problem.Problem {
	var names []string
	for _, f := range t.Fields {
		if f.ReadOnly || f.Name == "type" {
			continue
		}
		required := f.OnPost
		if put {
			required = f.OnPut
		}
		if _, ok := members[f.Name]; required && !ok {
			_, instead := members[f.Unless]
			if f.alternative != nil && !instead {
				_, instead = members[f.alternative.Name]
			}
			if !instead || f.Unless == "" && f.alternative == nil { // a member may have an empty name
				names = append(names, f.Name)
			}
		}
	}
	return MissingFields(names)
}

// MissingFields returns the problem that required fields are missing; nil without names.
func MissingFields(names []string) []*problem.Problem {
	if len(names) == 0 {
		return nil
	}
	return []*problem.Problem{problem.Missing(names...)}
}
