package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"portolan/internal/engine/store"
)

// Secret is a text that is kept sealed and never shown, such as a password for another machine. A request that leaves it out, or gives null
// as it was shown, leaves it as it is; an empty text takes it away.
type Secret struct {
	// Plain is what a request gives; sealed before it is kept.
	Plain string
	// Given says that a request gives it.
	Given bool
	// Sealed is what is kept; empty where there is none.
	Sealed string
}

// Set reports whether there is a secret.
func (s Secret) Set() bool { return s.Plain != "" || s.Sealed != "" }

// sealedMember is the only member of the object that a sealed text is kept as.
const sealedMember = `{"$sealed":"`

// append writes what is kept.
func (s Secret) append(b []byte) ([]byte, error) {
	switch {
	case s.Plain != "":
		return nil, fmt.Errorf("the secret was not sealed")
	case s.Sealed == "":
		return append(b, "null"...), nil
	}
	return append(append(append(b, sealedMember...), s.Sealed...), `"}`...), nil
}

// parseSecret reads what a request gives.
func (f *Field) parseSecret(raw json.RawMessage) (any, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, fault("JsonDeserializationError", "must be a string")
	}
	if text == "" {
		return Secret{Given: true}, nil
	}
	read, err := f.parseText(text)
	text, _ = read.(string)
	return Secret{Plain: text, Given: true}, err
}

// readSealed reads a stored secret, or an object that may have some.
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

// Hide gives a stored body, or an image of one in the history, as it may be shown: with null for what is sealed.
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

// ShowOnce gives a body as it is shown, with the secrets that an answer shows once.
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

// EachSecret calls fn for every secret of an object, at any depth; path says where it is.
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

// KeepSecrets gives an object the secrets of what it was before where it was given none. In a list the entry that is the same but for its
// secrets is the same entry, wherever it stands.
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
			if s, _ := is.Interface().(Secret); !s.Given && s.Sealed == "" {
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

// sameButSecrets reports whether two entries of a list are the same one: by what tells entries apart, or, where nothing does, as they are
// shown.
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
