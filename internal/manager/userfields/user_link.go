package userfields

import (
	"embed"
	"encoding/json"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var linkMigrations embed.FS

// linkRows is the database view that shows each link from both of its ends.
const linkRows store.Source = "user_link_resource"

// registerUserLinks declares the collections of user-defined links and of their definitions.
func registerUserLinks(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "userDefinedLinkDefinitions", Parents: []string{""}, Guard: resource.Common},
		&UserDefinedLinkDefinition{})
	r.Collection(resource.Collection{Name: "userLinks", Parents: []string{""}, Guard: resource.Between, Hidden: true, Joins: true},
		&UserDefinedLink{})
	r.Collection(resource.Collection{Name: "userDefinedLinks", From: linkRows, Hidden: true}, &UserDefinedLinkedResource{})
	r.Computed(resource.ComputedSub{Below: "userDefinedLinkDefinitions", Name: "linkedResources", Find: linkedBy})
	r.DeclareJoined(resource.JoinedSub{Name: "userDefinedLinks", Join: makeLink, Remove: removeLinks})
	r.Extension(&store.Extension{Name: "links", Migrations: linkMigrations})
}

// UserDefinedLinkDefinition defines a kind of link between resources.
type UserDefinedLinkDefinition struct {
	schema.Head `head:"post,nonblank"`
	// DisplayName is the name of the link for people.
	DisplayName string `api:"displayName,required,nonblank"`
	// Description is the meaning of the link.
	Description string `api:"description" length:"512"`
	// SourceTypes are the types that a link can start from.
	SourceTypes []string `api:"sourceTypes,required" enum:"DenyMACPool|Device|IPv4Address|IPv4Block|IPv4DHCPRange|IPv4Group|IPv4Network|IPv6Address|IPv6Block|IPv6DHCPRange|IPv6Network|MACAddress|MACPool|Server|ServerGroup|View|Zone"`
	// DestinationTypes are the types that a link can point to.
	DestinationTypes []string `api:"destinationTypes,required" enum:"DenyMACPool|Device|IPv4Address|IPv4Block|IPv4DHCPRange|IPv4Group|IPv4Network|IPv6Address|IPv6Block|IPv6DHCPRange|IPv6Network|MACAddress|MACPool|Server|ServerGroup|View|Zone"`
}

// linkedBy returns the resources at both ends of the links of a definition, each once, sorted by id.
func linkedBy(tx *store.Tx, _ *resource.API, definition *store.Resource) (ids []int64, err error) {
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("userLinks"),
		store.LinksTo{Targets: []int64{definition.ID}, Field: "linkDefinition"}}}, func(r *store.Resource) error {
		ids = append(ids, r.Ref("source"), r.Ref("destination"))
		return nil
	})
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// Validate rejects a name that is reserved or that another definition has in any letter case, and empty lists of types.
func (x *UserDefinedLinkDefinition) Validate(c *resource.Change) error {
	if strings.HasPrefix(strings.ToUpper(x.Name), "BCN_") || strings.ContainsAny(x.Name, " \t") {
		return problem.Field("InvalidStringFieldPrefix", "name", "%q must not contain a blank or start with BCN_", x.Name)
	}
	if old, ok := c.Old.(*UserDefinedLinkDefinition); ok && old.Name != x.Name {
		return problem.FieldForbidden("FieldUpdateNotAllowed", "name", "is %s and cannot be changed", old.Name)
	}
	if err := x.checkTypesUnchanged(c); err != nil {
		return err
	}
	for field, types := range map[string][]string{"sourceTypes": x.SourceTypes, "destinationTypes": x.DestinationTypes} {
		if len(types) == 0 {
			return problem.Field("EmptyFieldValue", field, "must have at least one entry")
		}
		if sorted := slices.Sorted(slices.Values(types)); len(slices.Compact(sorted)) < len(types) {
			return problem.Field("DuplicateFieldValue", field, "lists a type twice")
		}
	}
	return c.Tx.List(store.Query{From: store.Resources, Where: store.InCollection("userDefinedLinkDefinitions")},
		func(r *store.Resource) error {
			if r.ID != x.ID && strings.EqualFold(r.Name, x.Name) {
				return problem.Conflict("ResourceAlreadyExists", "name: %q already exists as definition %d", r.Name, r.ID)
			}
			return nil
		})
}

// checkTypesUnchanged rejects a change of the types if links of the definition exist.
func (x *UserDefinedLinkDefinition) checkTypesUnchanged(c *resource.Change) error {
	old, ok := c.Old.(*UserDefinedLinkDefinition)
	if !ok || slices.Equal(old.SourceTypes, x.SourceTypes) && slices.Equal(old.DestinationTypes, x.DestinationTypes) {
		return nil
	}
	there, err := c.Tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection("userLinks"),
		store.LinksTo{Targets: []int64{x.ID}, Field: "linkDefinition"}}})
	if err == nil && there {
		err = problem.InUse("sourceTypes and destinationTypes cannot be changed while definition %d has links", x.ID)
	}
	return err
}

// UserDefinedLink is a link between two resources. The API shows it as the resource at its other end.
type UserDefinedLink struct {
	schema.Head `head:"readOnly"`
	// LinkDescription is a free text about the link.
	LinkDescription string `api:"linkDescription" length:"4000"`
	// LinkDefinition is the definition of the link.
	LinkDefinition schema.Ref `api:"linkDefinition,required" ref:"UserDefinedLinkDefinition" onDelete:"refuse"`
	// Source is the resource where the link starts.
	Source schema.Ref `api:"source,required" onDelete:"cascade"`
	// Destination is the resource that the link points to.
	Destination schema.Ref `api:"destination,required" onDelete:"cascade"`
}

// UserDefinedLinkedResource is the resource at the other end of a link, with the description and definition of the link.
type UserDefinedLinkedResource struct {
	schema.Head `head:"readOnly"`
	// LinkDescription is a free text about the link.
	LinkDescription string `api:"linkDescription" length:"4000"`
	// LinkDefinition is the definition of the link, by its id or name.
	LinkDefinition schema.Ref `api:"linkDefinition,post" ref:"UserDefinedLinkDefinition" identify:"name"`
}

// makeLink creates a link from the resource that the request names to the parent of the request. It returns the id of the former.
func makeLink(c *resource.Change, destination *store.Resource) (int64, error) {
	var id int64
	if raw, ok := c.Sent["id"]; !ok || json.Unmarshal(raw, &id) != nil || id < 1 {
		return 0, problem.Missing("id")
	}
	asked := &UserDefinedLinkedResource{}
	t := c.API.TypeNamed("UserDefinedLinkedResource")
	_, problems := t.Decode(asked, c.Sent, true)
	if problems = append(t.Missing(c.Sent, false), problems...); len(problems) > 0 {
		return 0, problem.Join(problems)
	}
	definition, err := linkDefinition(c, asked.LinkDefinition)
	if err != nil {
		return 0, err
	}
	source, err := c.API.Visible(c.Tx, id, c.Caller)
	if problem.IsNotFound(err) {
		return 0, resource.NotFoundInlined("id", "resource %d does not exist", id)
	}
	switch {
	case err != nil:
		return 0, err
	case !slices.Contains(definition.SourceTypes, source.Type):
		return 0, problem.Field("WrongResourceType", "id", "%s starts at %s, but resource %d is of type %s", definition.Name,
			strings.Join(definition.SourceTypes, ", "), id, source.Type)
	case !slices.Contains(definition.DestinationTypes, destination.Type):
		return 0, problem.Field("WrongResourceType", "linkDefinition", "%s points to %s, but resource %d is of type %s", definition.Name,
			strings.Join(definition.DestinationTypes, ", "), destination.ID, destination.Type)
	case id == destination.ID:
		return 0, problem.Field("ConflictingResourceFieldValues", "id", "a resource cannot have a link to itself")
	}
	links, err := linksBetween(c.Tx, id, destination.ID)
	if err != nil {
		return 0, err
	}
	for _, l := range links {
		if l.Ref("linkDefinition") == definition.ID && l.Ref("source") == id {
			return 0, problem.Conflict("ResourceAlreadyExists", "id: resource %d already has a link %s to %d", id, definition.Name, destination.ID)
		}
	}
	x := &UserDefinedLink{LinkDescription: asked.LinkDescription, LinkDefinition: schema.Ref{ID: definition.ID}, Source: schema.Ref{ID: id},
		Destination: schema.Ref{ID: destination.ID}}
	x.Type = "UserDefinedLink"
	_, err = c.Following().Create(c.API.TypeNamed(x.Type), x)
	return id, err
}

// linkDefinition returns a definition by its id or name.
func linkDefinition(c *resource.Change, ref schema.Ref) (*UserDefinedLinkDefinition, error) {
	if ref.ID == 0 {
		found, err := c.Tx.ByName("userDefinedLinkDefinitions", 0, ref.By)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, resource.NotFoundInlined("linkDefinition", "definition %q does not exist", ref.By)
		}
		ref.ID = found[0].ID
	}
	row, err := c.Tx.Get(ref.ID)
	if store.IsNotFound(err) || err == nil && row.Type != "UserDefinedLinkDefinition" {
		return nil, resource.NotFoundInlined("linkDefinition", "definition %d does not exist", ref.ID)
	}
	if err != nil {
		return nil, err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return nil, err
	}
	x, _ := o.(*UserDefinedLinkDefinition)
	return x, nil
}

// linksBetween returns the links between two resources, in both directions.
func linksBetween(tx *store.Tx, one, other int64) (links []*store.Resource, err error) {
	for _, ends := range [][2]int64{{one, other}, {other, one}} {
		if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("userLinks"),
			store.LinksTo{Targets: ends[:1], Field: "source"}, store.LinksTo{Targets: ends[1:], Field: "destination"}}},
			func(r *store.Resource) error {
				links = append(links, r.Clone())
				return nil
			}); err != nil {
			return nil, err
		}
	}
	return links, nil
}

// removeLinks deletes all links between two resources.
func removeLinks(c *resource.Change, here *store.Resource, there int64) error {
	links, err := linksBetween(c.Tx, here.ID, there)
	if err != nil {
		return err
	}
	if len(links) == 0 {
		return problem.NotFound("resources %d and %d are not linked", here.ID, there)
	}
	for _, l := range links {
		if err := c.Following().Delete(l); err != nil {
			return err
		}
	}
	return nil
}
