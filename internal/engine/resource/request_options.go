package resource

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
)

// RequestHeader is a request header that controls how a request is executed.
type RequestHeader struct {
	Name, Description string
	// Values are the allowed values, in any letter case; nil means any text.
	Values []string
	// Max makes the value a number from 1 to Most; 0: not a number.
	Max int
	// Elsewhere: the option may have effects outside of the parent of a created resource (Collection.Local).
	Elsewhere bool
	// Methods are the methods with this header, Types the resource types; nil means every type.
	Methods, Types []string
	// parse returns the value of a text that is not empty; nil if the engine reads the header itself.
	parse func(text string) (any, error)
}

// The request methods, as the published facts name them.
const (
	methodGet    = "GET"
	methodPost   = "POST"
	methodPut    = "PUT"
	methodPatch  = "PATCH"
	methodDelete = "DELETE"
)

// The methods that an option may apply to.
var (
	Creating = []string{methodPost}
	Changing = []string{methodPut, methodPatch}
	Writing  = []string{methodPost, methodPut, methodPatch}
	Reading  = []string{methodGet}
)

// Option is a request option for the rules, sent in a header. The header is parsed, and refused if invalid, before any rule runs. The
// documentation lists it wherever it is registered (Collection.Options). Rules read its value.
type Option[T any] struct{ header RequestHeader }

// Flag returns an option with the values true and false.
func Flag(name, description string) Option[bool] {
	return Option[bool]{RequestHeader{Name: name, Description: description, Values: yesOrNo,
		parse: func(text string) (any, error) { return strings.EqualFold(text, "true"), nil }}}
}

// Choice returns an option with one of some values. The header accepts them in any letter case; the option has them as declared here.
func Choice(name, description string, values ...string) Option[string] {
	return Option[string]{RequestHeader{Name: name, Description: description, Values: values, parse: func(text string) (any, error) {
		return values[slices.IndexFunc(values, func(v string) bool { return strings.EqualFold(v, text) })], nil
	}}}
}

// Number returns an option with the id of a resource.
func Number(name, description string) Option[int64] {
	return Option[int64]{RequestHeader{Name: name, Description: description, parse: func(text string) (any, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, invalidHeader(name, "%q is not the number of a resource", text)
		}
		return n, nil
	}}}
}

// Name returns the name of the header.
func (o Option[T]) Name() string { return o.header.Name }

// Refuse returns the error for a value that only a rule can recognize as invalid.
func (o Option[T]) Refuse(format string, args ...any) error {
	return invalidHeader(o.header.Name, format, args...)
}

// Header returns the header of the option for some methods and types, to be registered; without types, for all types of the collection.
func (o Option[T]) Header(methods []string, types ...string) RequestHeader {
	h := o.header
	h.Methods, h.Types = methods, types
	return h
}

// ReachingOut marks a header whose option may have effects outside of the parent of a created resource.
func (h RequestHeader) ReachingOut() RequestHeader {
	h.Elsewhere = true
	return h
}

// Value returns the value of the option in a request; the zero value if it is not set.
func (o Option[T]) Value(options Options) T {
	value, _ := o.Lookup(options)
	return value
}

// Lookup returns the value of the option in a request, and whether it is set.
func (o Option[T]) Lookup(options Options) (value T, given bool) {
	value, given = options.values[o.header.Name].(T)
	return value, given
}

// Set returns options with this one set.
func (o Option[T]) Set(options Options, value T) Options {
	return options.addOption(o.header.Name, value)
}

// Options are the options of a request; the zero value has none. They are immutable.
type Options struct{ values map[string]any }

// Read returns options with the value of a header, or an error if the value is invalid.
func (h RequestHeader) Read(o Options, text string) (Options, error) {
	if h.Values != nil && !slices.ContainsFunc(h.Values, func(v string) bool { return strings.EqualFold(v, text) }) {
		return o, invalidHeader(h.Name, "must be one of %[2]s, not %[1]q", text, strings.Join(h.Values, ", "))
	}
	if h.parse == nil {
		return o, nil
	}
	value, err := h.parse(text)
	if err != nil {
		return o, err
	}
	return o.addOption(h.Name, value), nil
}

// addOption returns a copy of the options with one more.
func (o Options) addOption(name string, value any) Options {
	values := maps.Clone(o.values)
	if values == nil {
		values = map[string]any{}
	}
	values[name] = value
	return Options{values}
}

// yesOrNo are the values of a flag.
var yesOrNo = []string{"true", "false"}

// invalidHeader returns the error for an invalid header value.
func invalidHeader(name, format string, args ...any) error {
	p := problem.BadRequest("InvalidHeaderValue", name+": "+format, args...)
	p.Fields = []string{name}
	return p
}

// declareOptions collects the headers that packages and collections have registered.
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
