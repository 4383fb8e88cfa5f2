package resource

import (
	"encoding/json"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Link adds the resource that the body names by its id to a list of references.
func (a *API) Link(c *Change, at Target) (*store.Resource, error) {
	above, err := a.find(c.Tx, at.Collection, at.ID, c.Caller)
	if err != nil {
		return nil, err
	}
	raw, ok := c.Sent["id"]
	if !ok {
		return nil, problem.Join(schema.MissingFields([]string{"id"}))
	}
	var id int64
	if json.Unmarshal(raw, &id) != nil || id < 1 {
		return nil, problem.Invalid("id", "must be the number of a resource")
	}
	other, err := a.find(c.Tx, nil, id, c.Caller)
	if problem.IsNotFound(err) {
		return nil, notFoundInlined("id", "resource %d does not exist", id)
	}
	if err != nil {
		return nil, err
	}
	allowed := a.PostTypes(at.Sub)
	if !slices.Contains(allowed, a.types[other.Type]) {
		return nil, problem.Invalid("id", "resource %d is of type %s, which cannot be linked here", id, other.Type)
	}
	if above.Configuration != 0 && other.Configuration != 0 && above.Configuration != other.Configuration {
		return nil, problem.Field("ResourceNotInConfiguration", "id", "resource %d belongs to another configuration", id)
	}
	source, target := above, other
	if at.Sub.Relation == Linking {
		source, target = other, above
	}
	if err := a.addLink(c, at, source, target); err != nil {
		return nil, err
	}
	if at.Sub.Joined != nil {
		if err := at.Sub.Joined(c, source, target); err != nil {
			return nil, err
		}
	}
	return c.Tx.Get(other.ID)
}

func (a *API) addLink(c *Change, at Target, source, target *store.Resource) error {
	field := at.Sub.FieldIn(source.Type)
	f := a.types[source.Type].ByName[field]
	other := target // the resource that the body names
	if at.Sub.Relation == Linking {
		other = source
	}
	if slices.Contains(source.Refs, store.Ref{Field: field, Target: target.ID}) {
		return alreadyLinked(other.ID)
	}
	if f != nil && f.Kind == schema.Reference { // the other side has a single reference, which is set
		return c.relink(source, f, []int64{target.ID})
	}
	if f == nil && !at.Sub.Open {
		return problem.Invalid("id", "resource %d of type %s has no field %s", source.ID, source.Type, field)
	}
	targets, err := c.Tx.Links(source.ID, field)
	if err != nil {
		return err
	}
	if slices.Contains(targets, target.ID) {
		return alreadyLinked(other.ID)
	}
	if f != nil {
		if err := c.describeLink(source, target.ID); err != nil {
			return err
		}
		return c.relink(source, f, append(targets, target.ID))
	}
	return c.Link(source, field, target.ID)
}

func alreadyLinked(id int64) error {
	return problem.Conflict("ResourceAlreadyExists", "resource %d is already linked", id)
}

// Unlink removes a resource from a list of references.
func (a *API) Unlink(c *Change, at Target) error {
	other, err := a.Locate(c.Tx, at, c.Caller)
	if err != nil {
		return err
	}
	source, target := at.ID, other.ID
	if at.Sub.Relation == Linking {
		source, target = other.ID, at.ID
	}
	row, err := c.Tx.Get(source)
	if err != nil {
		return err
	}
	field := at.Sub.FieldIn(row.Type)
	f := a.types[row.Type].ByName[field]
	targets, err := c.Tx.Links(row.ID, field)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(targets, func(id int64) bool { return id == target })
	if f == nil || f.OnDelete == "cascade" && len(rest) == 0 { // not a field, or a field whose last target deletes the resource
		return c.Unlink(row, field, target)
	}
	return c.relink(row, f, rest)
}
