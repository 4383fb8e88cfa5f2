package ipam

import (
	"portolan/internal/engine/resource"
)

// registerIPGroups declares the collection of IP groups.
func registerIPGroups(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "ipGroups", Parents: []string{"networks"}, Place: placeSpace,
		Space: resource.LiesOverSpace}, &IPv4Group{})
}

// IPv4Group is a part of a network under a name.
type IPv4Group struct {
	RangeHead `head:"required,nonblank" unique:"siblings"`
}

// BeforeWrite places the group.
func (x *IPv4Group) BeforeWrite(c *resource.Change) error { return x.place(c, "ipGroups", true) }

// Validate refuses a group that does not fit, and notes that there are groups.
func (x *IPv4Group) Validate(c *resource.Change) error {
	c.Tx.Touch(policyTopic)
	return x.fits(c, "ipGroups")
}
