package dns

import (
	"strings"

	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// SRVRecord names a server of a service (RFC 2782).
type SRVRecord struct {
	RecordHead
	// LinkedRecord is the host that gives the service, by id or by absoluteName.
	LinkedRecord schema.Ref `api:"linkedRecord,required" identify:"absoluteName" ref:"HostRecord|AliasRecord|GenericRecord|ExternalHostRecord" back:"dependentRecords" onDelete:"cascade"`
	// Priority is the preference: the lowest is tried first.
	Priority int64 `api:"priority,put" min:"0" max:"65535"`
	// Weight divides the clients among servers of the same priority.
	Weight int64 `api:"weight,put" min:"0" max:"65535"`
	// Port is the port of the service.
	Port int64 `api:"port,put" min:"0" max:"65535"`
}

// BeforeWrite derives the name and finds the server.
func (x *SRVRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	return linkRecord(c, x.Parent, x.Config, &x.LinkedRecord)
}

// Validate refuses the same record twice, and a name that is an alias.
func (x *SRVRecord) Validate(c *resource.Change) error { return fits(c, x) }

func (x *SRVRecord) same(o schema.Object) bool {
	y, ok := o.(*SRVRecord)
	return ok && x.LinkedRecord.ID == y.LinkedRecord.ID && x.Priority == y.Priority && x.Weight == y.Weight && x.Port == y.Port
}

// NAPTRRecord is a rule that makes one name of another (RFC 3403).
type NAPTRRecord struct {
	RecordHead
	// Order is the order in which rules are used.
	Order int64 `api:"order,put" min:"0" max:"65535"`
	// Preference is the order among rules of the same order.
	Preference int64 `api:"preference,put" min:"0" max:"65535"`
	// Service is the service and how it is resolved.
	Service string `api:"service" length:"255"`
	// RegularExpression is the substitution.
	RegularExpression string `api:"regularExpression,nonblank" length:"255"`
	// Replacement is the next name, where there is no substitution.
	Replacement string `api:"replacement" length:"1020"`
	// Flags say how the rule ends.
	Flags string `api:"flags" length:"255"`
}

// BeforeWrite derives the name and reads the data.
func (x *NAPTRRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if x.Replacement != "" && x.Replacement != "." {
		if err := naming.Check(naming.Clean(x.Replacement), naming.AnyName); err != nil {
			return problem.Invalid("replacement", "%v", err)
		}
	}
	if x.Replacement != "" && x.Replacement != "." && x.RegularExpression != "" {
		return problem.Invalid("replacement", "a rule has either a replacement or a regularExpression (RFC 3403 section 4.1)")
	}
	return nil
}

// Validate refuses the same record twice, and a name that is an alias.
func (x *NAPTRRecord) Validate(c *resource.Change) error { return fits(c, x) }

func (x *NAPTRRecord) same(o schema.Object) bool {
	y, ok := o.(*NAPTRRecord)
	return ok && x.Order == y.Order && x.Preference == y.Preference && x.Service == y.Service && x.Flags == y.Flags &&
		x.RegularExpression == y.RegularExpression && x.Replacement == y.Replacement
}

// HINFORecord says what a host is (RFC 1035 section 3.3.2).
type HINFORecord struct {
	RecordHead
	// OS is the operating system.
	OS string `api:"os" length:"255"`
	// CPU is the kind of machine.
	CPU string `api:"cpu" length:"255"`
}

// BeforeWrite derives the name.
func (x *HINFORecord) BeforeWrite(c *resource.Change) error { return x.checkName(c, naming.AnyName) }

// Validate refuses the same record twice, and a name that is an alias.
func (x *HINFORecord) Validate(c *resource.Change) error { return fits(c, x) }

func (x *HINFORecord) same(o schema.Object) bool {
	y, ok := o.(*HINFORecord)
	return ok && x.OS == y.OS && x.CPU == y.CPU
}

// ExternalHostRecord is the name of a host that is somebody else's, for records to link to. It is not
// served.
type ExternalHostRecord struct {
	RecordHead `parents:"zones"`
	// View is the view that the record is made in.
	View schema.Ref `api:"view,writeOnly" ref:"View"`
}

// BeforeWrite takes the name, which is whole, as it is.
func (x *ExternalHostRecord) BeforeWrite(c *resource.Change) error {
	zone, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	if zone.Type != "ExternalHostsZone" {
		return problem.Invalid("type", "an ExternalHostRecord lies in an ExternalHostsZone, not in %s %d", zone.Type, zone.ID)
	}
	if x.Name == "" {
		x.Name = x.AbsoluteName
	}
	x.Name = naming.Clean(x.Name)
	if err := naming.Check(x.Name, naming.AnyName); err != nil {
		return problem.Invalid("name", "%v", err)
	}
	x.AbsoluteName = x.Name
	return nil
}

// Validate refuses a second record of the same host.
func (x *ExternalHostRecord) Validate(c *resource.Change) error {
	same, err := c.Tx.ByKey(x.Config, naming.Key(x.AbsoluteName))
	if err != nil {
		return err
	}
	for _, r := range same {
		if r.Parent == x.Parent && r.ID != x.ID {
			return problem.Conflict("ResourceAlreadyExists", "name: %q is %s %d already", x.AbsoluteName, r.Type, r.ID)
		}
	}
	return nil
}

// ExternalHostsZone holds the names of hosts that are somebody else's: one in a view.
type ExternalHostsZone struct {
	schema.Head `head:"readOnly"`
	// Configuration is the configuration the zone lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// View is the view the zone lies in.
	View schema.Ref `api:"view,readOnly" ref:"View"`
}

// BeforeWrite places the zone.
func (x *ExternalHostsZone) BeforeWrite(c *resource.Change) error {
	parent, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	if parent.Collection != "views" {
		return problem.Invalid("type", "an ExternalHostsZone lies right below a view")
	}
	x.View = schema.Ref{ID: parent.ID}
	x.Name = "External Hosts"
	return nil
}

// Validate refuses a second one in a view.
func (x *ExternalHostsZone) Validate(c *resource.Change) error {
	other, err := externalHosts(c.Tx, x.View.ID)
	if err == nil && other != nil && other.ID != x.ID {
		return problem.Conflict("ResourceAlreadyExists", "view %d has external hosts already: zone %d", x.View.ID, other.ID)
	}
	return err
}

// externalHosts finds the zone of a view's external hosts; nil where it has none.
func externalHosts(tx *store.Tx, view int64) (*store.Resource, error) {
	found, err := tx.ByName("zones", view, "External Hosts")
	for _, r := range found {
		if r.Type == "ExternalHostsZone" {
			return r, err
		}
	}
	return nil, err
}

// comparableRecord is a record that may be compared with another one of its name.
type comparableRecord interface {
	schema.Object
	record() *RecordHead
	// same reports whether the other record says the same.
	same(o schema.Object) bool
}

func (x *RecordHead) record() *RecordHead { return x }

// fits refuses an alias beside other records of its name (RFC 2181 section 10.1) and at the apex of a
// zone (RFC 1912 section 2.4), anything beside an alias, and the same record twice.
func fits(c *resource.Change, x comparableRecord) error {
	h := x.record()
	zone, err := c.Tx.Get(h.Parent)
	if err != nil {
		return err
	}
	_, alias := x.(*AliasRecord)
	if alias && h.Key() == zone.Key {
		return problem.Conflict("AliasAtApex", "name: %q is the zone itself, which cannot be an alias", h.AbsoluteName)
	}
	others, err := sameName(c.Tx, h.Config, viewOf(zone), "resourceRecords", h.AbsoluteName)
	if err != nil {
		return err
	}
	for _, r := range others {
		if r.ID == h.ID || r.Type == "ExternalHostRecord" { // which is not served
			continue
		}
		if alias || r.Type == "AliasRecord" {
			return problem.Conflict("AliasNotAlone", "name: %q is %s %d already, and an alias stands alone", h.AbsoluteName, r.Type, r.ID)
		}
		o, err := c.API.Object(r)
		if err != nil {
			return err
		}
		if x.same(o) {
			return problem.Conflict("ResourceAlreadyExists", "name: %q has the same record already: %s %d", h.AbsoluteName, r.Type, r.ID)
		}
	}
	return nil
}

// Validate refuses a second host of the name, and a name that is an alias.
func (x *HostRecord) Validate(c *resource.Change) error { return fits(c, x) }

func (x *HostRecord) same(o schema.Object) bool { _, ok := o.(*HostRecord); return ok }

// Validate refuses a name that has anything else.
func (x *AliasRecord) Validate(c *resource.Change) error { return fits(c, x) }

func (x *AliasRecord) same(schema.Object) bool { return true }

// Validate refuses the same record twice, and a name that is an alias.
func (x *MXRecord) Validate(c *resource.Change) error { return fits(c, x) }

func (x *MXRecord) same(o schema.Object) bool {
	y, ok := o.(*MXRecord)
	return ok && x.LinkedRecord.ID == y.LinkedRecord.ID && x.Priority == y.Priority
}

// Validate refuses the same record twice, and a name that is an alias.
func (x *TXTRecord) Validate(c *resource.Change) error { return fits(c, x) }

func (x *TXTRecord) same(o schema.Object) bool {
	y, ok := o.(*TXTRecord)
	return ok && x.Text == y.Text
}

// Validate refuses the same record twice, and a name that is an alias.
func (x *GenericRecord) Validate(c *resource.Change) error { return fits(c, x) }

func (x *GenericRecord) same(o schema.Object) bool {
	y, ok := o.(*GenericRecord)
	return ok && x.RecordType == y.RecordType && strings.Join(strings.Fields(x.Rdata), " ") == strings.Join(strings.Fields(y.Rdata), " ")
}
