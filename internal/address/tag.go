package address

import (
	"portolan/internal/problem"
	"portolan/internal/resource"
)

// TagGroup holds tags of one kind, such as sites or owners.
type TagGroup struct {
	resource.Head `head:"required,nonblank"`
}

// Fits refuses a name that another group has.
func (x *TagGroup) Fits(c *resource.Change) error {
	return uniqueName(c, "tagGroups", x.Parent, x.Name)
}

// Tag is a label for anything: below a group, or below another tag.
type Tag struct {
	resource.Head `head:"required,nonblank"`
}

// Fits refuses a name that another tag beside it has.
func (x *Tag) Fits(c *resource.Change) error { return uniqueName(c, "tags", x.Parent, x.Name) }

// tags is the subcollection of what is tagged: its tags.
func tags() resource.Sub {
	s := links("tags", "tags")
	s.Open = true
	return s
}

// tagged is what a tag is on.
func tagged() resource.Sub {
	s := linking("taggedResources", "tags", "*")
	s.Open = true
	return s
}

// sharedNetworks are the networks that a tag puts together on one wire.
func sharedNetworks() resource.Sub {
	s := linking("sharedResources", "sharedNetworkTag", "networks")
	s.Types = []string{"IPv4Network"}
	return s
}

// checkSharedNetwork refuses a shared network by a tag of another group than the configuration's.
func checkSharedNetwork(c *resource.Change, x *IPv4Network) error {
	if x.SharedNetworkTag.ID == 0 || !c.Creates() && !c.Given["sharedNetworkTag"] {
		return nil
	}
	configuration, err := c.Tx.Get(x.Config)
	if err != nil {
		return err
	}
	o, err := c.API.Object(configuration)
	if err != nil {
		return err
	}
	group := o.(*Configuration).SharedNetworkTagGroup.ID
	if group == 0 {
		return problem.Conflict("NoSharedNetworks", "sharedNetworkTag: the configuration names no sharedNetworkTagGroup")
	}
	tag, err := c.Tx.Head(x.SharedNetworkTag.ID)
	if asNotFound(err) {
		return nil // said elsewhere
	}
	if err != nil {
		return err
	}
	if tag.Parent != group {
		return problem.Invalid("sharedNetworkTag", "tag %d does not lie in the configuration's sharedNetworkTagGroup %d", tag.ID, group)
	}
	return nil
}
