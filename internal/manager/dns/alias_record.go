package dns

import (
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerAliasRecords declares the record type.
func registerAliasRecords(r *resource.Registry) {
	declareRecord(r, "AliasRecord", &AliasRecord{}, linkToExternalHost.Header(resource.Writing, "AliasRecord"))
}

// AliasRecord is an alias for another record (CNAME).
type AliasRecord struct {
	RecordHead `unique:"wholeName"`
	// RecordType is the DNS type.
	RecordType string `api:"recordType,computed" always:"CNAME"`
	// LinkedRecord is the target of the alias, by id or by absoluteName.
	LinkedRecord schema.Ref `api:"linkedRecord,required" identify:"absoluteName" ref:"HostRecord|AliasRecord|MXRecord|TXTRecord|GenericRecord|SRVRecord|NAPTRRecord|HINFORecord|HTTPSRecord|SVCBRecord|URIRecord|ExternalHostRecord" back:"dependentRecords" onDelete:"cascade"`
}

// BeforeWrite derives the absolute name and resolves the target.
func (x *AliasRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if err := resolveLink(c, x.Parent, x.Config, &x.LinkedRecord); err != nil {
		return err
	}
	if x.LinkedRecord.ID == x.ID && x.ID != 0 {
		return problem.Invalid("linkedRecord", "an alias cannot point to itself")
	}
	return nil
}

// Validate rejects a name that has other records.
func (x *AliasRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *AliasRecord) SameData(schema.Object) bool { return true }
