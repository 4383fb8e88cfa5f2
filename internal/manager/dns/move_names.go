package dns

import (
	"fmt"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerMoves declares the moves of zones and records, which are kept as records of the operation.
func registerMoves(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "moves"}, &DNSMove{}, &ZoneMove{}, &ResourceRecordMove{})
}

// DNSMove moves a zone or record to another name. It is kept as a record of the operation.
type DNSMove struct { //nolint:revive // its published name
	schema.Head `head:"readOnly" parents:"resourceRecords|zones" did:"Moved"`
	// AbsoluteName is the new absolute name.
	AbsoluteName string `api:"absoluteName,required,dns" length:"1020"`
}

// BeforeWrite sets the name to a description of the move for the history.
func (x *DNSMove) BeforeWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := c.Tx.Get(x.Parent)
	if err == nil {
		x.Name = row.Key + " to " + x.AbsoluteName
	}
	return err
}

// AfterWrite moves the record, or the zone with everything below it.
func (x *DNSMove) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	return MoveName(c, row, x.AbsoluteName)
}

// ZoneMove moves a zone to another name, as in release 9.6. It is kept as a record of the operation.
type ZoneMove struct {
	schema.Head `head:"readOnly" parents:"zones" later:"9.6" did:"Moved Zone"`
	schema.Recorded
	NameMove
}

// ResourceRecordMove moves a record to another name, as in release 9.6. It is kept as a record of the operation.
type ResourceRecordMove struct {
	schema.Head `head:"readOnly" parents:"resourceRecords" later:"9.6" did:"Moved ResourceRecord"`
	schema.Recorded
	NameMove
}

// NameMove has the common fields of moves of zones and records.
type NameMove struct {
	// Destination is the new name.
	Destination *NamePlace `api:"destination,post,createOnly"`
	// Source is the old name.
	Source *NamePlace `api:"source,readOnly"`
}

// NamePlace is the name of a zone or record.
type NamePlace struct {
	// AbsoluteName is the absolute name.
	AbsoluteName string `api:"absoluteName,required,nonblank" length:"1020"`
}

// BeforeWrite records the old name.
func (x *NameMove) BeforeWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := c.Tx.Get(schema.HeadOf(c.New).Parent)
	if err == nil {
		x.Source = &NamePlace{AbsoluteName: row.Key}
		schema.HeadOf(c.New).Name = row.Key + " to " + x.Destination.AbsoluteName
	}
	return err
}

// AfterWrite moves the record, or the zone with everything below it.
func (x *NameMove) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := c.Tx.Get(schema.HeadOf(c.New).Parent)
	if err != nil {
		return err
	}
	err = MoveName(c, row, x.Destination.AbsoluteName)
	if p, ok := problem.As(err); ok && p.Status < 500 {
		p.Fields = []string{"destination.absoluteName"}
	}
	return err
}

// MoveName moves a record, or a zone with everything below it, to a name.
func MoveName(c *resource.Change, row *store.Resource, to string) error {
	if strings.HasPrefix(to, ".") || strings.TrimSpace(to) != to {
		return problem.Field("InvalidFullyQualifiedDomainName", "absoluteName", "%q has a leading dot, or a leading or trailing space", to)
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	view, _, err := resolveParent(c.Tx, row.Parent)
	if err != nil {
		return err
	}
	parent, relative, err := findParentZone(c.Tx, row.Configuration, view, to, row)
	if err != nil {
		return err
	}
	n := c.FollowingWithOptions("name")
	if _, ok := o.(*Zone); ok {
		n.Options = multiLabelNames.Set(n.Options, true)
	}
	_, err = n.Change(row, func(o schema.Object) {
		h := schema.HeadOf(o)
		h.Parent, h.Name = parent, relative
	})
	return err
}

// findParentZone returns the new parent of a moved zone or record: the zone of the view with the longest name above it. For a zone it may
// be the view. It rejects a destination inside of the moved zone.
func findParentZone(tx *store.Tx, configuration, view int64, absolute string, moved *store.Resource) (parent int64, relative string,
	err error,
) {
	name := naming.Clean(absolute)
	at := name
	if moved.Collection == "zones" {
		at = parentName(name)
	}
	for ; at != ""; at = parentName(at) {
		same, err := FindByName(tx, configuration, view, "zones", at)
		if err != nil {
			return 0, "", err
		}
		for _, zone := range same {
			inside, err := IsBelow(tx, zone, moved.ID)
			if err != nil {
				return 0, "", err
			}
			if inside {
				return 0, "", problem.Field("InvalidMoveDestination", "absoluteName", "%q is inside the zone to move", absolute)
			}
			relative, _ := naming.Relative(name, at)
			return zone.ID, relative, nil
		}
	}
	if moved.Collection == "zones" {
		return view, name, nil
	}
	return 0, "", problem.Conflict("ZoneNotFound", "absoluteName: no zone of the view contains %q", absolute)
}

// IsBelow reports whether a resource is the resource top or is below it.
func IsBelow(tx *store.Tx, row *store.Resource, top int64) (bool, error) {
	for row.ID != top {
		if row.Parent <= resource.RootID {
			return false, nil
		}
		above, err := tx.Get(row.Parent)
		if err != nil {
			return false, fmt.Errorf("read the parents of resource %d: %w", row.ID, err)
		}
		row = above
	}
	return true, nil
}
