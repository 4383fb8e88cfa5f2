package resource

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// checkSentReferences refuses references to resources that do not exist and to resources that the caller does not see, with the same
// message, before any rule reads the targets. Callers that see everything get the messages of the rules.
func (c *Change) checkSentReferences() error {
	if !c.IsRequested() || !c.Caller.Limited() {
		return nil
	}
	v := reflect.ValueOf(c.New).Elem()
	for _, f := range c.Type.Fields {
		if f.Column != "" || !c.SetFields[f.Name] {
			continue
		}
		var ids []int64
		switch f.Kind {
		case schema.Reference:
			ids = append(ids, v.FieldByIndex(f.Index).Interface().(schema.Ref).ID)
		case schema.References:
			for _, item := range v.FieldByIndex(f.Index).Interface().(schema.RefList).Items {
				ids = append(ids, item.ID)
			}
		}
		for i, id := range ids {
			if id == 0 || !bytes.Contains(c.Sent[f.Name], strconv.AppendInt(nil, id, 10)) {
				continue
			}
			head, err := c.Tx.Head(id)
			seen := err == nil
			if seen {
				seen, err = c.Sees(head)
			}
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if !seen && f.Kind == schema.References {
				return notFoundInlined(fmt.Sprintf("%s[%d]", f.Name, i), "id: resource %d does not exist", id)
			}
			if !seen {
				return notFoundInlined(f.Name, "resource %d does not exist", id)
			}
		}
	}
	return nil
}

// resolve checks that every reference points to an existing resource of an allowed type. References by another value than an id have been
// resolved before by the type's own rules.
func (c *Change) resolve() error {
	v := reflect.ValueOf(c.New).Elem()
	for _, f := range c.Type.Fields {
		if f.Column != "" || !c.SetFields[f.Name] && !c.IsCreation() {
			continue
		}
		switch f.Kind {
		case schema.Reference:
			if err := c.resolveOne(f, v.FieldByIndex(f.Index).Interface().(schema.Ref)); err != nil {
				return err
			}
		case schema.References:
			for i, item := range v.FieldByIndex(f.Index).Interface().(schema.RefList).Items {
				if item.ID == 0 {
					return notFoundInlined(f.Name, "entry %d does not exist: give its id", i)
				}
				if err := c.resolveOne(f, schema.Ref{ID: item.ID}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *Change) resolveOne(f *schema.Field, ref schema.Ref) error {
	if ref == (schema.Ref{}) {
		return nil
	}
	if ref.ID == 0 {
		return notFoundInlined(f.Name, "%q does not exist", ref.By)
	}
	head, err := c.Tx.Head(ref.ID)
	if errors.Is(err, store.ErrNotFound) {
		return notFoundInlined(f.Name, "resource %d does not exist", ref.ID)
	}
	if err != nil {
		return err
	}
	if c.IsRequested() && c.SetFields[f.Name] { // targets that a rule has set were not requested
		switch seen, err := c.Sees(head); {
		case err != nil:
			return err
		// The caller named the target by another value, so the error does not reveal its id.
		case !seen && !bytes.Contains(c.Sent[f.Name], strconv.AppendInt(nil, ref.ID, 10)):
			return notFoundInlined(f.Name, "the resource does not exist, or %s has no access to it", c.Caller.Name)
		case !seen:
			return notFoundInlined(f.Name, "resource %d does not exist", ref.ID)
		}
	}
	if len(f.Refs) > 0 && !slices.Contains(f.Refs, head.Type) {
		return notFoundInlined(f.Name, "resource %d is of type %s; must be of type %s", ref.ID, head.Type, strings.Join(f.Refs, " or "))
	}
	if head.Configuration != 0 && schema.HeadOf(c.New).Config != 0 && head.Configuration != schema.HeadOf(c.New).Config {
		return problem.Field("ResourceNotInConfiguration", f.Name, "resource %d belongs to another configuration", ref.ID)
	}
	return nil
}
