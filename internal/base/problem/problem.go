// Package problem defines the errors that are shown to clients. All packages return a *Problem for an error that the caller may see. The
// API packages in server/ encode it. The package contains nothing else, and every package may import it.
package problem

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Problem is an error that may be shown to the client that caused it.
type Problem struct {
	// Status is the HTTP status, 400 to 599.
	Status int
	// Code is a noun phrase in UpperCamelCase, listed in docs/errors.md.
	Code string
	// Message is a sentence for a person: what is wrong with which object, and why.
	Message string
	// Fields are the names of the request fields that the problem is about; empty if there are none.
	Fields []string
	// RetryAfter is the time after which the request can be repeated; 0 if unknown.
	RetryAfter time.Duration
	// Named are the numbers in the message, including resource ids, and those of problems in it. They are not sent to clients. They are
	// used to conceal resources that the caller may not see (resource.API.Conceal).
	Named []int64
	// Err is the cause, for the log only. It is never sent to clients.
	Err error
}

// Error returns the code and the message, with the cause.
func (p *Problem) Error() string {
	if p.Err != nil {
		return fmt.Sprintf("%s: %s: %v", p.Code, p.Message, p.Err)
	}
	return p.Code + ": " + p.Message
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Resource is a resource in the message of a problem. The message is replaced for callers who may not see it (resource.API.Conceal).
type Resource struct {
	ID   int64
	Text string
}

// String returns the text.
func (r Resource) String() string { return r.Text }

// Describe returns a resource for a message. text is its name, key or space.
func Describe(id int64, text string) Resource { return Resource{id, text} }

// maxListed is the maximum number of resources that a message lists.
const maxListed = 20

// Resources are resources in the message of a problem. The message lists the first 20 and the number of others.
type Resources []Resource

// String returns the list.
func (r Resources) String() string {
	var list []string
	for i, one := range r {
		if i == maxListed {
			list = append(list, fmt.Sprintf("and %d more", len(r)-maxListed))
			break
		}
		list = append(list, one.Text)
	}
	return strings.Join(list, "; ")
}

// New returns a problem with a formatted message.
func New(status int, code, format string, args ...any) *Problem {
	p := &Problem{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
	for _, arg := range args {
		switch x := arg.(type) {
		case int64:
			p.Named = append(p.Named, x)
		case Resource:
			p.Named = append(p.Named, x.ID)
		case Resources:
			for _, one := range x {
				p.Named = append(p.Named, one.ID)
			}
		case error:
			if inner, ok := As(x); ok {
				p.Named = append(p.Named, inner.Named...)
			}
		}
	}
	return p
}

// InvalidValue is the code for a request field with an invalid value, if there is no more specific code.
const InvalidValue = "InvalidResourceFieldValue"

// Invalid returns a 400 InvalidValue problem about a field of the request body.
func Invalid(field, format string, args ...any) *Problem {
	p := New(http.StatusBadRequest, InvalidValue, format, args...)
	p.Message = field + ": " + p.Message
	p.Fields = []string{field}
	return p
}

// Query returns a 400 InvalidQueryParameterValue problem about a query parameter.
func Query(parameter, format string, args ...any) *Problem {
	p := New(http.StatusBadRequest, "InvalidQueryParameterValue", format, args...)
	p.Message = parameter + ": " + p.Message
	p.Fields = []string{parameter}
	return p
}

// Parameter returns a 400 problem with the given code about a query parameter.
func Parameter(code, parameter, format string, args ...any) *Problem {
	p := Query(parameter, format, args...)
	p.Code = code
	return p
}

// BadRequest returns a 400 problem with the given code.
func BadRequest(code, format string, args ...any) *Problem {
	return New(http.StatusBadRequest, code, format, args...)
}

// Forbidden returns a 403 problem with the given code.
func Forbidden(code, format string, args ...any) *Problem {
	return New(http.StatusForbidden, code, format, args...)
}

// Missing returns a 400 MissingRequiredField problem with the names of the fields.
func Missing(names ...string) *Problem {
	p := BadRequest("MissingRequiredField", "required and missing: %s", strings.Join(names, ", "))
	p.Fields = names
	return p
}

// NotFound returns a 404 ResourceNotFound problem.
func NotFound(format string, args ...any) *Problem {
	return New(http.StatusNotFound, "ResourceNotFound", format, args...)
}

// Unavailable returns a 503 problem with the given code.
func Unavailable(code, format string, args ...any) *Problem {
	return New(http.StatusServiceUnavailable, code, format, args...)
}

// Conflict returns a 409 problem with the given code. If the format starts with a field and a colon, such as "range: ", the problem is
// about that field.
func Conflict(code, format string, args ...any) *Problem {
	p := New(http.StatusConflict, code, format, args...)
	if field, _, ok := strings.Cut(format, ": "); ok && fieldName.MatchString(field) {
		p.Fields = []string{field}
	}
	return p
}

// InUse returns a 403 ResourceInUse problem: other resources depend on the resource.
func InUse(format string, args ...any) *Problem { return Forbidden("ResourceInUse", format, args...) }

// NotYet returns a 400 UnsupportedResourceFieldValue problem: the value is published, but not implemented yet. If the format starts with a
// field and a colon, the problem is about that field.
func NotYet(format string, args ...any) *Problem {
	p := Conflict("UnsupportedResourceFieldValue", format, args...)
	p.Status = http.StatusBadRequest
	return p
}

// Field returns a 400 problem with the given code about a field of the request body.
func Field(code, field, format string, args ...any) *Problem {
	p := Invalid(field, format, args...)
	p.Code = code
	return p
}

// FieldForbidden returns a 403 problem with the given code about a field of the request body.
func FieldForbidden(code, field, format string, args ...any) *Problem {
	p := Field(code, field, format, args...)
	p.Status = http.StatusForbidden
	return p
}

// ForField returns a copy of p about another field, with its status, code and named resources.
func (p *Problem) ForField(field string) *Problem {
	other := *p
	other.Message, other.Fields = field+": "+p.Message, []string{field}
	return &other
}

// fieldName is the pattern of field names.
var fieldName = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// Join combines problems about fields: it has the status and code of the first, and all messages and fields. It returns nil if there are
// none.
func Join(all []*Problem) error {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	joined := *all[0]
	messages := make([]string, len(all))
	joined.Fields, joined.Named = nil, nil
	for i, p := range all {
		joined.Named = append(joined.Named, p.Named...)
		messages[i] = p.Message
		joined.Fields = append(joined.Fields, p.Fields...)
	}
	joined.Message = strings.Join(messages, "; ")
	return &joined
}

// AddPlace adds a place in the request, such as changes[3] or templateItems[0], to the message and fields of a problem. Other errors are
// returned unchanged.
func AddPlace(place string, err error) error {
	p, ok := As(err)
	if !ok {
		return err
	}
	one := *p
	one.Message, one.Fields = place+": "+p.Message, []string{place}
	if len(p.Fields) > 0 {
		one.Fields = make([]string, len(p.Fields))
		for i, field := range p.Fields {
			one.Fields[i] = place + "." + field
		}
	}
	return &one
}

// As returns the problem in the chain of err.
func As(err error) (*Problem, bool) {
	var p *Problem
	ok := errors.As(err, &p)
	return p, ok
}

// Is reports whether err is a problem with the given code.
func Is(err error, code string) bool {
	p, ok := As(err)
	return ok && p.Code == code
}

// IsNotFound reports whether err is a problem with the status 404.
func IsNotFound(err error) bool {
	p, ok := As(err)
	return ok && p.Status == http.StatusNotFound
}
