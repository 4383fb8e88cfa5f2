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

// registerRecords declares the collection of resource records. Each type of them declares itself.
func registerRecords(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "resourceRecords", Parents: []string{"templates", "zones"}, Place: placeName, PlacedBy: "view",
		Workflow: workflowType})
}

// askedAs is the word for changes of records that others have to approve.
func workflowType(typeName string) string {
	switch typeName {
	case "HostRecord":
		return "HOST_RECORD"
	case "AliasRecord":
		return "ALIAS_RECORD"
	}
	return "RESOURCE_RECORD"
}

// declareRecord declares a type of record that is served, with what all of those take and options of its own.
func declareRecord(r *resource.Registry, name string, sample schema.Object, options ...resource.RequestHeader) {
	r.Collection(resource.Collection{Name: "resourceRecords", Options: append(options, sameAsZone.For(resource.Creating, name),
		overrideNamingPolicy.For(resource.Writing, name))}, sample)
}

// Options of records.
var (
	autoCreateNetwork  = resource.Flag("x-bcn-auto-create-network", "Make the network that an address of the host lacks.")
	sameAsZone         = resource.Flag("x-bcn-same-as-zone", "Give the record the zone's own name.")
	linkToExternalHost = resource.Flag("x-bcn-link-to-external-host", "Link to an external host where no record has the name.")
)

// RecordHead is what every resource record has.
type RecordHead struct {
	schema.Head `head:"required,nullable,blank" unless:"absoluteName"`
	// Configuration is the configuration the record lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// TTL is the record's time to live in seconds (RFC 2181 section 8); null takes the zone's.
	TTL *int64 `api:"ttl" min:"0" max:"2147483647"`
	// AbsoluteName is the record's whole name; it follows the name and the zone.
	AbsoluteName string `api:"absoluteName,createOnly,dns,inline,search" length:"1020"`
	// Comment is a remark.
	Comment string `api:"comment" length:"4000"`
	// Dynamic says whether the record came by a dynamic update.
	Dynamic bool `api:"dynamic,readOnly"`
}

// Key is the record's absolute name as names compare.
func (x *RecordHead) Key() string { return naming.Key(x.AbsoluteName) }

// String is the record's absolute name.
func (x *RecordHead) String() string { return x.AbsoluteName }

// checkName derives the absolute name. A name of null is the zone's apex; so is any name of a new
// record sent with x-bcn-same-as-zone.
func (x *RecordHead) checkName(c *resource.Change, rule naming.Rule) error {
	holder, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	switch holder.Type {
	case "ExternalHostsZone":
		return problem.Invalid("type", "%s %d holds nothing but ExternalHostRecords", holder.Type, holder.ID)
	case "ResponsePolicyZone":
		return problem.Invalid("type", "%s %d holds what its responsePolicy says, and no records", holder.Type, holder.ID)
	}
	_, zone, err := resolveParent(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	if x.Name != "" && strings.TrimSpace(x.Name) == "" {
		return problem.Invalid("name", "is blank: send null, \"\" or @ for the name of the zone itself")
	}
	if c.Creates() && sameAsZone.In(c.Options) {
		x.Name = ""
	} else if c.Creates() && x.Name == "" && c.Given["absoluteName"] {
		relative, ok := naming.Relative(naming.Clean(x.AbsoluteName), zone)
		if !ok {
			return problem.Invalid("absoluteName", "%q does not lie in the zone %q", x.AbsoluteName, zone)
		}
		x.Name = relative
	}
	if c.Creates() || c.Given["name"] {
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
	// the apex of the zones to come, or the root
	if x.AbsoluteName == "" && (holder.Collection == "templates" || holder.Type == "InternalRootZone") {
		return nil
	}
	if err := naming.Check(x.AbsoluteName, naming.AnyName); err != nil {
		return problem.Invalid("name", "with its zone, %v", err)
	}
	return nil
}

// relativeName gives a record's name within its zone: "@", and the zone's own name, are its apex, and a name with
// a dot behind it, which is not escaped, is absolute (RFC 1035 section 5.1).
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
		return "", problem.Invalid("name", "%q is absolute, and does not lie in the zone %q", name, zone)
	}
	return relative, nil
}

// wildcard reports whether a name stands for others (RFC 4592).
func isWildcard(name string) bool { return name == "*" || strings.HasPrefix(name, "*.") }

// linkRecord finds a record that a request names by its absolute name, in the view of the zone.
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
	if linkToExternalHost.In(c.Options) {
		row, err := c.Tx.Get(view)
		if err != nil {
			return err
		}
		*ref, err = ExternalHost(c, row, naming.Clean(ref.By))
		return err
	}
	return resource.NotFoundInlined("linkedRecord", "there is no record %q in the view: to "+
		"lead to a name of somebody else, make an ExternalHostRecord of "+
		"it in the view's ExternalHostsZone first, or send the header %s: true, which makes it", ref.By, linkToExternalHost.Name())
}

// parentName gives a name without its first label.
func parentName(name string) string {
	_, above, _ := naming.Cut(name)
	return above
}

// absoluteName gives a stored zone's or record's absolute name as it was typed.
func absoluteName(r *store.Resource) string {
	var body struct {
		AbsoluteName string `json:"absoluteName"`
	}
	if json.Unmarshal(r.Body, &body) != nil || body.AbsoluteName == "" {
		return r.Key
	}
	return body.AbsoluteName
}

// ComparableRecord is a record that may be compared with another one of its name.
type ComparableRecord interface {
	schema.Object
	AsRecord() *RecordHead
	// SameData reports whether the other record says the same.
	SameData(o schema.Object) bool
}

// AsRecord returns what every record has.
func (x *RecordHead) AsRecord() *RecordHead { return x }

// notBelowAnother refuses a record that a request puts into a zone although its name belongs to a zone below that one: no server would
// answer it (RFC 1034 section 4.2.1). NS and DS records at the name of the zone below are of the zone above. Records that an import brings
// stay.
func checkZoneCut(c *resource.Change, x ComparableRecord, zone *store.Resource) error {
	h := x.AsRecord()
	if !c.Requested() || zone.Type != "Zone" || !c.Creates() && c.Row.Key == h.Key() {
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
				return problem.Conflict("ResourceConflictsWithOther", "name: %q belongs to zone %d, %s: create the record there", h.AbsoluteName, r.ID,
					problem.About(r.ID, absoluteName(r)))
			}
		}
	}
	return nil
}

// fits refuses an alias beside other records of its name (RFC 2181 section 10.1) and at the apex of a
// zone (RFC 1912 section 2.4), anything beside an alias, and the same record twice.
func checkConflicts(c *resource.Change, x ComparableRecord) error {
	h := x.AsRecord()
	zone, err := c.Tx.Get(h.Parent)
	if err != nil {
		return err
	}
	_, alias := x.(*AliasRecord)
	if alias && h.Key() == zone.Key {
		return problem.Conflict("ResourceConflictsWithOther", "name: %q is the zone itself, which cannot be an alias", h.AbsoluteName)
	}
	if err := checkZoneCut(c, x, zone); err != nil {
		return err
	}
	others, err := FindByName(c.Tx, h.Config, ViewOf(zone), "resourceRecords", h.AbsoluteName)
	if err != nil {
		return err
	}
	for _, r := range others {
		if r.ID == h.ID || r.Type == "ExternalHostRecord" { // which is not served
			continue
		}
		if alias || r.Type == "AliasRecord" {
			return problem.Conflict("ResourceConflictsWithOther", "name: %q is %s %d already, and an alias stands alone", h.AbsoluteName,
				r.Type, r.ID)
		}
		o, err := c.API.Object(r)
		if err != nil {
			return err
		}
		if x.SameData(o) {
			return problem.Conflict("ResourceAlreadyExists", "name: %q has the same record already: %s %d", h.AbsoluteName, r.Type, r.ID)
		}
	}
	return nil
}
