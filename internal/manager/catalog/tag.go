package catalog

import (
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerTags declares the collections of tags, and the links from any resource to its tags.
func registerTags(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "tagGroups", Parents: []string{"tagGroups"}}, &TagGroup{})
	r.Collection(resource.Collection{Name: "tags", Parents: []string{"tagGroups", "tags"}}, &Tag{})
	r.Links(resource.Links{Name: "tags", To: "tags", Back: "taggedResources"})
}

// TagGroup is a group of tags of one kind, such as sites or owners.
type TagGroup struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
}

// Tag is a label for any resource. It is in a tag group or below another tag.
type Tag struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
}
