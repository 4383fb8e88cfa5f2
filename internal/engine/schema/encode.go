package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"portolan/internal/engine/store"
)

// Spanned is a type whose resources take up address space.
type Spanned interface{ Span() (low, high netip.Addr) }

// Keyed is a type with its own look-up key.
type Keyed interface{ Key() string }

// KeyKeeper is a Keyed whose key is not in its fields; the key is set when a row is read.
type KeyKeeper interface{ KeepKey(key string) }

// KeyOf returns the look-up key of an object: the result of Keyed, or the field with the tag key; empty if it has none.
func (t *Type) KeyOf(o Object) string {
	if k, ok := o.(Keyed); ok {
		return k.Key()
	}
	for _, f := range t.Fields {
		if f.KeyPrefix != "" {
			text := reflect.ValueOf(o).Elem().FieldByIndex(f.Index).String()
			if kept, err := f.Normalize(text); err == nil { // the validation of the new resource reports other texts
				text = kept
			}
			return f.KeyPrefix + text
		}
	}
	return ""
}

// Row returns the stored form of an object. Its body omits fields that are null. The links of a RefList that is not given are taken from
// old.
func (t *Type) Row(o Object, old *store.Resource) (*store.Resource, error) {
	h := o.head()
	r := &store.Resource{ID: h.ID, Collection: t.Collection, Type: t.Name, Name: h.Name, Parent: h.Parent, Configuration: h.Config}
	if s, ok := o.(Spanned); ok {
		low, high := s.Span()
		r.Low, r.High = store.AddrKey(low), store.AddrKey(high)
	}
	r.Key = t.KeyOf(o)
	v := reflect.ValueOf(o).Elem()
	body := []byte{'{'}
	lists := map[string]bool{}
	for _, f := range t.Fields {
		switch {
		case f.Kind == Reference && f.Column == "":
			if ref := v.FieldByIndex(f.Index).Interface().(Ref); ref.ID != 0 {
				r.Refs = append(r.Refs, store.Ref{Field: f.Name, Target: ref.ID})
			}
		case f.Kind == References:
			list := v.FieldByIndex(f.Index).Interface().(RefList)
			if !list.IsSet {
				break
			}
			lists[f.Name] = true
			for _, item := range list.Items {
				r.Links = append(r.Links, store.Ref{Field: f.Name, Target: item.ID})
			}
		case f.Stored() && f.Also == "":
			before := len(body)
			if before > 1 {
				body = append(body, ',')
			}
			body = AppendString(body, f.Name)
			body = append(body, ':')
			from := len(body)
			var err error
			if body, err = appendValue(body, f, v.FieldByIndex(f.Index)); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			if string(body[from:]) == "null" { // bodies omit null (AppendWhole)
				body = body[:before]
			}
		}
	}
	body = append(body, '}')
	r.Body = body
	if old != nil {
		for _, link := range old.Links {
			if !lists[link.Field] {
				r.Links = append(r.Links, link)
			}
		}
	}
	return r, nil
}

// AppendName appends the shown name of a resource to b. An empty name is null, or "" if the names of the type are never null. t is nil
// for a type that is not declared.
func (t *Type) AppendName(b []byte, name string) []byte {
	if name == "" && (t == nil || !t.ByName["name"].Blank) {
		return append(b, "null"...)
	}
	return AppendString(b, name)
}

// errMemberOrder reports a stored body whose members are not in the order of their declarations.
var errMemberOrder = errors.New("another order")

// AppendWhole appends the shown form of a stored body to b: with null for omitted members.
func (t *Type) AppendWhole(b, body []byte) ([]byte, error) {
	if t.secret {
		body = Hide(body)
	}
	from, next := len(b), 0
	if len(body) == 0 {
		body = []byte("{}")
	}
	err := store.Members(body, func(name, raw []byte) error {
		at := next
		for at < len(t.stored) && t.stored[at] != string(name) {
			at++
		}
		if at < len(t.stored) {
			b = append(b, t.nulls[t.nullAt[next]:t.nullAt[at]]...)
			next = at + 1
		} else if f := t.ByName[string(name)]; f != nil && f.Stored() {
			return errMemberOrder
		}
		b = append(append(append(b, ',', '"'), name...), '"', ':')
		b = append(b, raw...)
		if next < len(t.stored) && next > 0 && t.alternatives[next] == string(name) { // the same value by its other name
			b = append(append(append(b, ',', '"'), t.stored[next]...), '"', ':')
			b = append(b, raw...)
			next++
		}
		return nil
	})
	if errors.Is(err, errMemberOrder) {
		return t.appendOrdered(b[:from], body)
	}
	b = append(b, t.nulls[t.nullAt[next]:]...)
	if len(b) == from {
		b = append(b, '{')
	}
	b[from] = '{'
	return append(b, '}'), err
}

// appendOrdered is AppendWhole for a body that an older version of Portolan wrote, with another order of declarations.
func (t *Type) appendOrdered(b, body []byte) ([]byte, error) {
	values := map[string][]byte{}
	if err := store.Members(body, func(name, raw []byte) error {
		values[string(name)] = raw
		return nil
	}); err != nil {
		return b, err
	}
	ordered := []byte{'{'}
	for _, name := range t.stored {
		if raw, ok := values[name]; ok {
			if len(ordered) > 1 {
				ordered = append(ordered, ',')
			}
			ordered = append(append(AppendString(ordered, name), ':'), raw...)
		}
	}
	return t.AppendWhole(b, append(ordered, '}'))
}

// appendValue appends one field as JSON.
func appendValue(b []byte, f *Field, v reflect.Value) ([]byte, error) {
	if f.ptr {
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case string:
		if x == "" {
			return append(b, "null"...), nil
		}
		return AppendString(b, x), nil
	case bool:
		return strconv.AppendBool(b, x), nil
	case int64:
		return strconv.AppendInt(b, x, 10), nil
	case netip.Addr:
		if !x.IsValid() {
			return append(b, "null"...), nil
		}
		return AppendString(b, x.String()), nil
	case Range:
		return AppendString(b, x.String()), nil
	case time.Time:
		if x.IsZero() {
			return append(b, "null"...), nil
		}
		return AppendString(b, FormatTime(x)), nil
	case json.RawMessage:
		if len(x) == 0 {
			return append(b, "null"...), nil
		}
		return append(b, x...), nil
	case []string:
		if x == nil {
			return append(b, "[]"...), nil
		}
	case []int64:
		if x == nil {
			return append(b, "null"...), nil
		}
	case Secret:
		return x.append(b)
	}
	if f.Members != nil {
		return appendNested(b, f, v)
	}
	text, err := json.Marshal(v.Interface())
	return append(b, text...), err
}

// FormatTime returns the stored and shown form of a time: RFC 3339, UTC, whole seconds, so that times compare as text.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// AppendString appends a JSON string.
func AppendString(b []byte, s string) []byte { return store.AppendString(b, s) }

// AppendStrings appends a JSON list of strings.
func AppendStrings(b []byte, all []string) []byte {
	b = append(b, '[')
	for i, s := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, s)
	}
	return append(b, ']')
}

// readStored decodes a field of a stored body.
func readStored(f *Field, raw []byte, v reflect.Value) error {
	switch {
	case f.ptr:
	case v.Kind() == reflect.String && len(raw) > 1 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0:
		v.SetString(string(raw[1 : len(raw)-1]))
		return nil
	case v.Kind() == reflect.Bool && len(raw) > 3 && (raw[0] == 't' || raw[0] == 'f'):
		v.SetBool(raw[0] == 't')
		return nil
	}
	if string(raw) == "null" { // the zero value of the new object
		return nil
	}
	if f.Kind == SecretText || f.Members != nil {
		return readSealed(f, raw, v)
	}
	if p := decodeField(f, bytes.Clone(raw), v); p != nil { // the row's memory may be reused
		return p
	}
	return nil
}

// Object returns the decoded form of a row.
func (t *Type) Object(r *store.Resource) (Object, error) {
	o := reflect.New(t.goType).Interface().(Object)
	h := o.head()
	h.ID, h.Type, h.Name, h.Parent, h.Config = r.ID, r.Type, r.Name, r.Parent, r.Configuration
	if k, ok := o.(KeyKeeper); ok {
		k.KeepKey(r.Key)
	}
	v := reflect.ValueOf(o).Elem()
	if err := store.Members(r.Body, func(name, raw []byte) error {
		f := t.ByName[string(name)]
		if f == nil || !f.Stored() {
			return nil
		}
		return readStored(f, raw, v.FieldByIndex(f.Index))
	}); err != nil {
		return nil, fmt.Errorf("the body of resource %d: %w", r.ID, err)
	}
	for _, f := range t.single {
		ref := Ref{}
		switch f.Column {
		case "parent":
			ref.ID = r.Parent
		case "configuration":
			ref.ID = r.Configuration
		default:
			for _, stored := range r.Refs {
				if stored.Field == f.Name {
					ref.ID = stored.Target
				}
			}
		}
		v.FieldByIndex(f.Index).Set(reflect.ValueOf(ref))
	}
	return o, nil
}
