package dns

import (
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerSRVRecords declares the record type.
func registerSRVRecords(r *resource.Registry) {
	declareRecord(r, "SRVRecord", &SRVRecord{}, linkToExternalHost.Header(resource.Writing, "SRVRecord"))
}

// SRVRecord is a server of a service (RFC 2782).
type SRVRecord struct {
	RecordHead
	// RecordType is the DNS type.
	RecordType string `api:"recordType,computed" always:"SRV"`
	// LinkedRecord is the host of the service, by id or by absoluteName.
	LinkedRecord schema.Ref `api:"linkedRecord,required" identify:"absoluteName" ref:"HostRecord|AliasRecord|GenericRecord|ExternalHostRecord" back:"dependentRecords" onDelete:"cascade"`
	// Priority is the preference; the lowest is tried first.
	Priority int64 `api:"priority,put" min:"0" max:"65535"`
	// Weight distributes the clients among servers of equal priority.
	Weight int64 `api:"weight,put" min:"0" max:"65535"`
	// Port is the port of the service.
	Port int64 `api:"port,put" min:"0" max:"65535"`
}

// BeforeWrite derives the absolute name and resolves the server.
func (x *SRVRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	return resolveLink(c, x.Parent, x.Config, &x.LinkedRecord)
}

// Validate rejects a duplicate record, and a name that is an alias.
func (x *SRVRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *SRVRecord) SameData(o schema.Object) bool {
	y, ok := o.(*SRVRecord)
	return ok && x.LinkedRecord.ID == y.LinkedRecord.ID && x.Priority == y.Priority && x.Weight == y.Weight && x.Port == y.Port
}
