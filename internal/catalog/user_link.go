package catalog

import (
	"slices"
	"strings"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// registerUserLinks declares the collection of definitions of links of one's own.
func registerUserLinks(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "userDefinedLinkDefinitions", Parents: []string{""}}, &UserDefinedLinkDefinition{})
}

// UserDefinedLinkDefinition defines a link of one's own between resources.
type UserDefinedLinkDefinition struct {
	schema.Head `head:"post,nonblank"`
	// DisplayName is what people call it.
	DisplayName string `api:"displayName,required,nonblank"`
	// Description says what it means.
	Description string `api:"description" length:"512"`
	// SourceTypes are the types that it leads from.
	SourceTypes []string `api:"sourceTypes,required" enum:"DenyMACPool|Device|IPv4Address|IPv4Block|IPv4DHCPRange|IPv4Group|IPv4Network|IPv6Address|IPv6Block|IPv6DHCPRange|IPv6Network|MACAddress|MACPool|Server|ServerGroup|View|Zone"`
	// DestinationTypes are the types that it leads to.
	DestinationTypes []string `api:"destinationTypes,required" enum:"DenyMACPool|Device|IPv4Address|IPv4Block|IPv4DHCPRange|IPv4Group|IPv4Network|IPv6Address|IPv6Block|IPv6DHCPRange|IPv6Network|MACAddress|MACPool|Server|ServerGroup|View|Zone"`
}

// Validate refuses a name that another definition has in any letter case, or that is reserved, and lists without types.
func (x *UserDefinedLinkDefinition) Validate(c *resource.Change) error {
	if strings.HasPrefix(strings.ToUpper(x.Name), "BCN_") || strings.ContainsAny(x.Name, " \t") {
		return problem.Field("InvalidStringFieldPrefix", "name", "%q has a blank, or begins with BCN_", x.Name)
	}
	if old, ok := c.Old.(*UserDefinedLinkDefinition); ok && old.Name != x.Name {
		return problem.FieldForbidden("FieldUpdateNotAllowed", "name", "is %s, and stays", old.Name)
	}
	for field, types := range map[string][]string{"sourceTypes": x.SourceTypes, "destinationTypes": x.DestinationTypes} {
		if len(types) == 0 {
			return problem.Field("EmptyFieldValue", field, "must have one entry or more")
		}
		if sorted := slices.Sorted(slices.Values(types)); len(slices.Compact(sorted)) < len(types) {
			return problem.Field("DuplicateFieldValue", field, "lists a type twice")
		}
	}
	return c.Tx.List(store.Query{From: store.Resources, Where: store.InCollection("userDefinedLinkDefinitions")},
		func(r *store.Resource) error {
			if r.ID != x.ID && strings.EqualFold(r.Name, x.Name) {
				return problem.Conflict("ResourceAlreadyExists", "name: %q is that of definition %d already", r.Name, r.ID)
			}
			return nil
		})
}
