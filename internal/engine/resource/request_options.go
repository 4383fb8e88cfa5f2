package resource

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
)

// RequestHeader is a header by which a request is steered: what it may say, and what looks at it.
type RequestHeader struct {
	Name, Description string
	// Values are those that it may have, in any letter case; nil means any text.
	Values []string
	// Most makes it a number from 1 to that; 0: it is none.
	Most int
	// Elsewhere: what it asks for may be outside of the parent of what is made (Collection.Local).
	Elsewhere bool
	// Methods are those that look at it, Types the types that it is for; nil means every type.
	Methods, Types []string
	// parse gives the value of a text that is not empty; nil where the engine reads the header itself.
	parse func(text string) (any, error)
}

// The methods of requests, as the published facts name them.
const (
	methodGet    = "GET"
	methodPost   = "POST"
	methodPut    = "PUT"
	methodPatch  = "PATCH"
	methodDelete = "DELETE"
)

// The methods that an option can be for.
var (
	Creating = []string{methodPost}
	Changing = []string{methodPut, methodPatch}
	Writing  = []string{methodPost, methodPut, methodPatch}
	Reading  = []string{methodGet}
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

// In gives what a request asked; the zero value where it said nothing.
func (o Option[T]) In(options Options) T {
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
	return options.with(o.header.Name, value)
}

// Options are what a request asks of the rules beside its body; the zero value asks nothing. They do not change.
type Options struct{ values map[string]any }

// Read gives options with what a header says, and refuses a value that it cannot have.
func (h RequestHeader) Read(o Options, text string) (Options, error) {
	if h.Values != nil && !slices.ContainsFunc(h.Values, func(v string) bool { return strings.EqualFold(v, text) }) {
		return o, invalidHeader(h.Name, "%q is none of %s", text, strings.Join(h.Values, ", "))
	}
	if h.parse == nil {
		return o, nil
	}
	value, err := h.parse(text)
	if err != nil {
		return o, err
	}
	return o.with(h.Name, value), nil
}

// with gives options with one more.
func (o Options) with(name string, value any) Options {
	values := maps.Clone(o.values)
	if values == nil {
		values = map[string]any{}
	}
	values[name] = value
	return Options{values}
}

// yesOrNo are the values of a header that says yes or no.
var yesOrNo = []string{"true", "false"}

// invalidHeader refuses a header.
func invalidHeader(name, format string, args ...any) error {
	p := problem.BadRequest("InvalidHeaderValue", name+": "+format, args...)
	p.Fields = []string{name}
	return p
}

// declareOptions gathers the headers that rooms and collections have registered.
func (a *API) declareOptions(r *Registry) {
	a.Headers = slices.Clone(r.headers)
	for _, c := range a.collections {
		for _, h := range c.Options {
			if len(h.Types) == 0 {
				for _, t := range c.Types {
					h.Types = append(h.Types, t.Name)
				}
			}
			a.Headers = append(a.Headers, h)
		}
	}
	descriptions := map[string]string{}
	for _, h := range a.Headers {
		if known, ok := descriptions[h.Name]; ok && known != h.Description {
			panic("the header " + h.Name + " is declared as two options")
		}
		descriptions[h.Name] = h.Description
	}
}
