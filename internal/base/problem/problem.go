// Package problem is the one vocabulary of failure. Every room reports what went wrong to its
// caller as a *Problem; the doors in server/ word it on the wire. Nothing else lives here, and
// every other room may come in.
package problem

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Problem is a refusal or a failure that may be shown to the client that caused it.
type Problem struct {
	// Status is the HTTP status, 400 to 599.
	Status int
	// Code is one UpperCamelCase noun phrase, listed in docs/errors.md.
	Code string
	// Message is a sentence for a person: what was wrong with what, and what is in the way.
	Message string
	// Fields names the fields of the request the problem is about; empty where it is about none.
	Fields []string
	// RetryAfter is when the same may be tried again; 0 where that is not known.
	RetryAfter time.Duration
	// Named are the numbers that the message was worded with, and those of problems in it: resources among them. They are not put on the
	// wire; whoever answers somebody who may not see all resources looks at them (resource.API.Conceal).
	Named []int64
	// Err is the cause, for the log only. It is never put on the wire.
	Err error
}

// Error gives the code and the message.
func (p *Problem) Error() string {
	if p.Err != nil {
		return fmt.Sprintf("%s: %s: %v", p.Code, p.Message, p.Err)
	}
	return p.Code + ": " + p.Message
}

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Resource is a resource in the words of a problem: by ID somebody who does not see it is told other words (resource.API.Conceal).
type Resource struct {
	ID   int64
	Text string
}

// String gives the words.
func (r Resource) String() string { return r.Text }

// About gives a resource in the words of a problem: its name, key or space.
func About(id int64, text string) Resource { return Resource{id, text} }

// mostListed is how many resources the words of a problem list.
const mostListed = 20

// Resources are resources in the words of a problem, which list the first 20 and count the others.
type Resources []Resource

// String gives the list.
func (r Resources) String() string {
	var list []string
	for i, one := range r {
		if i == mostListed {
			list = append(list, fmt.Sprintf("and %d more", len(r)-mostListed))
			break
		}
		list = append(list, one.Text)
	}
	return strings.Join(list, "; ")
}

// New makes a problem with a formatted message.
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

// InvalidValue is the code of a field of the request body with a value that it cannot have, where none says more.
const InvalidValue = "InvalidResourceFieldValue"

// Invalid is a 400 InvalidValue about one field of the request body.
func Invalid(field, format string, args ...any) *Problem {
	p := New(http.StatusBadRequest, InvalidValue, format, args...)
	p.Message = field + ": " + p.Message
	p.Fields = []string{field}
	return p
}

// Query is a 400 InvalidQueryParameterValue about one query parameter.
func Query(parameter, format string, args ...any) *Problem {
	p := New(http.StatusBadRequest, "InvalidQueryParameterValue", format, args...)
	p.Message = parameter + ": " + p.Message
	p.Fields = []string{parameter}
	return p
}

// Parameter is a 400 with a code of its own about one query parameter.
func Parameter(code, parameter, format string, args ...any) *Problem {
	p := Query(parameter, format, args...)
	p.Code = code
	return p
}

// BadRequest is a 400 with the given code.
func BadRequest(code, format string, args ...any) *Problem {
	return New(http.StatusBadRequest, code, format, args...)
}

// Forbidden is a 403 with the given code.
func Forbidden(code, format string, args ...any) *Problem {
	return New(http.StatusForbidden, code, format, args...)
}

// Missing is a 400 MissingRequiredField that names the fields.
func Missing(names ...string) *Problem {
	p := BadRequest("MissingRequiredField", "required and missing: %s", strings.Join(names, ", "))
	p.Fields = names
	return p
}

// NotFound is a 404 ResourceNotFound.
func NotFound(format string, args ...any) *Problem {
	return New(http.StatusNotFound, "ResourceNotFound", format, args...)
}

// Unavailable is a 503 with the given code.
func Unavailable(code, format string, args ...any) *Problem {
	return New(http.StatusServiceUnavailable, code, format, args...)
}

// Conflict is a 409 with the given code. A format that begins with a field and a colon, such as "range: ", is about that field.
func Conflict(code, format string, args ...any) *Problem {
	p := New(http.StatusConflict, code, format, args...)
	if field, _, ok := strings.Cut(format, ": "); ok && fieldName.MatchString(field) {
		p.Fields = []string{field}
	}
	return p
}

// InUse is a 403 ResourceInUse: what was asked cannot be done because of what depends on it.
func InUse(format string, args ...any) *Problem { return Forbidden("ResourceInUse", format, args...) }

// NotYet is a 400 UnsupportedResourceFieldValue: the value is published, and what would act upon it is not built yet. A format that
// begins with a field and a colon is about that field.
func NotYet(format string, args ...any) *Problem {
	p := Conflict("UnsupportedResourceFieldValue", format, args...)
	p.Status = http.StatusBadRequest
	return p
}

// Field is a 400 with a code of its own about one field of the request body.
func Field(code, field, format string, args ...any) *Problem {
	p := Invalid(field, format, args...)
	p.Code = code
	return p
}

// FieldForbidden is a 403 with a code of its own about one field of the request body.
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

// fieldName is how the names of fields look.
var fieldName = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// Join makes one problem of several field problems: the status and code of the first, and every
// message and field. It gives nil for none.
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

// At says where in a request a problem is, such as changes[3] or templateItems[0]: in its message, and before its fields. What is no
// problem stays as it is.
func At(place string, err error) error {
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

// As gives the problem in err's chain, if there is one.
func As(err error) (*Problem, bool) {
	var p *Problem
	ok := errors.As(err, &p)
	return p, ok
}

// Is reports whether err is a problem with that code.
func Is(err error, code string) bool {
	p, ok := As(err)
	return ok && p.Code == code
}

// IsNotFound reports whether err is a problem with the status 404: something is not there, or not there where it was looked for.
func IsNotFound(err error) bool {
	p, ok := As(err)
	return ok && p.Status == http.StatusNotFound
}
