package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"portolan/internal/engine/store"
)

// Secret is a text that is stored encrypted and never shown, such as a password for another machine. A request that omits it, or has null
// as it was shown, leaves it unchanged; an empty text deletes it.
type Secret struct {
	// Plain is the text from a request; it is encrypted before it is stored.
	Plain string
	// IsSet says that a request has it.
	IsSet bool
	// Sealed is the stored, encrypted text; empty if there is none.
	Sealed string
}

// Set reports whether there is a secret.
func (s Secret) Set() bool { return s.Plain != "" || s.Sealed != "" }

// sealedMember is the start of the JSON object that contains an encrypted text; it has no other member.
const sealedMember = `{"$sealed":"`

// append appends the stored form.
func (s Secret) append(b []byte) ([]byte, error) {
	switch {
	case s.Plain != "":
		return nil, fmt.Errorf("the secret was not sealed")
	case s.Sealed == "":
		return append(b, "null"...), nil
	}
	return append(append(append(b, sealedMember...), s.Sealed...), `"}`...), nil
}

// parseSecret parses the value in a request.
func (f *Field) parseSecret(raw json.RawMessage) (any, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, valueError("JsonDeserializationError", "must be a string")
	}
	if text == "" {
		return Secret{IsSet: true}, nil
	}
	read, err := f.parseText(text)
	text, _ = read.(string)
	return Secret{Plain: text, IsSet: true}, err
}

// readSealed decodes a stored secret, or a stored object that may contain some.
func readSealed(f *Field, raw []byte, v reflect.Value) error {
	if f.Kind == SecretText {
		if inner, ok := bytes.CutPrefix(raw, []byte(sealedMember)); ok {
			v.Set(reflect.ValueOf(Secret{Sealed: string(bytes.TrimSuffix(inner, []byte(`"}`)))}))
		}
		return nil
	}
	x, err := f.parseNested(raw, true)
	if err != nil {
		return err
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

// Hide returns a stored body, or an image of one in the history, with null for encrypted texts.
func Hide(body []byte) []byte {
	for {
		before, rest, found := bytes.Cut(body, []byte(sealedMember))
		if !found {
			return body
		}
		_, after, found := bytes.Cut(rest, []byte(`"}`))
		if !found {
			return body
		}
		body = slices.Concat(before, []byte("null"), after)
	}
}

// ShowOnce returns a shown body with the secrets that an answer shows once.
func (t *Type) ShowOnce(body []byte, once map[string]string) ([]byte, error) {
	given := map[string][]byte{}
	for name, text := range once {
		if f := t.ByName[name]; f != nil && f.Once {
			given[name] = AppendString(nil, text)
		}
	}
	if len(given) == 0 {
		return body, nil
	}
	return store.Rewritten(body, given)
}

// EachSecret calls fn for every secret of an object, at any depth, with its path.
func (t *Type) EachSecret(o Object, fn func(path string, s *Secret) error) error {
	return eachSecret(t.Fields, "", reflect.ValueOf(o).Elem(), fn)
}

func eachSecret(fields []*Field, path string, s reflect.Value, fn func(path string, s *Secret) error) error {
	for _, f := range fields {
		if !f.secret || f.Also != "" { // another name of a secret is the same secret
			continue
		}
		at, v := path+f.Name, s.FieldByIndex(f.Index)
		switch {
		case f.Kind == SecretText:
			secret, _ := v.Addr().Interface().(*Secret)
			if err := fn(at, secret); err != nil {
				return err
			}
		case f.Kind == Nested && !v.IsNil():
			if err := eachSecret(f.Members, at+".", v.Elem(), fn); err != nil {
				return err
			}
		case f.Kind == NestedList:
			for i := range v.Len() {
				if err := eachSecret(f.Members, at+"[].", v.Index(i), fn); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// KeepSecrets copies the secrets of the previous object to a new one that does not set them. Entries of a list match if they are equal
// except for their secrets, at any position.
func (t *Type) KeepSecrets(before, after Object) {
	keepSecrets(t.Fields, reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem())
}

func keepSecrets(fields []*Field, old, now reflect.Value) {
	for _, f := range fields {
		if !f.secret || f.Also != "" { // another name of a secret is the same secret
			continue
		}
		was, is := old.FieldByIndex(f.Index), now.FieldByIndex(f.Index)
		switch f.Kind {
		case SecretText:
			then, _ := was.Interface().(Secret)
			if s, _ := is.Interface().(Secret); !s.IsSet && s.Sealed == "" {
				is.Set(reflect.ValueOf(then))
			}
		case Nested:
			if !was.IsNil() && !is.IsNil() && sameVariant(f, was.Elem(), is.Elem()) {
				keepSecrets(f.Members, was.Elem(), is.Elem())
			}
		case NestedList:
			taken := map[int]bool{}
			for i := range is.Len() {
				for j := range was.Len() {
					if !taken[j] && sameButSecrets(f, was.Index(j), is.Index(i)) {
						taken[j] = true
						keepSecrets(f.Members, was.Index(j), is.Index(i))
						break
					}
				}
			}
		}
	}
}

func sameVariant(f *Field, a, b reflect.Value) bool {
	_, one := f.variantOf(a)
	_, other := f.variantOf(b)
	return one == other
}

// sameButSecrets reports whether two entries of a list match: by their identifying members or, without such, by their shown values.
func sameButSecrets(f *Field, a, b reflect.Value) bool {
	for _, m := range f.Members {
		if m.Identity {
			return reflect.DeepEqual(a.FieldByIndex(m.Index).Interface(), b.FieldByIndex(m.Index).Interface())
		}
	}
	for _, m := range f.Members {
		x, y := a.FieldByIndex(m.Index), b.FieldByIndex(m.Index)
		switch {
		case m.Kind == SecretText:
		case m.Kind == Nested && m.secret:
			if x.IsNil() != y.IsNil() || !x.IsNil() && !sameButSecrets(m, x.Elem(), y.Elem()) {
				return false
			}
		case m.Kind == NestedList && m.secret:
			if x.Len() != y.Len() {
				return false
			}
			for i := range x.Len() {
				if !sameButSecrets(m, x.Index(i), y.Index(i)) {
					return false
				}
			}
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			return false
		}
	}
	return true
}
