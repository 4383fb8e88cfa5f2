package address

import (
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// registerTags declares the collections of tags, and that any resource may have them.
func registerTags(r *registry) {
	r.Collection(resource.Collection{Name: "tagGroups", Parents: []string{"tagGroups"}}, &TagGroup{})
	r.Collection(resource.Collection{Name: "tags", Parents: []string{"tagGroups", "tags"}}, &Tag{})
	r.Links(resource.Links{Name: "tags", To: "tags", Back: "taggedResources"})
}

// TagGroup holds tags of one kind, such as sites or owners.
type TagGroup struct {
	resource.Head `head:"required,nonblank" unique:"siblings"`
}

// Tag is a label for anything: below a group, or below another tag.
type Tag struct {
	resource.Head `head:"required,nonblank" unique:"siblings"`
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
	if store.IsNotFound(err) {
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
