package resource

import (
	"fmt"
	"strings"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// describe returns the text for a resource in a sentence: the type, the identifying field such as its range or absolute name, and its
// name.
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

// creationSummary returns the summary of a creation: "Added" and the resource or, for a type that records an action, that action
// (schema.Type.Did).
func creationSummary(t *schema.Type, o schema.Object) string {
	if t.Did == "" {
		return "Added " + describe(t, o)
	}
	return t.Did + " " + schema.HeadOf(o).Name
}

// describeLink sets the summary of the transaction to the new link, unless the transaction has a summary.
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
