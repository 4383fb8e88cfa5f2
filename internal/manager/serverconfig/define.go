package serverconfig

import (
	"fmt"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
)

// familyFits reports whether options of a type may be set on a resource of the type above, by the address family of the resource.
func familyFits(option, above string) bool {
	switch {
	case strings.HasPrefix(option, "DHCPv4"), option == "DHCPVendorOption":
		return !strings.HasPrefix(above, "IPv6") && above != "ZoneTemplate"
	case strings.HasPrefix(option, "DHCPv6"):
		return !strings.HasPrefix(above, "IPv4")
	}
	return true
}

// checkFamily rejects an option on a resource that does not have its protocol.
func checkFamily(c *resource.Change, h *schema.Head) error {
	above, err := c.Tx.Head(h.Parent)
	if err != nil {
		return err
	}
	if !familyFits(h.Type, above.Type) {
		return problem.Field("UnsupportedDeploymentOptionScope", "type", "a %s is not supported with an %s", h.Type, above.Type)
	}
	return nil
}

// resolveDefinition finds the definition of the option, and checks its value against the format of the definition.
func (x *OptionFields) resolveDefinition(c *resource.Change, h *schema.Head, ref *schema.Ref) error {
	if err := checkFamily(c, h); err != nil {
		return err
	}
	row, err := x.definitionOf(c, h, *ref)
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	d := definition(o)
	h.Name, x.Code, *ref = row.Name, d.Code, schema.Ref{ID: row.ID}
	if len(x.Value) == 0 {
		return problem.Missing("value")
	}
	format, err := ParseFormat(d.ValueFormat)
	if err != nil {
		return fmt.Errorf("read option definition %d: %w", row.ID, err)
	}
	var named []int64
	value, err := format.Check(x.Value, func(kind string, values []string) error {
		ids, err := checkNames(c, h.Config, kind, values)
		named = append(named, ids...)
		return err
	})
	x.Mentions = schema.Refer(named)
	if _, worded := problem.As(err); err != nil && !worded {
		err = problem.Field("InvalidResourceFieldValue", "value", "of %s: %v", problem.Describe(row.ID, row.Name), err)
	}
	x.Value = value
	return err
}

// definitionOf returns the definition that a request names: by its name, else by its code, else by its id. For an existing option, the
// first of these that differs from the stored value is used.
func (x *OptionFields) definitionOf(c *resource.Change, h *schema.Head, ref schema.Ref) (*store.Resource, error) {
	name, code := h.Name, x.Code
	if h.Type == "DHCPVendorOption" { // its code follows from the definition
		code = nil
	}
	if c.Old != nil {
		old := schema.HeadOf(c.Old)
		before := optionFields(c.Old)
		switch {
		case h.Name != old.Name && h.Name != "":
			ref, code = schema.Ref{}, nil
		case code != nil && (before.Code == nil || *code != *before.Code):
			name, ref = "", schema.Ref{}
		case ref.ID != 0:
			name, code = "", nil
		default: // a PUT without any of them
			name, code, ref = "", nil, schema.Ref{ID: c.Row.Ref("definition")}
		}
	}
	allowed := c.Type.ByName["definition"].Refs
	switch {
	case name != "":
		row, err := x.findByName(c, h, allowed, name)
		if err == nil && ref.ID != 0 && ref.ID != row.ID {
			err = problem.Field("ConflictingResourceFieldValues", "definition", "%d does not match %s: must be %d", ref.ID, name, row.ID)
		}
		return row, err
	case code != nil:
		return x.findByCode(c, h, allowed, *code)
	case ref.ID != 0:
		row, err := c.Tx.Get(ref.ID)
		if store.IsNotFound(err) || err == nil && !slices.Contains(allowed, row.Type) {
			return nil, resource.NotFoundInlined("definition", "%s %d does not exist", strings.Join(allowed, " or "), ref.ID)
		}
		return row, err
	case h.Type == "StartOfAuthority":
		return x.findByName(c, h, allowed, "start-of-authority")
	}
	return nil, problem.Missing("name")
}

// findByName returns a definition by its name or one of its other names.
func (x *OptionFields) findByName(c *resource.Change, h *schema.Head, allowed []string, name string) (*store.Resource, error) {
	found, err := c.Tx.ByName("deploymentOptionDefinitions", 0, name)
	if err != nil {
		return nil, err
	}
	for _, row := range found {
		if slices.Contains(allowed, row.Type) && (row.Configuration == 0 || row.Configuration == h.Config) {
			return row, nil
		}
	}
	row, err := x.search(c, h, allowed, func(d Definition) bool { return slices.Contains(d.OtherNames, name) })
	if err == nil && row == nil {
		err = problem.Field("InvalidResourceFieldValue", "name", "option %q of the kind %s does not exist: see deploymentOptionDefinitions",
			name, h.Type)
	}
	return row, err
}

// findByCode returns a definition by its code.
func (x *OptionFields) findByCode(c *resource.Change, h *schema.Head, allowed []string, code int64) (*store.Resource, error) {
	row, err := x.search(c, h, allowed, func(d Definition) bool { return d.Code != nil && *d.Code == code })
	if err == nil && row == nil {
		err = problem.Field("InvalidResourceFieldValue", "code", "option %d of the kind %s does not exist: see deploymentOptionDefinitions",
			code, h.Type)
	}
	return row, err
}

// search returns the first definition that satisfies holds, or nil.
func (x *OptionFields) search(c *resource.Change, h *schema.Head, allowed []string, holds func(Definition) bool) (*store.Resource, error) {
	var first int64
	for _, kind := range allowed {
		if err := eachDefinition(c, 0, kind, func(row *store.Resource, d Definition) error {
			if first == 0 && (row.Configuration == 0 || row.Configuration == h.Config) && holds(d) {
				first = row.ID
			}
			return nil
		}); err != nil {
			return nil, err
		}
		if first != 0 {
			return c.Tx.Get(first)
		}
	}
	return nil, nil
}

func (x *OptionFields) fields() *OptionFields { return x }

// optionFields returns the fields of an option that has a definition; nil for any other object.
func optionFields(o schema.Object) *OptionFields {
	if x, ok := o.(interface{ fields() *OptionFields }); ok {
		return x.fields()
	}
	return nil
}

// checkUnique rejects a second option with the same definition, resource and server scope.
func (x *OptionFields) checkUnique(c *resource.Change, h *schema.Head, ref schema.Ref) error {
	if err := x.checkNamesExist(c, h, ref); err != nil {
		return err
	}
	return c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentOptions"), store.HasParent(h.Parent),
		store.LinksTo{Targets: []int64{ref.ID}, Field: "definition"}}}, func(r *store.Resource) error {
		if r.ID == h.ID || r.Ref("serverScope") != x.ServerScope.ID {
			return nil
		}
		return problem.Conflict("ResourceAlreadyExists", "name: %s is already set there by option %d", h.Name, r.ID)
	})
}

// namedCollections are the collections of the resources that values refer to by name, by the kind of the token.
var namedCollections = map[string]string{"mac_pool": "macPools", "class": "clientClasses", "identity": "signingKeys"}

// checkNamesExist rejects a value that names resources missing from the configuration, for instance when an undo restores the option.
func (x *OptionFields) checkNamesExist(c *resource.Change, h *schema.Head, ref schema.Ref) error {
	format, err := formatOf(c, ref.ID)
	if err != nil || !format.hasNames() {
		return err
	}
	_, err = format.Check(x.Value, func(kind string, values []string) error {
		_, err := checkNames(c, h.Config, kind, values)
		return err
	})
	return err
}

// formatOf returns the value format of a definition.
func formatOf(c *resource.Change, id int64) (Format, error) {
	row, err := c.Tx.Get(id)
	if err != nil {
		return Format{}, err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return Format{}, err
	}
	return ParseFormat(definition(o).ValueFormat)
}

// checkNames returns the ids of the resources that the names in a value refer to, and rejects unknown names. An identity of an update
// policy may be the name of a key or any other identity, so an unknown one is accepted.
func checkNames(c *resource.Change, configuration int64, kind string, values []string) (ids []int64, err error) {
	if kind == "match_element" {
		return dns.CheckMatches(c, configuration, "value", values)
	}
	for _, name := range values {
		found, err := c.Tx.ByName(namedCollections[kind], configuration, name)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && kind != "identity" {
			return nil, resource.NotFoundInlined("value", "%s does not exist in %s of the configuration", name, namedCollections[kind])
		}
		for _, row := range found {
			ids = append(ids, row.ID)
		}
	}
	return ids, nil
}

// renameInOptions updates the option values that refer to a resource by name after the resource was renamed.
func renameInOptions(c *resource.Change) error {
	if c.Old == nil {
		return nil
	}
	old, h := schema.HeadOf(c.Old), schema.HeadOf(c.New)
	if old.Name == h.Name {
		return nil
	}
	return c.Each(store.All{store.InCollection("deploymentOptions"), store.LinksTo{Targets: []int64{h.ID}, Field: "mentions"}},
		func(row *store.Resource, _ schema.Object) error {
			format, err := formatOf(c, row.Ref("definition"))
			if err != nil {
				return err
			}
			_, err = c.Following("value").Change(row, func(o schema.Object) {
				x := optionFields(o)
				x.Value = format.rename(x.Value, func(kind, text string) string { return withNewName(kind, c.Type, text, old.Name, h.Name) })
			})
			return err
		})
}

// withNewName returns text, which is a name or contains one, with the new name of a resource of type t.
func withNewName(kind string, t *schema.Type, text, from, to string) string {
	if kind == "match_element" {
		named := func(m dns.Match) string { return m.List }
		if t.Name == "TSIGKey" {
			named = func(m dns.Match) string { return m.Key }
		}
		changed, _ := dns.RenameInMatches([]string{text}, named, from, to)
		return changed[0]
	}
	if namedCollections[kind] == t.Collection && text == from {
		return to
	}
	return text
}

// checkNoScopedOptions returns an error if an option has the server as its scope.
func checkNoScopedOptions(c *resource.Change, server int64) error {
	found, err := c.Tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentOptions"),
		store.LinksTo{Targets: []int64{server}, Field: "serverScope"}}})
	if err == nil && found != nil {
		err = problem.BadRequest("MoveRolesWithOptionsOnServer", "option %s (%d) is set for server %d: delete it first", found.Name,
			found.ID, server)
	}
	return err
}
