package resource

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/problem"
)

// RequestHeader is a header by which a request is steered: what it may say, and what looks at it.
type RequestHeader struct {
	Name, Description string
	// Values are those that it may have, in any letter case; nil means any text.
	Values []string
	// Elsewhere: what it asks for may be outside of the parent of what is made (Collection.Local).
	Elsewhere bool
	// Methods are those that look at it, Types the types that it is for; nil means every type.
	Methods, Types []string
	// parse gives the value of a text that is not empty; nil where the engine reads the header itself.
	parse func(text string) (any, error)
}

// The methods that an option can be for.
var (
	Creating = []string{http.MethodPost}
	Changing = []string{http.MethodPut, http.MethodPatch}
	Writing  = []string{http.MethodPost, http.MethodPut, http.MethodPatch}
	Reading  = []string{http.MethodGet}
)

// Option is something that a request asks of the rules beside its body. It comes in a header, is parsed and refused before
// any rule runs, and stands in the documentation wherever it is registered (Collection.Options). A rule sees its value.
type Option[T any] struct{ header RequestHeader }

// Flag is an option that says yes or no.
func Flag(name, description string) Option[bool] {
	return Option[bool]{RequestHeader{Name: name, Description: description, Values: yesOrNo,
		parse: func(text string) (any, error) { return strings.EqualFold(text, "true"), nil }}}
}

// Choice is an option that is one of some words, which it is given as whatever the letter case it was sent in.
func Choice(name, description string, values ...string) Option[string] {
	return Option[string]{RequestHeader{Name: name, Description: description, Values: values, parse: func(text string) (any, error) {
		return values[slices.IndexFunc(values, func(v string) bool { return strings.EqualFold(v, text) })], nil
	}}}
}

// Number is an option that is the number of a resource.
func Number(name, description string) Option[int64] {
	return Option[int64]{RequestHeader{Name: name, Description: description, parse: func(text string) (any, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, invalidHeader(name, "%q is not the number of a resource", text)
		}
		return n, nil
	}}}
}

// Name is the name of the header.
func (o Option[T]) Name() string { return o.header.Name }

// Refuse words what is wrong with the value that a request gave, where only a rule can tell.
func (o Option[T]) Refuse(format string, args ...any) error {
	return invalidHeader(o.header.Name, format, args...)
}

// For registers the option for some methods, and some types of the collection; for all of them where none is named.
func (o Option[T]) For(methods []string, types ...string) RequestHeader {
	h := o.header
	h.Methods, h.Types = methods, types
	return h
}

// ReachingOut says that what the option asks for may be outside of the parent of what is made.
func (h RequestHeader) ReachingOut() RequestHeader {
	h.Elsewhere = true
	return h
}

// Of gives what a request asked; the zero value where it said nothing.
func (o Option[T]) Of(options Options) T {
	value, _ := o.Given(options)
	return value
}

// Given gives what a request asked, and whether it said anything.
func (o Option[T]) Given(options Options) (value T, given bool) {
	value, given = options.values[o.header.Name].(T)
	return value, given
}

// Set gives options with this one set.
func (o Option[T]) Set(options Options, value T) Options {
	values := maps.Clone(options.values)
	if values == nil {
		values = map[string]any{}
	}
	values[o.header.Name] = value
	return Options{values}
}

// Options are what a request asks of the rules beside its body; the zero value asks nothing. They do not change.
type Options struct{ values map[string]any }

// yesOrNo are the values of a header that says yes or no.
var yesOrNo = []string{"true", "false"}

// changes are the methods that change something.
var changes = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// engineHeaders are the headers that the engine itself looks at.
var engineHeaders = []RequestHeader{
	{Name: "x-bcn-change-control-comment", Description: "A remark that the history keeps with the change.", Methods: changes},
	{Name: dryRunHeader, Description: "Try the change and keep nothing: the answer is 200 and tells what would have come of it. Ours.",
		Values: yesOrNo, Methods: changes},
	{Name: "If-Match", Description: "The entity tag that the resource must still have.",
		Methods: []string{http.MethodPut, http.MethodPatch, http.MethodDelete}},
	{Name: "Idempotency-Key", Description: "Repeating a request with the same key within 24 hours gives the same answer and does nothing.",
		Methods: []string{http.MethodPost}},
}

func invalidHeader(name, format string, args ...any) error {
	p := problem.New(http.StatusBadRequest, "InvalidHeader", name+": "+format, args...)
	p.Fields = []string{name}
	return p
}

// declareOptions gathers the headers of the engine and those that collections have registered.
func (a *API) declareOptions(r *Registry) {
	a.headers = slices.Concat(engineHeaders, r.headers)
	for _, c := range a.collections {
		for _, h := range c.Options {
			if len(h.Types) == 0 {
				for _, t := range c.Types {
					h.Types = append(h.Types, t.Name)
				}
			}
			a.headers = append(a.headers, h)
		}
	}
}

// readOptions reads the options of a request that changes something, and refuses a header with a value that it cannot have.
func (a *API) readOptions(r *http.Request) (o Options, err error) {
	for _, h := range a.headers {
		if n := len(r.Header.Values(h.Name)); n > 1 && h.Name != "If-Match" {
			return o, invalidHeader(h.Name, "given %d times", n)
		}
		text := r.Header.Get(h.Name)
		if text == "" {
			continue
		}
		if h.Values != nil && !slices.ContainsFunc(h.Values, func(v string) bool { return strings.EqualFold(v, text) }) {
			return o, invalidHeader(h.Name, "%q is none of %s", text, strings.Join(h.Values, ", "))
		}
		if h.parse == nil {
			continue
		}
		value, err := h.parse(text)
		if err != nil {
			return o, err
		}
		if o.values == nil {
			o.values = map[string]any{}
		}
		o.values[h.Name] = value
	}
	return o, nil
}

// headersFor are the headers that a method of some types looks at, each once.
func (a *API) headersFor(method string, types []*Type) (list []RequestHeader) {
	for _, h := range a.headers {
		if slices.Contains(h.Methods, method) && !slices.ContainsFunc(list, func(other RequestHeader) bool { return other.Name == h.Name }) &&
			(h.Types == nil || slices.ContainsFunc(types, func(t *Type) bool { return slices.Contains(h.Types, t.Name) })) {
			list = append(list, h)
		}
	}
	return list
}
