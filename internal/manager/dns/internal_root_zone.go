package dns

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerInternalRootZones declares the roots that views have of their own.
func registerInternalRootZones(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "zones"}, &InternalRootZone{})
}

// RootName is the name of the root zone.
const RootName = "."

// InternalRootZone is a view's own root of the names: one in a view.
type InternalRootZone struct {
	schema.Head `head:"readOnly" parents:"views"`
	// Configuration is the configuration the zone lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view the zone lies in.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// DeploymentEnabled says whether the zone is put on the wire.
	DeploymentEnabled bool `api:"deploymentEnabled,put"`
}

// BeforeWrite places the zone.
func (x *InternalRootZone) BeforeWrite(*resource.Change) error {
	x.Name, x.View = RootName, schema.Ref{ID: x.Parent}
	return nil
}

// Validate refuses a second one in a view.
func (x *InternalRootZone) Validate(c *resource.Change) error {
	return checkSingleRoot(c, x.ID, x.View.ID)
}

func checkSingleRoot(c *resource.Change, id, view int64) error {
	found, err := c.Tx.ByName("zones", view, RootName)
	for _, r := range found {
		if r.ID != id {
			return problem.Conflict("ResourceAlreadyExists", "view %d has a root already: zone %d", view, r.ID)
		}
	}
	return err
}

// Key is what the zone is found by.
func (x *InternalRootZone) Key() string { return RootName }
