package dns

import (
	"strings"

	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
)

// registerGenericRecords declares the type.
func registerGenericRecords(r *resource.Registry) {
	declareRecord(r, "GenericRecord", &GenericRecord{})
}

// GenericRecord is a record of any other type, its data in zone-file syntax.
type GenericRecord struct {
	RecordHead
	// RecordType is the record's DNS type. MX and SRV, which are ours, say that there is no such service (RFC 7505, RFC 2782): their target
	// is the root. Others are MXRecords and SRVRecords.
	RecordType string `api:"recordType,post" enum:"A|A6|AAAA|AFSDB|APL|CAA|CERT|DHCID|DNAME|DNSKEY|DS|HTTPS|IPSECKEY|ISDN|KEY|KX|LOC|MB|MG|MINFO|MR|MX|NAPTR|NS|NSAP|PTR|PX|RP|RT|SINK|SPF|SRV|SSHFP|SVCB|TLSA|TXT|URI|WKS|X25"`
	// Rdata is the record's data in zone-file syntax (RFC 1035 section 5).
	Rdata string `api:"rdata,required,nonblank" length:"65000"`
}

// BeforeWrite derives the name and reads the data.
func (x *GenericRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if err := naming.CheckData(x.RecordType, x.Rdata); err != nil {
		return problem.Invalid("rdata", "%v", err)
	}
	if parts := strings.Fields(x.Rdata); (x.RecordType == "MX" || x.RecordType == "SRV") && parts[len(parts)-1] != root {
		return problem.Invalid("rdata",
			"leads to %s: that is an %sRecord; a GenericRecord of that type leads to the root, and says that there is no "+
				"such service", parts[len(parts)-1], x.RecordType)
	}
	return nil
}

// Validate refuses the same record twice, and a name that is an alias.
func (x *GenericRecord) Validate(c *resource.Change) error { return fits(c, x) }

func (x *GenericRecord) same(o schema.Object) bool {
	y, ok := o.(*GenericRecord)
	return ok && x.RecordType == y.RecordType && strings.Join(strings.Fields(x.Rdata), " ") == strings.Join(strings.Fields(y.Rdata), " ")
}
