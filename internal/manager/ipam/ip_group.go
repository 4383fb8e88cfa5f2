package ipam

import (
	"portolan/internal/engine/resource"
)

// registerIPGroups declares the collection of IP groups.
func registerIPGroups(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "ipGroups", Parents: []string{"networks"}, Place: placeSpace,
		Space: resource.SpansSpace}, &IPv4Group{})
}

// IPv4Group is a named part of a network.
type IPv4Group struct {
	RangeHead `head:"required,nonblank" unique:"siblings"`
}

// BeforeWrite resolves the range of the group.
func (x *IPv4Group) BeforeWrite(c *resource.Change) error { return x.place(c, "ipGroups", true) }

// Validate rejects a group that does not fit. It touches policyTopic, because settingsInUse records whether groups exist.
func (x *IPv4Group) Validate(c *resource.Change) error {
	c.Tx.Touch(policyTopic)
	return x.checkPlacement(c, "ipGroups")
}
