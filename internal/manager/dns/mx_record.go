package dns

import (
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerMXRecords declares the record type.
func registerMXRecords(r *resource.Registry) {
	declareRecord(r, "MXRecord", &MXRecord{}, linkToExternalHost.Header(resource.Writing, "MXRecord"))
}

// MXRecord is a mail exchanger of a name (RFC 5321).
type MXRecord struct {
	RecordHead
	// RecordType is the DNS type.
	RecordType string `api:"recordType,computed" always:"MX"`
	// LinkedRecord is the mail host, by id or by absoluteName.
	LinkedRecord schema.Ref `api:"linkedRecord,required" identify:"absoluteName" ref:"HostRecord|AliasRecord|GenericRecord|ExternalHostRecord" back:"dependentRecords" onDelete:"cascade"`
	// Priority is the preference; the lowest is tried first.
	Priority int64 `api:"priority,put" min:"0" max:"65535" default:"10"`
}

// BeforeWrite derives the absolute name and resolves the mail host.
func (x *MXRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	return resolveLink(c, x.Parent, x.Config, &x.LinkedRecord)
}

// Validate rejects a duplicate record, and a name that is an alias.
func (x *MXRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *MXRecord) SameData(o schema.Object) bool {
	y, ok := o.(*MXRecord)
	return ok && x.LinkedRecord.ID == y.LinkedRecord.ID && x.Priority == y.Priority
}
