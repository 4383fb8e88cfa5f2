package transfer

import (
	"fmt"
	"slices"
	"strings"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/schema"
	"portolan/internal/manager/dns"
)

// createGeneric creates a GenericRecord.
func (i *zoneImport) createGeneric(rr wire.RR) error {
	known := dns.GenericTypeNames(i.c.API)
	if why := dns.RefuseGenericType(rr.Header().Rrtype, nil); why != "" && rr.Header().Rrtype != wire.TypeHINFO {
		return i.skip(rr, why)
	}
	kind, data, err := dns.GenericTypeAndData(rr, known)
	if err != nil {
		return err
	}
	t := i.c.API.TypeNamed("GenericRecord")
	if f, _ := t.Field("rdata"); len(data) > f.MaxLength {
		return i.skip(rr, fmt.Sprintf("its data has %d bytes in zone file format, more than %d", len(data), f.MaxLength))
	}
	o := &dns.GenericRecord{RecordType: kind, Rdata: data}
	o.Type = "GenericRecord"
	return i.create(rr, o, rr.Header().Ttl)
}

func (i *zoneImport) createRecord(rr wire.RR) error {
	ttl := rr.Header().Ttl
	switch x := rr.(type) {
	case *wire.TXT:
		o := &dns.TXTRecord{}
		var parts []string
		for _, part := range x.Txt {
			o.Text += dns.UnescapeText(part)
			parts = append(parts, dns.EscapeText(dns.UnescapeText(part)))
		}
		// A TXTRecord stores one text in UTF-8. Other string boundaries or other bytes would be lost.
		if !slices.Equal(parts, dns.TextChunks(o.Text)) || strings.TrimSpace(o.Text) == "" || !dns.IsText(o.Text) {
			return i.createGeneric(rr)
		}
		o.Type = "TXTRecord"
		return i.create(rr, o, ttl)
	case *wire.HINFO:
		o := &dns.HINFORecord{OS: dns.UnescapeText(x.Os), CPU: dns.UnescapeText(x.Cpu)}
		if !dns.IsText(o.OS, o.CPU) {
			return i.createGeneric(rr)
		}
		o.Type = "HINFORecord"
		return i.create(rr, o, ttl)
	case *wire.NAPTR:
		o := &dns.NAPTRRecord{Order: int64(x.Order), Preference: int64(x.Preference), Flags: dns.UnescapeText(x.Flags),
			Service:           dns.UnescapeText(x.Service),
			RegularExpression: dns.UnescapeText(x.Regexp), Replacement: strings.TrimPrefix(cleanName(x.Replacement), dns.RootName)}
		if !dns.IsText(o.Flags, o.Service, o.RegularExpression) || o.RegularExpression != "" && (o.Replacement != "" ||
			strings.TrimSpace(o.RegularExpression) == "") {
			return i.createGeneric(rr)
		}
		o.Type = "NAPTRRecord"
		return i.create(rr, o, ttl)
	case *wire.MX:
		if x.Mx == "." { // the service does not exist (RFC 7505); an MXRecord requires a target
			return i.createGeneric(rr)
		}
		link, err := i.findTarget(x.Mx)
		if err != nil {
			return i.skipRefused(rr, err)
		}
		o := &dns.MXRecord{LinkedRecord: link, Priority: int64(x.Preference)}
		o.Type = "MXRecord"
		return i.create(rr, o, ttl)
	case *wire.SRV:
		if x.Target == "." { // RFC 2782
			return i.createGeneric(rr)
		}
		link, err := i.findTarget(x.Target)
		if err != nil {
			return i.skipRefused(rr, err)
		}
		o := &dns.SRVRecord{LinkedRecord: link, Priority: int64(x.Priority), Weight: int64(x.Weight), Port: int64(x.Port)}
		o.Type = "SRVRecord"
		return i.create(rr, o, ttl)
	case *wire.URI:
		if !dns.IsURI(dns.UnescapeText(x.Target)) || len(x.Target) > dns.MaxURITarget {
			return i.createGeneric(rr)
		}
		o := &dns.URIRecord{Priority: int64(x.Priority), Weight: int64(x.Weight), Target: dns.UnescapeText(x.Target)}
		o.Type = "URIRecord"
		return i.create(rr, o, ttl)
	case *wire.SVCB:
		return i.createBinding(rr, x, func(b *dns.ServiceBinding) schema.Object {
			b.Type = "SVCBRecord"
			return &dns.SVCBRecord{ServiceBinding: *b}
		})
	case *wire.HTTPS:
		return i.createBinding(rr, &x.SVCB, func(b *dns.ServiceBinding) schema.Object {
			b.Type = "HTTPSRecord"
			return &dns.HTTPSRecord{ServiceBinding: *b}
		})
	}
	return i.createGeneric(rr)
}

// createBinding creates a service binding, or a GenericRecord if the binding cannot store all data.
func (i *zoneImport) createBinding(rr wire.RR, data *wire.SVCB, object func(*dns.ServiceBinding) schema.Object) error {
	b, name := dns.ServiceBindingOf(data)
	if b == nil || b.Priority == 0 && b.ServiceParameters != nil || !b.HasParametersOf(data) {
		return i.createGeneric(rr)
	}
	if name != "" {
		var err error
		if b.LinkedRecord, err = i.findTarget(name); err != nil {
			return i.skipRefused(rr, err)
		}
	}
	return i.create(rr, object(b), rr.Header().Ttl)
}
