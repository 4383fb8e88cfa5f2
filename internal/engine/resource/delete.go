package resource

import (
	"errors"
	"fmt"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Delete deletes a resource and everything below it. A resource that refers to it loses the reference, or is deleted if its type declares
// that.
func (c *Change) Delete(row *store.Resource) error {
	n := *c
	if n.deleting == 0 {
		n.deleting = row.ID
	}
	return n.delete(row, false)
}

func (c *Change) delete(row *store.Resource, with bool) error {
	t, o, err := c.API.decode(row)
	if err != nil {
		return err
	}
	c.Tx.Describe(operationOf(deleted, t), "Deleted "+describe(t, o))
	if rule, ok := o.(BeforeBelowDeleter); ok {
		n := *c
		n.Type, n.Old, n.New, n.Row, n.ParentDeleted = t, o, nil, row, with
		if err := rule.BeforeBelowDelete(&n); err != nil {
			return err
		}
	}
	if err := c.deleteBelow(row.ID); err != nil {
		return err
	}
	if err := c.dropReferences(row); err != nil {
		return err
	}
	asked, err := c.beforeDelete(t, o, row, with)
	if err != nil {
		return err
	}
	if asked {
		// Releasing its resources may have deleted this resource as well, through the other side.
		if _, err := c.Tx.Head(row.ID); errors.Is(err, store.ErrNotFound) {
			return nil
		}
	}
	return c.Tx.Remove(row)
}

// beforeDelete runs the rules of a resource before its deletion, and reports whether it has any.
func (c *Change) beforeDelete(t *schema.Type, o schema.Object, row *store.Resource, with bool) (asked bool, err error) {
	n := *c
	n.Type, n.Old, n.New, n.Row, n.ParentDeleted = t, o, nil, row, with
	if rule, ok := o.(BeforeDeleter); ok {
		asked = true
		if err := rule.BeforeDelete(&n); err != nil {
			return true, err
		}
	}
	for _, rule := range c.API.rules[t.Name] {
		if rule.BeforeDelete == nil {
			continue
		}
		asked = true
		if err := rule.BeforeDelete(&n); err != nil {
			return true, err
		}
	}
	return asked, nil
}

// DeleteSome deletes a resource if the deletion removes at most limit resources, itself included. Otherwise it deletes that many
// resources below it, from the bottom up, and returns done = false. Resources that are deleted because they refer to these are not
// counted.
func (c *Change) DeleteSome(row *store.Resource, limit int) (done bool, err error) {
	t, o, err := c.API.decode(row)
	if err != nil {
		return false, err
	}
	n := *c
	n.deleting = row.ID
	if rule, ok := o.(BeforeBelowDeleter); ok {
		asked := n
		asked.Type, asked.Old, asked.New, asked.Row = t, o, nil, row
		if err := rule.BeforeBelowDelete(&asked); err != nil {
			return false, err
		}
	}
	size, err := n.sizeUpTo(row.ID, limit)
	if err != nil {
		return false, err
	}
	if size <= limit {
		return true, n.delete(row, false)
	}
	c.Tx.Describe(operationOf(deleted, t), "Deleted a part of "+describe(t, o))
	return false, n.deleteFirst(row.ID, &limit)
}

// deleteFirst deletes up to *left resources below a resource, and decrements *left.
func (c *Change) deleteFirst(id int64, left *int) error {
	children, err := c.Tx.FirstChildren(id, *left)
	if err != nil {
		return err
	}
	needed, err := c.Tx.Needed(children)
	if err != nil {
		return err
	}
	var alone []int64
	for _, child := range children {
		if !needed[child] {
			alone = append(alone, child)
		}
	}
	*left -= len(alone)
	if err := c.deleteAlone(alone, false); err != nil {
		return err
	}
	for _, child := range children {
		if !needed[child] || *left == 0 {
			continue
		}
		size, err := c.sizeUpTo(child, *left)
		if err != nil {
			return err
		}
		if size > *left {
			return c.deleteFirst(child, left)
		}
		row, err := c.Tx.Get(child)
		if errors.Is(err, store.ErrNotFound) { // it was deleted together with another one
			continue
		}
		if err != nil {
			return err
		}
		*left -= size
		if err := c.delete(row, false); err != nil {
			return err
		}
	}
	return nil
}

// sizeUpTo counts a resource and the resources below it; it stops as soon as the count exceeds limit.
func (c *Change) sizeUpTo(id int64, limit int) (size int, err error) {
	size = 1
	for waiting := []int64{id}; len(waiting) > 0; {
		last := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		children, err := c.Tx.FirstChildren(last, limit-size+1)
		if err != nil {
			return 0, err
		}
		if size += len(children); size > limit {
			return size, nil
		}
		needed, err := c.Tx.Needed(children)
		if err != nil {
			return 0, err
		}
		for _, child := range children {
			if needed[child] {
				waiting = append(waiting, child)
			}
		}
	}
	return size, nil
}

// decode returns the type of a resource, and the resource as its rules see it.
func (a *API) decode(row *store.Resource) (*schema.Type, schema.Object, error) {
	t := a.types[row.Type]
	if t == nil {
		return nil, nil, fmt.Errorf("resource %d has the type %s, which is not declared", row.ID, row.Type)
	}
	o, err := t.Object(row)
	return t, o, err
}

// deleteAtOnce is the number of resources below a deleted one that are checked and deleted together.
const deleteAtOnce = 500

// deleteBelow deletes everything below resources that are being deleted, from the bottom up. It deletes many resources at a time if
// nothing refers to them.
func (c *Change) deleteBelow(parents ...int64) error {
	for part := range slices.Chunk(parents, deleteAtOnce) {
		children, err := c.Tx.Children(part...)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(children, deleteAtOnce) {
			if err := c.deleteBelow(part...); err != nil {
				return err
			}
			if err := c.deleteEach(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteEach deletes resources that have no children left. Their parents are being deleted as well.
func (c *Change) deleteEach(ids []int64) error {
	needed, err := c.Tx.Needed(ids)
	if err != nil {
		return err
	}
	var alone []int64
	for _, id := range ids {
		if !needed[id] {
			alone = append(alone, id)
			continue
		}
		child, err := c.Tx.Get(id)
		if errors.Is(err, store.ErrNotFound) {
			continue // it was deleted together with another resource that it depended on
		}
		if err != nil {
			return err
		}
		if err := c.delete(child, true); err != nil {
			return err
		}
	}
	return c.deleteAlone(alone, true)
}

// deleteAlone deletes resources without children and without references to them. with says that their parent is being deleted as well.
func (c *Change) deleteAlone(ids []int64, with bool) error {
	found, err := c.Tx.Load(ids) // resources that were deleted together with another one are missing
	if err != nil {
		return err
	}
	rows := make([]*store.Resource, 0, len(found))
	for _, id := range ids {
		row, ok := found[id]
		if !ok {
			continue
		}
		t, o, err := c.API.decode(row)
		if err != nil {
			return err
		}
		if _, err := c.beforeDelete(t, o, row, with); err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if !with { // releasing resources may have deleted one of these through the other side
		if found, err = c.Tx.Load(ids); err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(r *store.Resource) bool { return found[r.ID] == nil })
	}
	return c.Tx.RemoveMany(rows)
}

// Dissolve deletes one resource whose content was moved elsewhere. Resources that refer to it lose the reference. Nothing is released;
// the caller is responsible for that.
func (c *Change) Dissolve(row *store.Resource) error {
	n := *c
	n.deleting = row.ID // resources that are deleted with it are part of the same deletion
	if err := n.dropReferences(row); err != nil {
		return err
	}
	return c.Tx.Remove(row)
}

// dropReferences removes the references to a deleted resource. It refuses the deletion if a referring resource declares that (the tag
// onDelete) and is not being deleted itself.
func (c *Change) dropReferences(target *store.Resource) error {
	links, err := c.Tx.Referring(target.ID)
	if err != nil {
		return err
	}
	for _, l := range links {
		source, err := c.Tx.Get(l.Target)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if f := c.API.types[source.Type].ByName[l.Field]; f != nil && f.OnDelete == "refuse" {
			isDeleted, err := c.isBeingDeleted(source)
			if err != nil {
				return err
			}
			if !isDeleted && f.Hidden {
				return problem.InUse("%[1]s %[3]s (%[2]d) refers to %[4]s %[5]d", source.Type, source.ID, source.Name, target.Type, target.ID)
			}
			if !isDeleted {
				return problem.InUse("%s %d is the %s of %s %d", target.Type, target.ID, l.Field, source.Type, source.ID)
			}
		}
		if err := c.Unlink(source, l.Field, target.ID); err != nil {
			return err
		}
	}
	return nil
}

// isBeingDeleted reports whether a resource is the one that is being deleted, or is below it.
func (c *Change) isBeingDeleted(row *store.Resource) (bool, error) {
	id, parent := row.ID, row.Parent
	for id != c.deleting {
		if parent <= RootID {
			return false, nil
		}
		h, err := c.Tx.Head(parent)
		if err != nil {
			return false, fmt.Errorf("read the parents of resource %d: %w", row.ID, err)
		}
		id, parent = h.ID, h.Parent
	}
	return true, nil
}

// Unlink removes one reference from a resource. It deletes the resource if the field's rule is cascade and this was its last target.
func (c *Change) Unlink(source *store.Resource, field string, target int64) error {
	t := c.API.types[source.Type]
	o, err := t.Object(source)
	if err != nil {
		return err
	}
	if err := c.Tx.LoadLinks(source); err != nil {
		return err
	}
	is := func(r store.Ref) bool { return r.Field == field && r.Target == target }
	if f := t.ByName[field]; f != nil && f.OnDelete == "cascade" &&
		!slices.ContainsFunc(source.Links, func(r store.Ref) bool { return r.Field == field && !is(r) }) {
		return c.delete(source, false)
	}
	without := *source
	without.Refs = slices.DeleteFunc(slices.Clone(source.Refs), is)
	without.Links = slices.DeleteFunc(slices.Clone(source.Links), is)
	c.Tx.Describe(operationOf(updated, t), "Changed "+describe(t, o))
	return c.Tx.Replace(source, &without)
}
