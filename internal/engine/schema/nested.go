package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"portolan/internal/base/problem"
)

// Checker is a nested object that checks its members. It may set members. An error from At names one of them.
type Checker interface{ Check() error }

// declareNested declares the field as a nested object (pointer to a struct) or a list of objects (slice of structs), whose members are
// declared like fields.
func (f *Field) declareNested(goType reflect.Type) {
	s := goType
	f.Kind, f.goType = Nested, goType
	if s.Kind() == reflect.Slice {
		f.Kind, s = NestedList, s.Elem()
	}
	if s.Kind() != reflect.Struct || f.Kind == Nested && !f.ptr {
		panic(fmt.Sprintf("field %s has a type that no field may have: %s", f.Name, goType))
	}
	for i := range s.NumField() {
		member := s.Field(i)
		tag, ok := member.Tag.Lookup("api")
		if !ok {
			continue
		}
		m := declareField(member, tag, []int{i})
		m.Owner = s.Name()
		if m.Kind == Reference || m.Kind == References || m.Kind == Span {
			panic(fmt.Sprintf("member %s.%s is of a kind that no member may have", f.Name, m.Name))
		}
		f.Members = append(f.Members, m)
		f.secret = f.secret || m.secret
	}
}

// nestedError is an error in a nested object, with its path.
type nestedError struct {
	path    string
	problem *problem.Problem
}

// Error returns the message.
func (e nestedError) Error() string { return e.problem.Message }

// inField returns the problem with the whole path of the member.
func (e nestedError) inField(field string) *problem.Problem {
	p := *e.problem
	path := field + e.path
	p.Message = path + ": " + p.Message
	p.Fields = []string{path}
	return &p
}

// MemberError returns an error of a Checker about one of its members.
func MemberError(member, format string, args ...any) error {
	return nestedError{path: "." + member, problem: problem.BadRequest(problem.InvalidValue, format, args...)}
}

// inPath puts a path in front of the path of an error.
func inPath(path string, err error) error {
	if e := (nestedError{}); errors.As(err, &e) {
		return nestedError{path + e.path, e.problem}
	}
	return nestedError{path, problem.BadRequest(codeOf(err), "%v", err)}
}

// parseNested parses an object, or a list of objects. stored says that it comes from a row, and needs no checks.
func (f *Field) parseNested(raw json.RawMessage, stored bool) (any, error) {
	goType := f.goType
	if f.Kind == Nested {
		v := reflect.New(goType)
		if err := f.readMembers(raw, v, stored); err != nil {
			return nil, err
		}
		return v.Elem().Interface(), nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return nil, valueError("JsonDeserializationError", "must be a list of objects")
	}
	switch n := int64(len(parts)); {
	case stored:
	case f.Min != nil && n < *f.Min:
		return nil, valueError("EmptyFieldValue", "must have %d or more entries", *f.Min)
	case f.Max != nil && n > *f.Max:
		return nil, valueError("ArrayFieldTooBig", "must have at most %d entries", *f.Max)
	}
	list := reflect.MakeSlice(goType, len(parts), len(parts))
	for i, part := range parts {
		if err := f.readMembers(part, list.Index(i).Addr(), stored); err != nil {
			return nil, inPath(fmt.Sprintf("[%d]", i), err)
		}
	}
	return list.Interface(), nil
}

// readMembers decodes the members of one object into the struct that v points to.
func (f *Field) readMembers(raw json.RawMessage, v reflect.Value, stored bool) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return valueError("JsonDeserializationError", "must be an object")
	}
	s := v.Elem()
	for _, m := range f.Members {
		at := s.FieldByIndex(m.Index)
		if m.Default != "" {
			setDefault(at, m)
		}
		value, ok := members[m.Name]
		switch {
		case stored && ok:
			if err := readStored(m, value, at); err != nil { // an older version of Portolan stored objects unchecked
				at.SetZero()
			}
		case stored || m.ReadOnly:
		case !ok && m.OnPost:
			return nestedError{"." + m.Name, problem.BadRequest("MissingRequiredField", "is required and missing")}
		case ok:
			if p := decodeField(m, value, at); p != nil {
				p.Message = strings.TrimPrefix(p.Message[len(p.Fields[0]):], ": ")
				return nestedError{"." + p.Fields[0], p}
			}
		}
	}
	if stored {
		return nil
	}
	if err := f.checkVariant(s); err != nil {
		return err
	}
	if c, ok := v.Interface().(Checker); ok {
		return c.Check()
	}
	return nil
}

// variantOf returns the member that determines the variant of an object, and its value; nil if it has no variants.
func (f *Field) variantOf(s reflect.Value) (*Field, string) {
	for _, m := range f.Members {
		if m.Variant {
			return m, s.FieldByIndex(m.Index).String()
		}
	}
	return nil, ""
}

// checkVariant refuses members of other variants.
func (f *Field) checkVariant(s reflect.Value) error {
	by, variant := f.variantOf(s)
	if by == nil {
		return nil
	}
	for _, m := range f.Members {
		if m.For == nil || slices.Contains(m.For, variant) {
			continue
		}
		if at := s.FieldByIndex(m.Index); !at.IsZero() && m.Default == "" {
			return MemberError(m.Name, "is allowed only if %s is %s", by.Name, strings.Join(m.For, " or "))
		}
		s.FieldByIndex(m.Index).SetZero()
	}
	return nil
}

// appendNested appends an object or a list of objects, with null for members that are not set, and without members of other variants.
func appendNested(b []byte, f *Field, v reflect.Value) (_ []byte, err error) {
	if f.Kind == Nested {
		return appendMembers(b, f, v)
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendMembers(b, f, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendMembers(b []byte, f *Field, s reflect.Value) (_ []byte, err error) {
	_, variant := f.variantOf(s)
	b = append(b, '{')
	from := len(b)
	for _, m := range f.Members {
		if m.WriteOnly || m.For != nil && !slices.Contains(m.For, variant) {
			continue
		}
		if len(b) > from {
			b = append(b, ',')
		}
		b = append(AppendString(b, m.Name), ':')
		if b, err = appendValue(b, m, s.FieldByIndex(m.Index)); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return append(b, '}'), nil
}

// MemberAt returns the member of a nested object at a path, such as version; nil if it does not exist or is not shown.
func (f *Field) MemberAt(path []string) *Field {
	if f.Kind != Nested || len(path) == 0 {
		return nil
	}
	for _, m := range f.Members {
		switch {
		case m.Name != path[0] || !m.Filterable():
		case len(path) == 1:
			return m
		default:
			return m.MemberAt(path[1:])
		}
	}
	return nil
}

// MergeNested merges a member of a merge patch (RFC 7396) into the current value of an object: members that the patch does not name stay.
// If the patch names another variant, it replaces the whole value.
func (f *Field) MergeNested(o Object, patch json.RawMessage) (json.RawMessage, error) {
	at := reflect.ValueOf(o).Elem().FieldByIndex(f.Index)
	if f.Kind != Nested || at.IsNil() {
		return patch, nil
	}
	now, err := appendNested(nil, f, at.Elem())
	if err != nil {
		return nil, err
	}
	by, variant := f.variantOf(at.Elem())
	return mergeObjects(Hide(now), patch, by, variant)
}

// mergeObjects merges a patch into an object; a patch with another variant replaces it.
func mergeObjects(now, patch json.RawMessage, by *Field, variant string) (json.RawMessage, error) {
	var members, change map[string]json.RawMessage
	if json.Unmarshal(patch, &change) != nil || change == nil || json.Unmarshal(now, &members) != nil || members == nil {
		return patch, nil //nolint:nilerr // the field's decoder reports the error
	}
	if by != nil {
		var other string
		if raw, ok := change[by.Name]; ok && (json.Unmarshal(raw, &other) != nil || other != variant) {
			return patch, nil //nolint:nilerr // another variant, or what the field's own reader refuses
		}
	}
	for name, value := range change {
		if bytes.HasPrefix(value, []byte{'{'}) && bytes.HasPrefix(members[name], []byte{'{'}) {
			var err error
			if value, err = mergeObjects(members[name], value, nil, ""); err != nil {
				return nil, err
			}
		}
		members[name] = value
	}
	maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	return json.Marshal(members)
}
