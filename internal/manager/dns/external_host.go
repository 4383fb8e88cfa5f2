package dns

import (
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerExternalHosts declares hosts of other organizations and the zones that contain them. Every new view gets such a zone, because the
// published API shows one and cannot create it.
func registerExternalHosts(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "zones"}, &ExternalHostsZone{})
	r.Collection(resource.Collection{Name: "resourceRecords"}, &ExternalHostRecord{})
	r.Rule(resource.Rule{Types: []string{"View"}, AfterWrite: func(c *resource.Change) error {
		if !c.IsCreation() {
			return nil
		}
		h := schema.HeadOf(c.New)
		_, err := createExternalHostsZone(c, h.ID, h.Config)
		return err
	}})
	r.Seed(func(c *resource.Change) error {
		return resource.EachWithout(c, "views", "zones",
			store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: "ExternalHostsZone"},
			func(id int64) error {
				view, err := c.Tx.Head(id)
				if err == nil {
					_, err = createExternalHostsZone(c, id, view.Configuration)
				}
				return err
			})
	})
}

// createExternalHostsZone creates the zone for the external hosts of a view.
func createExternalHostsZone(c *resource.Change, view, configuration int64) (*store.Resource, error) {
	z := &ExternalHostsZone{}
	z.Type, z.Parent, z.Config = "ExternalHostsZone", view, configuration
	return c.FollowingWithOptions("name").Create(c.API.TypeNamed(z.Type), z)
}

// ExternalHostRecord is the name of a host of another organization. Other records can link to it. It is not served.
type ExternalHostRecord struct {
	RecordHead `parents:"zones"`
	// View is the view of a new record.
	View schema.Ref `api:"view,writeOnly" ref:"View"`
}

// BeforeWrite uses the name as the absolute name.
func (x *ExternalHostRecord) BeforeWrite(c *resource.Change) error {
	zone, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	if zone.Type != "ExternalHostsZone" { // published clients use any zone of the view, or the view itself, as parent
		view, _, err := resolveParent(c.Tx, x.Parent)
		if err != nil {
			return err
		}
		hosts, err := findExternalHostsZone(c.Tx, view)
		if err != nil {
			return err
		}
		if hosts == nil {
			return problem.Invalid("type", "view %d has no ExternalHostsZone: create it before an ExternalHostRecord", view)
		}
		x.Parent = hosts.ID
	}
	if x.Name == "" {
		x.Name = x.AbsoluteName
	}
	x.Name = naming.Clean(x.Name)
	if err := naming.Check(x.Name, naming.AnyName); err != nil {
		return problem.Invalid("name", "%v", err)
	}
	x.AbsoluteName = x.Name
	return nil
}

// Validate rejects a second record for the same host.
func (x *ExternalHostRecord) Validate(c *resource.Change) error {
	same, err := c.Tx.ResourcesByKey(x.Config, naming.Key(x.AbsoluteName))
	if err != nil {
		return err
	}
	for _, r := range same {
		if r.Parent == x.Parent && r.ID != x.ID {
			return problem.Conflict("ResourceAlreadyExists", "name: %q already exists as %s %d", x.AbsoluteName, r.Type, r.ID)
		}
	}
	return nil
}

// ExternalHostsZone contains the names of hosts of other organizations. Every view has one.
type ExternalHostsZone struct {
	schema.Head `head:"readOnly" parents:"views" post:"no"`
	// Configuration is the configuration that contains the zone.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view that contains the zone.
	View schema.Ref `api:"view,readOnly" ref:"View"`
}

// BeforeWrite sets the view and the name of the zone.
func (x *ExternalHostsZone) BeforeWrite(*resource.Change) error {
	x.View = schema.Ref{ID: x.Parent}
	x.Name = "External Hosts"
	return nil
}

// Validate rejects a second such zone in a view.
func (x *ExternalHostsZone) Validate(c *resource.Change) error {
	other, err := findExternalHostsZone(c.Tx, x.View.ID)
	if err == nil && other != nil && other.ID != x.ID {
		return problem.Conflict("ResourceAlreadyExists", "an ExternalHostsZone already exists as zone %d in view %d", other.ID, x.View.ID)
	}
	return err
}

// BeforeDelete rejects the deletion of the zone unless its view is deleted.
func (x *ExternalHostsZone) BeforeDelete(c *resource.Change) error {
	if c.IsCascaded() {
		return nil
	}
	return problem.Forbidden("DeleteNotAllowed", "every view requires an %s", x.Type)
}

// findExternalHostsZone returns the zone of a view's external hosts; nil if there is none.
func findExternalHostsZone(tx *store.Tx, view int64) (*store.Resource, error) {
	found, err := tx.ByName("zones", view, "External Hosts")
	for _, r := range found {
		if r.Type == "ExternalHostsZone" {
			return r, err
		}
	}
	return nil, err
}

// ExternalHost returns a reference to the record of an external host in a view. It creates the record, and the zone for it, if necessary.
func ExternalHost(c *resource.Change, view *store.Resource, name string) (schema.Ref, error) {
	zone, err := findExternalHostsZone(c.Tx, view.ID)
	if err != nil {
		return schema.Ref{}, err
	}
	n := c.FollowingWithOptions("name")
	if zone == nil { // an undo deleted it
		if zone, err = createExternalHostsZone(c, view.ID, view.Configuration); err != nil {
			return schema.Ref{}, err
		}
	}
	found, err := c.Tx.ResourcesByKey(view.Configuration, naming.Key(name))
	if err != nil {
		return schema.Ref{}, err
	}
	for _, r := range found {
		if r.Parent == zone.ID {
			return schema.Ref{ID: r.ID}, nil
		}
	}
	h := &ExternalHostRecord{}
	h.Type, h.Name, h.Parent, h.Config = ExternalHostType, name, zone.ID, view.Configuration
	t, _ := c.API.Type(h.Type)
	row, err := n.Create(t, h)
	if err != nil {
		return schema.Ref{}, err
	}
	return schema.Ref{ID: row.ID}, nil
}

// ExternalHostType is the type of records for hosts of other organizations.
const ExternalHostType = "ExternalHostRecord"
