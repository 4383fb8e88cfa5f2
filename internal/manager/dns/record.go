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

// registerRecords declares the collection of resource records. Each record type is declared separately.
func registerRecords(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "resourceRecords", Parents: []string{"templates", "zones"}, Place: placeName, PlacedBy: "view",
		Workflow: workflowType})
}

// workflowType returns the workflow name of a record type, for changes that require approval.
func workflowType(typeName string) string {
	switch typeName {
	case "HostRecord":
		return "HOST_RECORD"
	case "AliasRecord":
		return "ALIAS_RECORD"
	}
	return "RESOURCE_RECORD"
}

// declareRecord declares a record type with the common request options and its own options.
func declareRecord(r *resource.Registry, name string, sample schema.Object, options ...resource.RequestHeader) {
	r.Collection(resource.Collection{Name: "resourceRecords", Options: append(options, sameAsZone.Header(resource.Creating, name),
		overrideNamingPolicy.Header(resource.Writing, name))}, sample)
}

// Request options of records.
var (
	autoCreateNetwork  = resource.Flag("x-bcn-auto-create-network", "Make the network that an address of the host lacks.")
	sameAsZone         = resource.Flag("x-bcn-same-as-zone", "Give the record the zone's own name.")
	linkToExternalHost = resource.Flag("x-bcn-link-to-external-host", "Link to an external host where no record has the name.")
)

// RecordHead has the common fields of all resource records.
type RecordHead struct {
	schema.Head `head:"required,nullable,blank" unless:"absoluteName"`
	// Configuration is the configuration that contains the record.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// TTL is the time to live in seconds (RFC 2181 section 8); null uses the default of the zone.
	TTL *int64 `api:"ttl" min:"0" max:"2147483647"`
	// AbsoluteName is the absolute name, derived from the name and the zone.
	AbsoluteName string `api:"absoluteName,createOnly,dns,inline,search" length:"1020"`
	// Comment is a free text.
	Comment string `api:"comment" length:"4000"`
	// Dynamic is true if a dynamic update created the record.
	Dynamic bool `api:"dynamic,readOnly"`
}

// Key returns the absolute name in the form used for comparison.
func (x *RecordHead) Key() string { return naming.Key(x.AbsoluteName) }

// String returns the absolute name.
func (x *RecordHead) String() string { return x.AbsoluteName }

// checkName checks the name and derives the absolute name. The name null is the apex of the zone. With x-bcn-same-as-zone, a new
// record is always at the apex.
func (x *RecordHead) checkName(c *resource.Change, rule naming.Rule) error {
	holder, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	switch holder.Type {
	case "ExternalHostsZone":
		return problem.Invalid("type", "%s %d can only contain ExternalHostRecords", holder.Type, holder.ID)
	case "ResponsePolicyZone":
		return problem.Invalid("type", "%s %d cannot contain records: its responsePolicy defines its content", holder.Type, holder.ID)
	}
	_, zone, err := resolveParent(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	if x.Name != "" && strings.TrimSpace(x.Name) == "" {
		return problem.Invalid("name", "must not be blank: send null, \"\" or @ for the name of the zone itself")
	}
	if c.IsCreation() && sameAsZone.Value(c.Options) {
		x.Name = ""
	} else if c.IsCreation() && x.Name == "" && c.SetFields["absoluteName"] {
		relative, ok := naming.Relative(naming.Clean(x.AbsoluteName), zone)
		if !ok {
			return problem.Invalid("absoluteName", "%q is not in the zone %q", x.AbsoluteName, zone)
		}
		x.Name = relative
	}
	if c.IsCreation() || c.SetFields["name"] {
		if x.Name, err = relativeName(x.Name, zone); err != nil {
			return err
		}
	}
	if x.Name, err = assignNumbers(c, x.Parent, naming.Clean(x.Name)); err != nil {
		return err
	}
	if x.Name != "" {
		if err := naming.Check(x.Name, rule); err != nil {
			return problem.Invalid("name", "%v", err)
		}
	}
	if err := checkNamingPolicies(c, x.Parent, x.Name); err != nil {
		return err
	}
	x.AbsoluteName = naming.Join(x.Name, zone)
	// The record is at the apex of a template, or at the root.
	if x.AbsoluteName == "" && (holder.Collection == "templates" || holder.Type == "InternalRootZone") {
		return nil
	}
	if err := naming.Check(x.AbsoluteName, naming.AnyName); err != nil {
		return problem.Invalid("name", "the name together with its zone: %v", err)
	}
	return nil
}

// relativeName returns the name of a record relative to its zone. "@" and the name of the zone are the apex. A name with an unescaped
// trailing dot is absolute (RFC 1035 section 5.1).
func relativeName(name, zone string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "@" || name != "" && zone != "" && naming.Key(naming.Clean(name)) == naming.Key(zone):
		return "", nil
	case !strings.HasSuffix(name, ".") || naming.Clean(name) == name:
		return name, nil
	}
	relative, ok := naming.Relative(naming.Clean(name), zone)
	if !ok {
		return "", problem.Invalid("name", "%q is absolute and not in the zone %q", name, zone)
	}
	return relative, nil
}

// isWildcard reports whether a name is a wildcard (RFC 4592).
func isWildcard(name string) bool { return name == "*" || strings.HasPrefix(name, "*.") }

// resolveLink replaces a link by absolute name with a link by id. It searches the view of the zone.
func resolveLink(c *resource.Change, zone, configuration int64, ref *schema.Ref) error {
	if ref.ID != 0 || ref.By == "" {
		return nil
	}
	view, _, err := resolveParent(c.Tx, zone)
	if err != nil {
		return err
	}
	same, err := FindByName(c.Tx, configuration, view, "resourceRecords", ref.By)
	if err != nil {
		return err
	}
	var seen []*store.Resource
	for _, r := range same {
		sees, err := c.Sees(r.Head())
		if err != nil {
			return err
		}
		if sees {
			seen = append(seen, r)
		}
	}
	same = seen
	for _, r := range same {
		if r.Type == "HostRecord" || len(same) == 1 {
			*ref = schema.Ref{ID: r.ID}
			return nil
		}
	}
	if len(same) > 0 {
		*ref = schema.Ref{ID: same[0].ID}
		return nil
	}
	if linkToExternalHost.Value(c.Options) {
		row, err := c.Tx.Get(view)
		if err != nil {
			return err
		}
		*ref, err = ExternalHost(c, row, naming.Clean(ref.By))
		return err
	}
	return resource.NotFoundInlined("linkedRecord", "record %q does not exist in the view: to "+
		"point to an external name, create an ExternalHostRecord for "+
		"it in the view's ExternalHostsZone first, or send the header %s: true to create it", ref.By, linkToExternalHost.Name())
}

// parentName returns a name without its first label.
func parentName(name string) string {
	_, above, _ := naming.Cut(name)
	return above
}

// absoluteName returns the absolute name of a stored zone or record in its original spelling.
func absoluteName(r *store.Resource) string {
	var body struct {
		AbsoluteName string `json:"absoluteName"`
	}
	if json.Unmarshal(r.Body, &body) != nil || body.AbsoluteName == "" {
		return r.Key
	}
	return body.AbsoluteName
}

// ComparableRecord is a record that can be compared with another record of the same name.
type ComparableRecord interface {
	schema.Object
	CommonFields() *RecordHead
	// SameData reports whether the other record has the same data.
	SameData(o schema.Object) bool
}

// CommonFields returns the common fields of a record.
func (x *RecordHead) CommonFields() *RecordHead { return x }

// checkZoneCut rejects a requested record whose name belongs to a zone below its zone, because no server would serve it there (RFC 1034
// section 4.2.1). NS and DS records at the name of the lower zone are allowed. Imported records are not checked.
func checkZoneCut(c *resource.Change, x ComparableRecord, zone *store.Resource) error {
	h := x.CommonFields()
	if !c.IsRequested() || zone.Type != "Zone" || !c.IsCreation() && c.Row.Key == h.Key() {
		return nil
	}
	g, generic := x.(*GenericRecord)
	cuts := generic && (g.RecordType == "NS" || g.RecordType == "DS")
	for name := h.AbsoluteName; naming.Key(name) != zone.Key && name != ""; name = parentName(name) {
		below, err := FindByName(c.Tx, h.Config, ViewOf(zone), "zones", name)
		if err != nil {
			return err
		}
		for _, r := range below {
			if r.Type == "Zone" && !(cuts && r.Key == h.Key()) {
				return problem.Conflict("ResourceConflictsWithOther", "name: %q belongs to zone %s (%d): create the record there",
					h.AbsoluteName, problem.Describe(r.ID, absoluteName(r)), r.ID)
			}
		}
	}
	return nil
}

// checkConflicts rejects an alias next to other records of the same name (RFC 2181 section 10.1), and any record next to an alias. It also
// rejects an alias at the apex of a zone (RFC 1912 section 2.4), and a duplicate record.
func checkConflicts(c *resource.Change, x ComparableRecord) error {
	h := x.CommonFields()
	zone, err := c.Tx.Get(h.Parent)
	if err != nil {
		return err
	}
	_, alias := x.(*AliasRecord)
	if alias && h.Key() == zone.Key {
		return problem.Conflict("ResourceConflictsWithOther", "name: %q is the name of the zone and cannot be an alias", h.AbsoluteName)
	}
	if err := checkZoneCut(c, x, zone); err != nil {
		return err
	}
	others, err := FindByName(c.Tx, h.Config, ViewOf(zone), "resourceRecords", h.AbsoluteName)
	if err != nil {
		return err
	}
	for _, r := range others {
		if r.ID == h.ID || r.Type == "ExternalHostRecord" { // external hosts are not served
			continue
		}
		if alias || r.Type == "AliasRecord" {
			return problem.Conflict("ResourceConflictsWithOther", "name: %q already exists as %s %d; an alias must be alone at its name",
				h.AbsoluteName,
				r.Type, r.ID)
		}
		o, err := c.API.Object(r)
		if err != nil {
			return err
		}
		if x.SameData(o) {
			return problem.Conflict("ResourceAlreadyExists", "name: %q already has the same record (%s %d)", h.AbsoluteName, r.Type, r.ID)
		}
	}
	return nil
}
