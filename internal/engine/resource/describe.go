package resource

import (
	"fmt"
	"strings"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
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

// describeLink names the transaction by what is linked to what, where nothing has named it yet.
func (c *Change) describeLink(source *store.Resource, target int64) error {
	if !c.Tx.Describe(operationOf(updated, c.API.types[source.Type]), "") {
		return nil
	}
	other, err := c.Tx.Get(target)
	if err != nil {
		return err
	}
	var names [2]string
	for i, row := range []*store.Resource{other, source} {
		t := c.API.types[row.Type]
		o, err := t.Object(row)
		if err != nil {
			return err
		}
		names[i] = describe(t, o)
	}
	c.Tx.Summarize("Linked " + names[0] + " to " + names[1])
	return nil
}
