package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Apply returns a function that creates or changes a resource in the transaction of a change, so that it has the given members. It finds an
// existing resource by the rules of imports (docs/import.md).
//
// The paths how.In and how.Base name the parent, by names or numbers, such as configurations/main, servers/ns1,
// views/inside/zones/example.net or servers/ns1/deploymentRoles. Names in how.In belong to the configuration of how.Base. If both are
// empty, the resource finds its parent in its configuration. A reference may be a text: the key of its target, or the path, such as
// locations/NO OSL.
func Apply(a *resource.API, show Show) func(c *resource.Change, how resource.Applying) (resource.Applied, error) {
	runner := &Runner{api: a, show: show}
	return func(c *resource.Change, how resource.Applying) (done resource.Applied, err error) {
		j := &job{Runner: runner, action: cmp.Or(how.Action, createOrUpdate), declared: true, isTaken: how.IsMatched,
			prepared: map[int64]any{0: c.Prepared}}
		if all := []string{createOrUpdate, createOnly, updateOnly}; !slices.Contains(all, j.action) {
			return done, problem.Field("InvalidEnumValue", "action", "%q: must be one of %s", how.Action, strings.Join(all, ", "))
		}
		p := &executor{job: j, Change: c}
		if err := p.placeDocument(how); err != nil || how.CheckOnly {
			done.Base = p.at.within.ID
			return done, err
		}
		members := c.Sent
		if raw, ok := members["id"]; ok && j.action != updateOnly {
			return done, problem.Invalid("id", "%s: resources are found by name or place; omit the number", raw)
		}
		o, err := p.applyRow(&row{members: members})
		done.Did = map[result]string{unchanged: "UNCHANGED", created: "CREATED", updated: "CHANGED"}[o.result]
		if err != nil {
			return done, err
		}
		done.Row, done.Changes, done.Notes, done.Once = o.row, o.fields, o.messages, o.once
		return done, nil
	}
}

// placeDocument finds the parent of the resource.
func (p *executor) placeDocument(how resource.Applying) (err error) {
	if p.at, err = p.placeNamed("into", how.Base, 0); err != nil || how.In == nil {
		return err
	}
	within, err := p.configuration()
	if err == nil {
		p.at, err = p.placeNamed("in", *how.In, within)
	}
	return err
}

// placeNamed parses the path of a parent, by names or numbers. Names belong to configuration; 0 means any.
func (p *executor) placeNamed(field, path string, configuration int64) (at target, err error) {
	if path == "" {
		return at, nil
	}
	name, rest, _ := strings.Cut(path, "/")
	c := p.API.Collection(name)
	if c == nil || rest == "" {
		return at, problem.Invalid(field, "%q is not a resource path such as configurations/main or servers/ns1", path)
	}
	key, sub := rest, ""
	if i := strings.LastIndexByte(rest, '/'); i > 0 { // a range contains a slash as well
		if of, _, _ := p.splitPath(c, rest); of.Sub(rest[i+1:]) != nil {
			key, sub = rest[:i], rest[i+1:]
		}
	}
	c, row, err := p.named(field, c, key, configuration)
	if err != nil {
		return at, err
	}
	t := resource.Target{Collection: c, ID: row.ID}
	if sub == "" {
		return target{within: t}, nil
	}
	if t.Sub = c.Sub(sub); t.Sub == nil || !t.Sub.Post || t.Sub.Relation != resource.Children {
		return at, problem.Invalid(field, "%q: resources cannot be created in %s", path, sub)
	}
	t.List = true
	return target{list: &t}, nil
}

// splitPath splits a path below a collection, such as inside/zones/example.net of views. The results are the collection of the resource
// (zones), the key of the resource that contains it (inside), and the key of the resource. The second is empty if the path is a key of c
// itself.
func (p *executor) splitPath(c *resource.Collection, path string) (of *resource.Collection, above, key string) {
	for _, sub := range c.Subs {
		above, key, found := strings.Cut(path, "/"+sub.Name+"/")
		of := p.API.Collection(sub.Name)
		if found && of != nil && key != "" && (of.PlacedBy != "" || sub.Relation == resource.Children && of.Types[0].Unique == "siblings") {
			return of, above, key
		}
	}
	return c, "", path
}

// named finds the resource of a key of a collection, or of a path below the collection. of is the collection of the resource.
func (p *executor) named(field string, c *resource.Collection, path string, configuration int64) (of *resource.Collection,
	row *store.Resource, err error) {
	of, above, key := p.splitPath(c, path)
	if above == "" {
		row, err = p.API.NamedOrNumbered(p.Tx, p.Caller, field, of, key, configuration)
		return of, row, err
	}
	holder, err := p.API.NamedOrNumbered(p.Tx, p.Caller, field, c, above, configuration)
	if err == nil {
		row, err = p.API.NamedBelow(p.Tx, p.Caller, field, of, key, holder)
	}
	return of, row, err
}

// configuration returns the id of the configuration of the target; 0 if the target does not determine one.
func (p *executor) configuration() (int64, error) {
	t := p.at.within
	if p.at.list != nil {
		t = *p.at.list
	}
	if t.ID == 0 {
		return 0, nil
	}
	if t.Collection.Scope {
		return t.ID, nil
	}
	row, err := p.Tx.Head(t.ID)
	return row.Configuration, err
}

// nameReferences replaces references that are texts with the form that the API accepts.
func (p *executor) nameReferences(t *schema.Type, members map[string]json.RawMessage) (err error) {
	for name, raw := range members {
		f := t.ByName[name]
		raw = bytes.TrimSpace(raw)
		if name == p.API.CollectionOf(t).PlacedBy && len(raw) > 0 && raw[0] == '"' {
			members[name] = json.RawMessage(`{"name":` + string(raw) + `}`)
			continue
		}
		if f == nil || len(raw) == 0 {
			continue
		}
		switch {
		case f.Kind == schema.Reference && raw[0] == '"':
			members[name], err = p.reference(f, raw, members)
		case f.Kind == schema.References && raw[0] == '[':
			var items []json.RawMessage
			if json.Unmarshal(raw, &items) != nil {
				continue // decoding reports the error later
			}
			for i, item := range items {
				if item = bytes.TrimSpace(item); err == nil && len(item) > 0 && item[0] == '"' {
					items[i], err = p.reference(f, item, members)
				}
			}
			if err == nil {
				members[name], err = json.Marshal(items)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reference converts a text in a reference field of a resource to the form that the API accepts.
func (p *executor) reference(f *schema.Field, raw json.RawMessage, members map[string]json.RawMessage) (json.RawMessage, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, problem.Invalid(f.Name, "must be a string")
	}
	by := func(name string, value any) (json.RawMessage, error) {
		return json.Marshal(map[string]any{name: value})
	}
	collection, key, path := strings.Cut(text, "/")
	c := p.API.Collection(collection)
	path = path && c != nil
	switch {
	case f.Column != "" || f.ReadOnly: // the parent, such as the configuration or the view
		return by("name", text)
	case !path && f.Identify != "":
		return by(f.Identify, p.API.FormatReference(f, text))
	case !path && f.Kind == schema.References:
		if _, err := netip.ParseAddr(text); err == nil {
			return by("address", text)
		}
	}
	if !path {
		found := map[string]bool{}
		for _, name := range f.Refs {
			if t := p.API.TypeNamed(name); t != nil {
				c = p.API.CollectionOf(t)
				found[c.Name] = true
			}
		}
		if key = text; len(found) != 1 {
			return nil, problem.Invalid(f.Name, "%q: add the collection, such as locations/%s", text, text)
		}
	}
	configuration, err := p.configuration()
	if err == nil && configuration == 0 && members["configuration"] != nil {
		var of *store.Resource
		if of, err = p.configurationOf(members); err == nil {
			configuration = of.ID
		}
	}
	if err != nil {
		return nil, err
	}
	var row *store.Resource
	if path { // such as vlanGroups/quay/vlans/office
		_, row, err = p.named(f.Name, c, key, configuration)
	} else {
		row, err = p.API.Named(p.Tx, p.Caller, f.Name, c, key, configuration)
	}
	if err != nil {
		return nil, err
	}
	return by("id", row.ID)
}
