package dns

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"portolan/internal/engine/schema"

	"github.com/miekg/dns"
)

// makeGeneric makes a record of the type's own data.
func (i *zoneImport) makeGeneric(rr dns.RR) error {
	known := mnemonics(i.c.API)
	if why := refuseType(rr.Header().Rrtype, nil); why != "" && rr.Header().Rrtype != dns.TypeHINFO {
		return i.skip(rr, why)
	}
	kind, data, err := typeAndData(rr, known)
	if err != nil {
		return err
	}
	t := i.c.API.TypeNamed("GenericRecord")
	if f, _ := t.Field("rdata"); len(data) > f.MaxLength {
		return i.skip(rr, fmt.Sprintf("its data has %d bytes in the form of zone files, more than %d", len(data), f.MaxLength))
	}
	o := &GenericRecord{RecordType: kind, Rdata: data}
	o.Type = "GenericRecord"
	return i.create(rr, o, rr.Header().Ttl)
}

func (i *zoneImport) makeOne(rr dns.RR) error {
	ttl := rr.Header().Ttl
	switch x := rr.(type) {
	case *dns.TXT:
		o := &TXTRecord{}
		var parts []string
		for _, part := range x.Txt {
			o.Text += unescape(part)
			parts = append(parts, escape(unescape(part)))
		}
		// A TXTRecord is one text, in UTF-8: its parts, or its bytes, would be others.
		if !slices.Equal(parts, chunks(o.Text)) || strings.TrimSpace(o.Text) == "" || !isText(o.Text) {
			return i.makeGeneric(rr)
		}
		o.Type = "TXTRecord"
		return i.create(rr, o, ttl)
	case *dns.HINFO:
		o := &HINFORecord{OS: unescape(x.Os), CPU: unescape(x.Cpu)}
		if !isText(o.OS, o.CPU) {
			return i.makeGeneric(rr)
		}
		o.Type = "HINFORecord"
		return i.create(rr, o, ttl)
	case *dns.NAPTR:
		o := &NAPTRRecord{Order: int64(x.Order), Preference: int64(x.Preference), Flags: unescape(x.Flags), Service: unescape(x.Service),
			RegularExpression: unescape(x.Regexp), Replacement: strings.TrimPrefix(textOf(x.Replacement), root)}
		if !isText(o.Flags, o.Service, o.RegularExpression) || o.RegularExpression != "" && (o.Replacement != "" ||
			strings.TrimSpace(o.RegularExpression) == "") {
			return i.makeGeneric(rr)
		}
		o.Type = "NAPTRRecord"
		return i.create(rr, o, ttl)
	case *dns.MX:
		if x.Mx == "." { // there is no such service at all (RFC 7505): an MXRecord leads to a record
			return i.makeGeneric(rr)
		}
		link, err := i.target(x.Mx)
		if err != nil {
			return i.refused(rr, err)
		}
		o := &MXRecord{LinkedRecord: link, Priority: int64(x.Preference)}
		o.Type = "MXRecord"
		return i.create(rr, o, ttl)
	case *dns.SRV:
		if x.Target == "." { // RFC 2782
			return i.makeGeneric(rr)
		}
		link, err := i.target(x.Target)
		if err != nil {
			return i.refused(rr, err)
		}
		o := &SRVRecord{LinkedRecord: link, Priority: int64(x.Priority), Weight: int64(x.Weight), Port: int64(x.Port)}
		o.Type = "SRVRecord"
		return i.create(rr, o, ttl)
	case *dns.URI:
		if !isURI(unescape(x.Target)) || len(x.Target) > maxTarget {
			return i.makeGeneric(rr)
		}
		o := &URIRecord{Priority: int64(x.Priority), Weight: int64(x.Weight), Target: unescape(x.Target)}
		o.Type = "URIRecord"
		return i.create(rr, o, ttl)
	case *dns.SVCB:
		return i.makeBinding(rr, x, func(b *ServiceBinding) schema.Object {
			b.Type = "SVCBRecord"
			return &SVCBRecord{ServiceBinding: *b}
		})
	case *dns.HTTPS:
		return i.makeBinding(rr, &x.SVCB, func(b *ServiceBinding) schema.Object {
			b.Type = "HTTPSRecord"
			return &HTTPSRecord{ServiceBinding: *b}
		})
	}
	return i.makeGeneric(rr)
}

// makeBinding makes a record of a service, or one of the type's own data where it says more than those.
func (i *zoneImport) makeBinding(rr dns.RR, data *dns.SVCB, object func(*ServiceBinding) schema.Object) error {
	b, name := boundService(data)
	if b == nil || b.Priority == 0 && b.ServiceParameters != nil || !b.says(data) {
		return i.makeGeneric(rr)
	}
	if name != "" {
		var err error
		if b.LinkedRecord, err = i.target(name); err != nil {
			return i.refused(rr, err)
		}
	}
	return i.create(rr, object(b), rr.Header().Ttl)
}

// isText reports whether fields can hold the texts: they are UTF-8 without control characters.
func isText(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool {
		return !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl)
	})
}
