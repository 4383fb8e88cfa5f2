package dns

import (
	"slices"
	"strings"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerENUMZones declares zones for telephone numbers.
func registerENUMZones(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "zones"}, &ENUMNumberZone{}, &ENUMZone{})
}

// ENUMZone is a zone for telephone numbers as names (RFC 6116), such as e164.arpa.
type ENUMZone struct {
	schema.Head `head:"required,nonblank"`
	// Configuration is the configuration that contains the zone.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view that contains the zone.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// DeploymentEnabled includes the zone in deployments.
	DeploymentEnabled bool `api:"deploymentEnabled,put"`
	// AbsoluteName is the absolute name of the zone.
	AbsoluteName string `api:"absoluteName,readOnly,dns,inline,search" length:"1020"`
}

// BeforeWrite places the zone below a view or a Zone.
func (x *ENUMZone) BeforeWrite(c *resource.Change) error {
	parent, err := c.ReadParent(x.Parent)
	if err != nil {
		return err
	}
	if parent.Collection != "views" && parent.Type != "Zone" {
		return problem.Invalid("type", "an ENUMZone must be in a view or a Zone, not in %s %d", parent.Type, parent.ID)
	}
	x.Name = naming.Clean(x.Name)
	x.View.ID, x.AbsoluteName, err = resolveZoneName(c, x.Parent, x.Name)
	return err
}

// Validate rejects the name of another zone of the view.
func (x *ENUMZone) Validate(c *resource.Change) error {
	return checkZoneNameUnique(c, &x.Head, x.View.ID, x.AbsoluteName)
}

// AfterWrite renames everything below a renamed zone.
func (x *ENUMZone) AfterWrite(c *resource.Change) error {
	if old, ok := c.Old.(*ENUMZone); !ok || old.AbsoluteName == x.AbsoluteName {
		return nil
	}
	return renameBelow(c, x.ID)
}

// Key returns the absolute name in the form used for comparison.
func (x *ENUMZone) Key() string { return naming.Key(x.AbsoluteName) }

// String returns the absolute name.
func (x *ENUMZone) String() string { return x.AbsoluteName }

// ENUMNumberZone is a telephone number, or a prefix of numbers, below an ENUM zone. The name consists of its digits in reverse order.
type ENUMNumberZone struct {
	schema.Head `head:"required,nonblank"`
	// Configuration is the configuration that contains the zone.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view that contains the zone.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// NumberName is the number as dialed. The default is derived from the name.
	NumberName string `api:"numberName,nonblank"`
	// AbsoluteName is the absolute name of the zone.
	AbsoluteName string `api:"absoluteName,readOnly,dns,inline,search" length:"1020"`
}

// BeforeWrite places the number and checks that the name and the number match.
func (x *ENUMNumberZone) BeforeWrite(c *resource.Change) error {
	parent, err := c.ReadParent(x.Parent)
	if err != nil {
		return err
	}
	if parent.Type != "ENUMZone" && parent.Type != "ENUMNumberZone" {
		return problem.Invalid("type", "an ENUMNumberZone must be in an ENUMZone or another ENUMNumberZone, not in %s %d", parent.Type, parent.ID)
	}
	x.Name = naming.Clean(x.Name)
	labels := strings.Split(x.Name, ".")
	for _, label := range labels {
		if len(label) != 1 || !isDigits(label) {
			return problem.Invalid("name", "must be single digits separated by dots, in reverse order, not %q (RFC 6116 section 3.2)", x.Name)
		}
	}
	slices.Reverse(labels)
	number := strings.Join(labels, "")
	if x.NumberName == "" || !c.SetFields["numberName"] {
		x.NumberName = number
	}
	if digits := strings.NewReplacer("+", "", "-", "", " ", "").Replace(x.NumberName); digits != number {
		return problem.Invalid("numberName", "%q does not match the name %q: must be %s", x.NumberName, x.Name, number)
	}
	x.View.ID, x.AbsoluteName, err = resolveZoneName(c, x.Parent, x.Name)
	return err
}

// Validate rejects the name of another zone of the view.
func (x *ENUMNumberZone) Validate(c *resource.Change) error {
	return checkZoneNameUnique(c, &x.Head, x.View.ID, x.AbsoluteName)
}

// AfterWrite renames everything below a changed number.
func (x *ENUMNumberZone) AfterWrite(c *resource.Change) error {
	if old, ok := c.Old.(*ENUMNumberZone); !ok || old.AbsoluteName == x.AbsoluteName {
		return nil
	}
	return renameBelow(c, x.ID)
}

// Key returns the absolute name in the form used for comparison.
func (x *ENUMNumberZone) Key() string { return naming.Key(x.AbsoluteName) }

// String returns the absolute name.
func (x *ENUMNumberZone) String() string { return x.AbsoluteName }

// addNumbers adds the records of the numbers below an ENUM zone. Numbers are not zones in DNS.
func (z *ZoneReader) addNumbers(zone *store.Resource) error {
	var below []*store.Resource
	if err := z.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("zones"),
		store.HasParent(zone.ID)}},
		func(r *store.Resource) error {
			if r.Type == "ENUMNumberZone" {
				below = append(below, r.Clone())
			}
			return nil
		}); err != nil {
		return err
	}
	for _, number := range below {
		if err := z.Read(number, func(dns.RR) bool { return true }); err != nil {
			return err
		}
		if err := z.addNumbers(number); err != nil {
			return err
		}
	}
	return nil
}
