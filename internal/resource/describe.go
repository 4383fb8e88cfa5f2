package resource

import (
	"fmt"
	"strings"

	"portolan/internal/schema"
)

// Act is a resource that is the record of something that was done to others, such as a split.
type Act interface {
	// About says of what it is, as in " of 10.1.0.0/24"; empty where that is not known.
	About() string
}

// describe names a resource in a sentence: by what it is called in its field, such as its range or
// its absolute name, and by its own name.
func describe(t *schema.Type, o schema.Object) string {
	text := t.Name
	s, ok := o.(fmt.Stringer)
	if ok {
		text += " " + s.String()
	}
	if act, ok := o.(Act); ok {
		text += act.About()
	}
	if h := schema.HeadOf(o); h.Name != "" && (!ok || !strings.HasPrefix(s.String(), h.Name)) {
		text += " " + h.Name
	}
	return text
}
