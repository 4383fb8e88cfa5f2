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

// registerMoves declares the moving of zones and records, which says what was done.
func registerMoves(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "moves"}, &DNSMove{}, &ZoneMove{}, &ResourceRecordMove{})
}

// DNSMove is the moving of a zone or record to another name, and the record of it.
type DNSMove struct { //nolint:revive // its published name
	schema.Head `head:"readOnly" parents:"resourceRecords|zones" did:"Moved"`
	// AbsoluteName is its whole name from then on.
	AbsoluteName string `api:"absoluteName,required,dns" length:"1020"`
}

// BeforeWrite says in its name what is moved where, for the history.
func (x *DNSMove) BeforeWrite(c *resource.Change) error {
	if !c.Creates() {
		return nil
	}
	row, err := c.Tx.Get(x.Parent)
	if err == nil {
		x.Name = row.Key + " to " + x.AbsoluteName
	}
	return err
}

// AfterWrite moves the zone, with all below it, or the record.
func (x *DNSMove) AfterWrite(c *resource.Change) error {
	if !c.Creates() {
		return nil
	}
	row, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	return MoveName(c, row, x.AbsoluteName)
}

// ZoneMove is the moving of a zone to another name, and the record of it, as release 9.6 has it.
type ZoneMove struct {
	schema.Head `head:"readOnly" parents:"zones" later:"9.6" did:"Moved Zone"`
	schema.Recorded
	NameMove
}

// ResourceRecordMove is the moving of a record to another name, and the record of it, as release 9.6 has it.
type ResourceRecordMove struct {
	schema.Head `head:"readOnly" parents:"resourceRecords" later:"9.6" did:"Moved ResourceRecord"`
	schema.Recorded
	NameMove
}

// NameMove is what moves of zones and records say.
type NameMove struct {
	// Destination is the name that it has then.
	Destination *NamePlace `api:"destination,post,createOnly"`
	// Source is the name that it had before.
	Source *NamePlace `api:"source,readOnly"`
}

// NamePlace is where a zone or record is.
type NamePlace struct {
	// AbsoluteName is its whole name.
	AbsoluteName string `api:"absoluteName,required,nonblank" length:"1020"`
}

// BeforeWrite notes what the zone or record was called.
func (x *NameMove) BeforeWrite(c *resource.Change) error {
	if !c.Creates() {
		return nil
	}
	row, err := c.Tx.Get(schema.HeadOf(c.New).Parent)
	if err == nil {
		x.Source = &NamePlace{AbsoluteName: row.Key}
		schema.HeadOf(c.New).Name = row.Key + " to " + x.Destination.AbsoluteName
	}
	return err
}

// AfterWrite moves the zone, with all below it, or the record.
func (x *NameMove) AfterWrite(c *resource.Change) error {
	if !c.Creates() {
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

// MoveName moves a zone, with all below it, or a record to a name.
func MoveName(c *resource.Change, row *store.Resource, to string) error {
	if strings.HasPrefix(to, ".") || strings.TrimSpace(to) != to {
		return problem.Field("InvalidFullyQualifiedDomainName", "absoluteName", "%q has a dot or a blank in front, or a blank behind", to)
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
	n := c.FollowingAsked("name")
	if _, ok := o.(*Zone); ok {
		n.Options = multiLabelNames.Set(n.Options, true)
	}
	_, err = n.Change(row, func(o schema.Object) {
		h := schema.HeadOf(o)
		h.Parent, h.Name = parent, relative
	})
	return err
}

// zoneAbove finds what a name lies in: the zone of the view with the longest name above it, which is
// not the one that is moved nor lies below it, or for a zone the view itself.
func findParentZone(tx *store.Tx, configuration, view int64, absolute string, moved *store.Resource) (parent int64, relative string, err error) {
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
			inside, err := LiesBelow(tx, zone, moved.ID)
			if err != nil {
				return 0, "", err
			}
			if inside {
				return 0, "", problem.Field("InvalidMoveDestination", "absoluteName", "%q lies in the zone that is moved", absolute)
			}
			relative, _ := naming.Relative(name, at)
			return zone.ID, relative, nil
		}
	}
	if moved.Collection == "zones" {
		return view, name, nil
	}
	return 0, "", problem.Conflict("ZoneNotFound", "absoluteName: there is no zone for %q in the view", absolute)
}

// LiesBelow reports whether a resource is, or lies below, another one.
func LiesBelow(tx *store.Tx, row *store.Resource, top int64) (bool, error) {
	for row.ID != top {
		if row.Parent <= resource.RootID {
			return false, nil
		}
		above, err := tx.Get(row.Parent)
		if err != nil {
			return false, fmt.Errorf("looking above resource %d: %w", row.ID, err)
		}
		row = above
	}
	return true, nil
}
