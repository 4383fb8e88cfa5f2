package dns

import (
	"slices"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerZones declares the collection of zones and the type Zone. Other zone types are declared separately.
func registerZones(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "zones", CacheHeads: true, Parents: []string{"views", "zones"}, Place: placeName,
		PlacedBy: "view", Default: "Zone",
		Workflow: func(string) string { return "ZONE" },
		Counts:   resource.Counts{Name: recordCountsName, Summary: "How many records lie right in a zone", Of: countZoneRecords},
		Options: []resource.RequestHeader{multiLabelNames.Header(resource.Writing, "Zone"),
			overrideNamingPolicy.Header(resource.Writing, "Zone")}},
		&Zone{})
}

// multiLabelNames is the request option that creates a single zone with a multi-label name instead of intermediate zones.
var multiLabelNames = resource.Flag("x-bcn-allow-multi-label-zonenames", "Make one dotted zone instead of the zones in between.")

// Zone is a DNS zone in a view or below another zone.
type Zone struct {
	schema.Head `head:"required,nonblank" unless:"absoluteName" unique:"wholeName"`
	// Configuration is the configuration that contains the zone.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view that contains the zone, directly or indirectly.
	View schema.Ref `api:"view,readOnly" ref:"View"`
	// DeploymentEnabled includes the zone in deployments.
	DeploymentEnabled bool `api:"deploymentEnabled,put"`
	// DynamicUpdateEnabled allows dynamic updates (RFC 2136).
	DynamicUpdateEnabled bool `api:"dynamicUpdateEnabled,put"`
	// Template is the template that is assigned to the zone.
	Template schema.Ref `api:"template" ref:"ZoneTemplate" back:"appliedResources|zones"`
	// Signed enables signing of the zone (RFC 4033).
	Signed bool `api:"signed,put"`
	// SigningPolicy is the signing policy of the zone.
	SigningPolicy schema.Ref `api:"signingPolicy" ref:"DNSSECSigningPolicy" back:"appliedResources" onDelete:"refuse"`
	// AbsoluteName is the absolute name of the zone. A new zone can be created with it instead of the name: missing intermediate zones are
	// created.
	AbsoluteName string `api:"absoluteName,createOnly,dns,inline,search" length:"1020"`
	RestrictedRanges
}

// BeforeWrite places the zone and derives its absolute name.
func (x *Zone) BeforeWrite(c *resource.Change) error {
	x.extractRanges()
	if c.IsCreation() && c.SetFields["absoluteName"] && x.Name == "" {
		if err := x.placeByAbsoluteName(c); err != nil {
			return err
		}
	}
	if err := x.deriveSigned(c); err != nil {
		return err
	}
	name, err := assignNumbers(c, x.Parent, naming.Clean(x.Name))
	if err != nil {
		return err
	}
	x.Name = name
	if err := naming.Check(x.Name, naming.AnyName); err != nil {
		return problem.Field("InvalidZoneName", "name", "%v", err)
	}
	if len(naming.Labels(x.Name)) > 1 && !multiLabelNames.Value(c.Options) && c.IsCreation() && c.IsRequested() { // as published clients do
		_, above, err := resolveParent(c.Tx, x.Parent)
		if err != nil {
			return err
		}
		x.AbsoluteName, x.Name = naming.Join(x.Name, above), ""
		if err := x.placeByAbsoluteName(c); err != nil {
			return err
		}
	}
	if len(naming.Labels(x.Name)) > 1 && !multiLabelNames.Value(c.Options) && !c.IsCreation() && c.Row.Name != x.Name {
		return problem.Field("InvalidZoneName", "name",
			"%q has more than one label: use absoluteName, or send x-bcn-allow-multi-label-zonenames: true", x.Name)
	}
	if err := checkNamingPolicies(c, x.Parent, x.Name); err != nil {
		return err
	}
	parent, err := c.Tx.Head(x.Parent)
	if err != nil {
		return err
	}
	if parent.Type != "View" && parent.Type != "Zone" && parent.Type != "ENUMZone" {
		return problem.Invalid("type", "a Zone must be in a view or a Zone, not in %s %d", parent.Type, x.Parent)
	}
	view, zone, err := resolveParent(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	x.View = schema.Ref{ID: view}
	x.AbsoluteName = naming.Join(x.Name, zone)
	if err := naming.Check(x.AbsoluteName, naming.AnyName); err != nil {
		return problem.Field("InvalidZoneName", "name", "%v", err)
	}
	return nil
}

// Validate rejects a name that another zone of the view has.
func (x *Zone) Validate(c *resource.Change) error {
	same, err := FindByName(c.Tx, x.Config, x.View.ID, "zones", x.AbsoluteName)
	if err != nil {
		return err
	}
	for _, r := range same {
		if r.ID != x.ID {
			return problem.Conflict("ResourceAlreadyExists", "name: %q already exists as zone %d", x.AbsoluteName, r.ID)
		}
	}
	return nil
}

// placeByAbsoluteName derives the name and the parent from the absolute name, and creates intermediate zones.
func (x *Zone) placeByAbsoluteName(c *resource.Change) error {
	absolute := naming.Clean(x.AbsoluteName)
	if err := naming.Check(absolute, naming.AnyName); err != nil {
		return problem.Field("InvalidZoneName", "absoluteName", "%v", err)
	}
	view, zone, err := resolveParent(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	relative, ok := naming.Relative(absolute, zone)
	if !ok || relative == "" {
		return problem.Invalid("absoluteName", "%q is not below %q", absolute, zone)
	}
	if multiLabelNames.Value(c.Options) {
		x.Name = relative
		return nil
	}
	labels := naming.Labels(relative)
	for i := len(labels) - 1; i > 0; i-- {
		zone = naming.Join(labels[i], zone)
		same, err := FindByName(c.Tx, x.Config, view, "zones", zone)
		if err != nil {
			return err
		}
		if len(same) > 0 {
			x.Parent = same[0].ID
			continue
		}
		between := &Zone{}
		between.Type, between.Name, between.Parent, between.Config = "Zone", labels[i], x.Parent, x.Config
		row, err := c.FollowingWithOptions("name").Create(c.Type, between)
		if err != nil {
			return err
		}
		x.Parent = row.ID
	}
	x.Name = labels[0]
	return nil
}

// resolveParent returns the view that contains the children of parent, and the absolute name of parent. The name is empty for a view or
// template.
func resolveParent(tx *store.Tx, parent int64) (view int64, zone string, err error) {
	r, err := tx.Get(parent)
	if err != nil {
		return 0, "", err
	}
	if r.Collection == "views" || r.Collection == "templates" { // the records of a template have relative names
		return r.ID, "", nil
	}
	if r.Type == "InternalRootZone" {
		return ViewOf(r), "", nil
	}
	return ViewOf(r), absoluteName(r), nil
}

// ViewOf returns the view of a zone. A template is its own view.
func ViewOf(r *store.Resource) int64 {
	if r.Collection == "templates" {
		return r.ID
	}
	for _, ref := range r.Refs {
		if ref.Field == "view" {
			return ref.Target
		}
	}
	return 0
}

// FindByName returns the resources of a collection with an absolute name in a view.
func FindByName(tx *store.Tx, configuration, view int64, collection, absolute string) (same []*store.Resource, err error) {
	found, err := tx.ResourcesByKey(configuration, naming.Key(absolute))
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r.Collection != collection {
			continue
		}
		in := ViewOf(r)
		if r.Collection == "resourceRecords" {
			zone, err := tx.Get(r.Parent)
			if err != nil {
				return nil, err
			}
			in = ViewOf(zone)
		}
		if in == view {
			same = append(same, r)
		}
	}
	return same, nil
}

// AfterWrite links the restricted ranges of the zone, and renames everything below it if it was renamed.
func (x *Zone) AfterWrite(c *resource.Change) error {
	if err := x.saveRanges(c, x.ID); err != nil {
		return err
	}
	if old, ok := c.Old.(*Zone); !ok || old.AbsoluteName == x.AbsoluteName {
		return nil
	}
	return renameBelow(c, x.ID)
}

// renameBelow updates the absolute names below a renamed zone.
func renameBelow(c *resource.Change, zone int64) error {
	children, err := c.Tx.Children(zone)
	if err != nil {
		return err
	}
	row, err := c.Tx.Get(zone)
	if err != nil {
		return err
	}
	name := absoluteName(row)
	if row.Type == "InternalRootZone" {
		name = ""
	}
	policies, err := hasPolicies(c.Tx)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(children, renameBatch) {
		rows, err := c.Tx.Load(part)
		if err != nil {
			return err
		}
		var old, young []*store.Resource
		for _, id := range part {
			child := rows[id]
			if child == nil {
				continue // it was deleted together with another resource
			}
			if child.Collection != "resourceRecords" || policies {
				if _, err := c.FollowingWithOptions().Change(child, func(schema.Object) {}); err != nil {
					return err
				}
				continue
			}
			renamed, err := renameRecord(child, name)
			if err != nil {
				return err
			}
			old, young = append(old, child), append(young, renamed)
		}
		if err := c.Tx.RewriteMany(old, young); err != nil {
			return err
		}
	}
	return nil
}

// renameBatch is the number of records that are renamed at a time.
const renameBatch = 500

// renameRecord returns a record with the absolute name in its renamed zone. No other field depends on the zone name (see
// RecordHead.checkName).
func renameRecord(r *store.Resource, zone string) (*store.Resource, error) {
	absolute := naming.Join(r.Name, zone)
	if err := naming.Check(absolute, naming.AnyName); err != nil && absolute != "" {
		return nil, problem.Invalid("name", "the name together with its zone: %v", err)
	}
	next := *r
	next.Key = naming.Key(absolute)
	var err error
	next.Body, err = store.Rewritten(r.Body, map[string][]byte{"absoluteName": schema.AppendString(nil, absolute)})
	return &next, err
}

// Key returns the absolute name in the form used for comparison.
func (x *Zone) Key() string { return naming.Key(x.AbsoluteName) }

// String returns the absolute name.
func (x *Zone) String() string { return x.AbsoluteName }

// resolveZoneName returns the view and the absolute name of a zone.
func resolveZoneName(c *resource.Change, parent int64, name string) (view int64, absolute string, err error) {
	if err := naming.Check(name, naming.AnyName); err != nil {
		return 0, "", problem.Invalid("name", "%v", err)
	}
	view, zone, err := resolveParent(c.Tx, parent)
	if err != nil {
		return 0, "", err
	}
	absolute = naming.Join(name, zone)
	if err := naming.Check(absolute, naming.AnyName); err != nil {
		return 0, "", problem.Invalid("name", "%v", err)
	}
	return view, absolute, nil
}

// checkZoneNameUnique rejects the name of another zone of the view.
func checkZoneNameUnique(c *resource.Change, h *schema.Head, view int64, absolute string) error {
	same, err := FindByName(c.Tx, h.Config, view, "zones", absolute)
	for _, r := range same {
		if r.ID != h.ID {
			return problem.Conflict("ResourceAlreadyExists", "name: %q already exists as zone %d", absolute, r.ID)
		}
	}
	return err
}

// deriveSigned enables signing when a signing policy is set, and rejects a signed zone without a policy.
func (x *Zone) deriveSigned(c *resource.Change) error {
	if c.SetFields["signingPolicy"] && !c.SetFields["signed"] {
		x.Signed = x.SigningPolicy.ID != 0
	}
	if x.Signed && x.SigningPolicy.ID == 0 {
		return problem.Field("MissingRequiredField", "signingPolicy", "choose a signing policy to sign the zone")
	}
	return nil
}
