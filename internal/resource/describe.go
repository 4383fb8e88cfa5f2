package resource

import (
	"fmt"
	"strings"

	"portolan/internal/schema"
)

// describe names a resource in a sentence: by what it is called in its field, such as its range or
// its absolute name, and by its own name.
func describe(t *schema.Type, o schema.Object) string {
	text := t.Name
	s, ok := o.(fmt.Stringer)
	if ok {
		text += " " + s.String()
	}
	if h := schema.HeadOf(o); h.Name != "" && (!ok || !strings.HasPrefix(s.String(), h.Name)) {
		text += " " + h.Name
	}
	return text
}

// made says what making a resource did: it was added, or, where it is the record of something, that.
func made(t *schema.Type, o schema.Object) string {
	if t.Did == "" {
		return "Added " + describe(t, o)
	}
	return t.Did + " " + schema.HeadOf(o).Name
}
