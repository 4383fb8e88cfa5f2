package dns

import (
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerHINFORecords declares the record type.
func registerHINFORecords(r *resource.Registry) {
	declareRecord(r, "HINFORecord", &HINFORecord{})
}

// HINFORecord describes a host (RFC 1035 section 3.3.2).
type HINFORecord struct {
	RecordHead
	// RecordType is the DNS type.
	RecordType string `api:"recordType,computed" always:"HINFO"`
	// OS is the operating system.
	OS string `api:"os" length:"255"`
	// CPU is the type of machine.
	CPU string `api:"cpu" length:"255"`
}

// BeforeWrite derives the absolute name.
func (x *HINFORecord) BeforeWrite(c *resource.Change) error { return x.checkName(c, naming.AnyName) }

// Validate rejects a duplicate record, and a name that is an alias.
func (x *HINFORecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *HINFORecord) SameData(o schema.Object) bool {
	y, ok := o.(*HINFORecord)
	return ok && x.OS == y.OS && x.CPU == y.CPU
}
