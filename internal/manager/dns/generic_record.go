package dns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerGenericRecords declares the type.
func registerGenericRecords(r *resource.Registry) {
	declareRecord(r, "GenericRecord", &GenericRecord{})
}

// GenericRecord is a record of any other type, its data in zone-file syntax.
type GenericRecord struct {
	RecordHead
	// RecordType is the record's DNS type: a mnemonic, or TYPE and a number for any other type (RFC 3597 section 5). An MX or SRV record here
	// says that there is no such service (RFC 7505, RFC 2782): its target is the root. Others are MXRecords and SRVRecords.
	RecordType string `api:"recordType,post" others:"TYPE[1-9][0-9]{0,4}" enum:"A|A6|AAAA|AFSDB|APL|CAA|CERT|DHCID|DNAME|DNSKEY|DS|HTTPS|IPSECKEY|ISDN|KEY|KX|LOC|MB|MG|MINFO|MR|MX|NAPTR|NS|NSAP|PTR|PX|RP|RT|SINK|SPF|SRV|SSHFP|SVCB|TLSA|TXT|URI|WKS|X25|AMTRELAY|ATMA|AVC|CDNSKEY|CDS|CSYNC|DLV|DOA|EID|EUI48|EUI64|GPOS|HIP|L32|L64|LP|MD|MF|NID|NIMLOC|NINFO|NSAP-PTR|OPENPGPKEY|RKEY|SMIMEA|TA|TALINK|ZONEMD"`
	// Rdata is the record's data in zone-file syntax (RFC 1035 section 5).
	Rdata string `api:"rdata,required,nonblank" length:"65000"`
}

// BeforeWrite derives the name and reads the data.
func (x *GenericRecord) BeforeWrite(c *resource.Change) error {
	if err := x.checkName(c, naming.AnyName); err != nil {
		return err
	}
	if err := x.checkType(c); err != nil {
		return err
	}
	if err := naming.CheckData(x.RecordType, x.Rdata); err != nil {
		return problem.Invalid("rdata", "%v", err)
	}
	if parts := strings.Fields(x.Rdata); (x.RecordType == "MX" || x.RecordType == "SRV") && parts[len(parts)-1] != RootName {
		return problem.Invalid("rdata",
			"leads to %s: that is an %sRecord; a GenericRecord of that type leads to the root, and says that there is no "+
				"such service", parts[len(parts)-1], x.RecordType)
	}
	return nil
}

// modelled are types that have a resource type of their own, which a record of a type by its number would go around.
var ownResourceTypes = map[uint16]string{dns.TypeCNAME: "AliasRecord", dns.TypeHINFO: "HINFORecord"}

// FromSigning reports whether records of a type follow from signing a zone, and are no data of it.
func FromSigning(kind uint16) bool {
	return kind == dns.TypeRRSIG || kind == dns.TypeNSEC || kind == dns.TypeNSEC3 || kind == dns.TypeNSEC3PARAM
}

// RefuseGenericType says why no zone has GenericRecords of a type; it gives nothing where they may be. mnemonics are those that have a
// name here.
func RefuseGenericType(kind uint16, mnemonics []string) string {
	mnemonic := dns.TypeToString[kind]
	switch {
	case kind == 0 || IsMeta(kind):
		return "this type is for questions and messages: zones have no records of it (RFC 6895 section 3.1)"
	case FromSigning(kind):
		return "these records are made when the zone is signed: choose a signing policy for the zone"
	case kind == dns.TypeSOA:
		return "the start of authority follows from deployment options"
	case ownResourceTypes[kind] != "":
		return "create a resource of the type " + ownResourceTypes[kind]
	case slices.Contains(mnemonics, mnemonic):
		return "write " + mnemonic
	}
	return ""
}

// checkType refuses a type by its number that has a name or a resource type here, or that no zone has records of.
func (x *GenericRecord) checkType(c *resource.Change) error {
	digits, numbered := strings.CutPrefix(x.RecordType, "TYPE")
	if !numbered {
		return nil
	}
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return problem.Invalid("recordType", "%q: type numbers go up to 65535", x.RecordType)
	}
	why := RefuseGenericType(uint16(number), GenericTypeNames(c.API))
	if rr, err := naming.NewRecord(RootName, 0, x.RecordType, x.Rdata); err == nil {
		if h, is := rr.(*dns.HINFO); is && !IsText(UnescapeText(h.Cpu), UnescapeText(h.Os)) { // which a HINFORecord cannot hold
			return nil
		}
	}
	if why != "" {
		return problem.Invalid("recordType", "%q: %s", x.RecordType, why)
	}
	return nil
}

// GenericTypeNames are the types of GenericRecords that have a name.
func GenericTypeNames(a *resource.API) []string {
	t, _ := a.Type("GenericRecord")
	f, _ := t.Field("recordType")
	return f.Enum
}

// GenericTypeAndData gives the type and the data of a record as a GenericRecord has them: in the form of RFC 3597 where the type has no
// name here.
func GenericTypeAndData(rr dns.RR, mnemonics []string) (recordType, data string, err error) {
	recordType = dns.Type(rr.Header().Rrtype).String()
	named := slices.Contains(mnemonics, recordType)
	unknown, is := rr.(*dns.RFC3597)
	switch {
	case named && !is: // the library writes a space in a name as "\ ", which is hard to see
		return recordType, strings.ReplaceAll(strings.TrimPrefix(rr.String(), rr.Header().String()), `\ `, `\032`), nil
	case !named:
		recordType = fmt.Sprintf("TYPE%d", rr.Header().Rrtype)
	}
	if !is {
		unknown = &dns.RFC3597{}
		if err := unknown.ToRFC3597(rr); err != nil {
			return "", "", err
		}
	}
	return recordType, fmt.Sprintf(`\# %d %s`, len(unknown.Rdata)/2, unknown.Rdata), nil
}

// Validate refuses the same record twice, and a name that is an alias.
func (x *GenericRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *GenericRecord) SameData(o schema.Object) bool {
	y, ok := o.(*GenericRecord)
	return ok && x.RecordType == y.RecordType && strings.Join(strings.Fields(x.Rdata), " ") == strings.Join(strings.Fields(y.Rdata), " ")
}

// IsMeta reports whether a type is one of questions and of messages, of which no zone has records (RFC 6895 section 3.1).
func IsMeta(kind uint16) bool {
	return kind >= dns.TypeTKEY && kind <= dns.TypeANY || kind == dns.TypeOPT
}
