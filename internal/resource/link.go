package resource

import (
	"encoding/json"
	"reflect"
	"slices"

	"portolan/internal/problem"
	"portolan/internal/store"
)

// link adds a resource to a field of many: the body names it by its id.
func (a *API) link(c *Change, at target) (*store.Resource, error) {
	above, err := a.find(c.Tx, at.collection, at.id, c.Caller)
	if err != nil {
		return nil, err
	}
	raw, ok := c.Sent["id"]
	if !ok {
		return nil, problem.Join(missingFields([]string{"id"}))
	}
	var id int64
	if json.Unmarshal(raw, &id) != nil || id < 1 {
		return nil, problem.Invalid("id", "must be the number of a resource")
	}
	other, err := c.Tx.Get(id)
	if store.IsNotFound(err) {
		return nil, notFoundInlined("id", "there is no resource %d", id)
	}
	if err != nil {
		return nil, err
	}
	allowed := a.postTypes(at.sub)
	if !slices.Contains(allowed, a.types[other.Type]) {
		return nil, problem.Invalid("id", "resource %d is of type %s, which cannot be linked here", id, other.Type)
	}
	if above.Configuration != 0 && other.Configuration != 0 && above.Configuration != other.Configuration {
		return nil, problem.Invalid("id", "resource %d lies in another configuration", id)
	}
	source, target := above, other
	if at.sub.Relation == Linking {
		source, target = other, above
	}
	if err := a.addLink(c, at, source, target); err != nil || at.sub.Joined == nil {
		return other, err
	}
	if err := at.sub.Joined(c, source, target); err != nil {
		return nil, err
	}
	return c.Tx.Get(other.ID)
}

func (a *API) addLink(c *Change, at target, source, target *store.Resource) error {
	field := at.sub.Field
	f := a.types[source.Type].byName[field]
	other := target // which the body names
	if at.sub.Relation == Linking {
		other = source
	}
	if slices.Contains(source.Refs, store.Ref{Field: field, Target: target.ID}) {
		return alreadyLinked(other.ID)
	}
	if f != nil && f.Kind == Reference { // the other side holds one: it is set
		_, err := c.Change(source, func(o Object) {
			reflect.ValueOf(o).Elem().FieldByIndex(f.index).Set(reflect.ValueOf(Ref{ID: target.ID}))
		})
		return err
	}
	if f == nil && !at.sub.Open {
		return problem.Invalid("id", "resource %d, of type %s, has no %s", source.ID, source.Type, field)
	}
	targets, err := c.Tx.Links(source.ID, field)
	if err != nil {
		return err
	}
	if slices.Contains(targets, target.ID) {
		return alreadyLinked(other.ID)
	}
	return c.Link(source, field, target.ID)
}

func alreadyLinked(id int64) error {
	return problem.Conflict("ResourceAlreadyExists", "resource %d is linked already", id)
}

// unlink takes a resource out of a field of many.
func (a *API) unlink(c *Change, at target) error {
	other, err := a.locate(c.Tx, at, c.Caller)
	if err != nil {
		return err
	}
	source, target := at.id, other.ID
	if at.sub.Relation == Linking {
		source, target = other.ID, at.id
	}
	row, err := c.Tx.Get(source)
	if err != nil {
		return err
	}
	return c.Unlink(row, at.sub.Field, target)
}
