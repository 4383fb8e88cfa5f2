package dns

import (
	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// registerExternalHosts declares hosts that are somebody else's, and the zones that hold them.
func registerExternalHosts(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "zones"}, &ExternalHostsZone{})
	r.Collection(resource.Collection{Name: "resourceRecords"}, &ExternalHostRecord{})
}

// ExternalHostRecord is the name of a host that is somebody else's, for records to link to. It is not
// served.
type ExternalHostRecord struct {
	RecordHead `parents:"zones"`
	// View is the view that the record is made in.
	View schema.Ref `api:"view,writeOnly" ref:"View"`
}

// BeforeWrite takes the name, which is whole, as it is.
func (x *ExternalHostRecord) BeforeWrite(c *resource.Change) error {
	zone, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	if zone.Type != "ExternalHostsZone" {
		return problem.Invalid("type", "an ExternalHostRecord lies in an ExternalHostsZone, not in %s %d", zone.Type, zone.ID)
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

// Validate refuses a second record of the same host.
func (x *ExternalHostRecord) Validate(c *resource.Change) error {
	same, err := c.Tx.ByKey(x.Config, naming.Key(x.AbsoluteName))
	if err != nil {
		return err
	}
	for _, r := range same {
		if r.Parent == x.Parent && r.ID != x.ID {
			return problem.Conflict("ResourceAlreadyExists", "name: %q is %s %d already", x.AbsoluteName, r.Type, r.ID)
		}
	}
	return nil
}

// ExternalHostsZone holds the names of hosts that are somebody else's: one in a view.
type ExternalHostsZone struct {
	schema.Head `head:"readOnly" parents:"views"`
	// Configuration is the configuration the zone lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view the zone lies in.
	View schema.Ref `api:"view,readOnly" ref:"View"`
}

// BeforeWrite places the zone.
func (x *ExternalHostsZone) BeforeWrite(*resource.Change) error {
	x.View = schema.Ref{ID: x.Parent}
	x.Name = "External Hosts"
	return nil
}

// Validate refuses a second one in a view.
func (x *ExternalHostsZone) Validate(c *resource.Change) error {
	other, err := externalHosts(c.Tx, x.View.ID)
	if err == nil && other != nil && other.ID != x.ID {
		return problem.Conflict("ResourceAlreadyExists", "view %d has external hosts already: zone %d", x.View.ID, other.ID)
	}
	return err
}

// externalHosts finds the zone of a view's external hosts; nil where it has none.
func externalHosts(tx *store.Tx, view int64) (*store.Resource, error) {
	found, err := tx.ByName("zones", view, "External Hosts")
	for _, r := range found {
		if r.Type == "ExternalHostsZone" {
			return r, err
		}
	}
	return nil, err
}
