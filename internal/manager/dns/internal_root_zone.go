package dns

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerInternalRootZones declares the internal root zones of views.
func registerInternalRootZones(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "zones"}, &InternalRootZone{})
}

// RootName is the name of the root zone.
const RootName = "."

// InternalRootZone is the internal root zone of a view. A view has at most one.
type InternalRootZone struct {
	schema.Head `head:"readOnly" parents:"views"`
	// Configuration is the configuration that contains the zone.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view that contains the zone.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// DeploymentEnabled includes the zone in deployments.
	DeploymentEnabled bool `api:"deploymentEnabled,put"`
}

// BeforeWrite sets the name and the view.
func (x *InternalRootZone) BeforeWrite(*resource.Change) error {
	x.Name, x.View = RootName, schema.Ref{ID: x.Parent}
	return nil
}

// Validate rejects a second root zone in a view.
func (x *InternalRootZone) Validate(c *resource.Change) error {
	return checkSingleRoot(c, x.ID, x.View.ID)
}

func checkSingleRoot(c *resource.Change, id, view int64) error {
	found, err := c.Tx.ByName("zones", view, RootName)
	for _, r := range found {
		if r.ID != id {
			return problem.Conflict("ResourceAlreadyExists", "an internal root zone already exists as zone %d in view %d", r.ID, view)
		}
	}
	return err
}

// Key returns the lookup key.
func (x *InternalRootZone) Key() string { return RootName }
