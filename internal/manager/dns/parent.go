package dns

import (
	"encoding/json"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// placeName finds the direct parent of a new resource by its absolute name: the nearest existing zone above it. The members may name the
// view; otherwise only one view may have such a zone. A new zone without a zone above it is placed in the view. Within a zone the parent is
// that zone (see resource.Collection.Place).
func placeName(c *resource.Change, t *schema.Type, within *store.Resource, members map[string]json.RawMessage) (*store.Resource, error) {
	if within.Collection != "views" && within.Collection != "configurations" {
		return within, nil
	}
	// ENUM zones are exempt: their absolute name is derived from their parent.
	if f := t.ByName["absoluteName"]; within.Collection == "views" && f != nil && f.ReadOnly && members["absoluteName"] == nil {
		return within, nil
	}
	name, err := readAbsoluteName(members)
	if err != nil {
		return nil, err
	}
	views, err := candidateViews(c.Tx, within, members)
	if err != nil {
		return nil, err
	}
	if t.Name == "ExternalHostRecord" && len(views) == 1 {
		hosts, err := findExternalHostsZone(c.Tx, views[0].ID)
		if hosts != nil || err != nil {
			return hosts, err
		}
	}
	zone := t.Collection == "zones"
	var found []*store.Resource
	for key := name; key != "" && found == nil; key = parentName(key) {
		if zone && key == name {
			continue
		}
		for _, view := range views {
			for _, kind := range nameZoneTypes {
				one, err := findInView(c.Tx, view.Configuration, naming.Key(key), kind, view.ID)
				if err != nil {
					return nil, err
				}
				if one != nil {
					found = append(found, one)
				}
			}
		}
	}
	if found == nil && zone {
		found = views
	}
	switch len(found) {
	case 1:
		delete(members, "name") // the name is relative to the zone of the source
		return found[0], nil
	case 0:
		return nil, problem.Conflict("ZoneNotFound", "absoluteName: no zone contains %s in %s", name, problem.Describe(within.ID, within.Name))
	}
	return nil, problem.Field("MissingRequiredField", "view", "%s matches zones of several views: choose one with the column view.name", name)
}

// nameZoneTypes are the types of zones that can contain the name of a new resource.
var nameZoneTypes = []string{"Zone", "ENUMZone", "ENUMNumberZone"}

// readAbsoluteName returns the normalized absolute name of the members.
func readAbsoluteName(members map[string]json.RawMessage) (string, error) {
	var name string
	if json.Unmarshal(members["absoluteName"], &name) != nil || strings.TrimSpace(name) == "" {
		return "", problem.Missing("absoluteName")
	}
	name = naming.Clean(name)
	if err := naming.Check(name, naming.AnyName); err != nil {
		return "", problem.Invalid("absoluteName", "%v", err)
	}
	return name, nil
}

// candidateViews returns the views that may contain the resource: the view it is created within, the view that the members name, or all
// views of the configuration.
func candidateViews(tx *store.Tx, within *store.Resource, members map[string]json.RawMessage) (views []*store.Resource, err error) {
	var wanted struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	if raw, ok := members["view"]; ok && json.Unmarshal(raw, &wanted) != nil {
		return nil, problem.Invalid("view", "must be an object with an id or a name")
	}
	delete(members, "view") // records do not have this field
	if within.Collection == "views" {
		return []*store.Resource{within}, nil
	}
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("views"), store.HasParent(within.ID)}},
		func(r *store.Resource) error {
			if wanted.Name == "" && (wanted.ID == 0 || wanted.ID == r.ID) || wanted.Name != "" && wanted.Name == r.Name {
				views = append(views, r.Clone())
			}
			return nil
		})
	if err == nil && len(views) == 0 {
		err = resource.NotFoundInlined("view", "the view does not exist in %s", problem.Describe(within.ID, within.Name))
	}
	return views, err
}
