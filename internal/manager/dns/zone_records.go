package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"

	"github.com/miekg/dns"
)

// recordsOf gives the records that a resource stands for.
func (z *zoneReader) recordsOf(r *store.Resource) ([]dns.RR, error) {
	name, err := fqdn(r.Key)
	if err != nil {
		return nil, err
	}
	o, err := z.api.Object(r)
	if err != nil {
		return nil, err
	}
	a, ok := o.(comparableRecord)
	if !ok { // an external host
		return nil, nil
	}
	ttl := uint32(DefaultTTL)
	if given := a.record().TTL; given != nil {
		ttl = uint32(*given) //nolint:gosec // the field's bounds are those of a TTL
	}
	head := func(t uint16) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: t, Class: dns.ClassINET, Ttl: ttl}
	}
	target, err := fqdn(z.targets[r.ID])
	if err != nil {
		return nil, err
	}
	switch x := o.(type) {
	case *HostRecord:
		var rrs []dns.RR
		for _, addr := range z.addresses[r.ID] {
			if addr.Is4() {
				rrs = append(rrs, &dns.A{Hdr: head(dns.TypeA), A: addr.AsSlice()})
			} else {
				rrs = append(rrs, &dns.AAAA{Hdr: head(dns.TypeAAAA), AAAA: addr.AsSlice()})
			}
		}
		return rrs, nil
	case *AliasRecord:
		return []dns.RR{&dns.CNAME{Hdr: head(dns.TypeCNAME), Target: target}}, nil
	case *MXRecord:
		return []dns.RR{&dns.MX{Hdr: head(dns.TypeMX), Preference: uint16(x.Priority), Mx: target}}, nil //nolint:gosec // within its bounds
	case *SRVRecord:
		return []dns.RR{&dns.SRV{Hdr: head(dns.TypeSRV), Priority: uint16(x.Priority), Weight: uint16(x.Weight), Port: uint16(x.Port),
			Target: target}}, nil //nolint:gosec // within their bounds
	case *URIRecord:
		return []dns.RR{&dns.URI{Hdr: head(dns.TypeURI), Priority: uint16(x.Priority), Weight: uint16(x.Weight),
			Target: escape(x.Target)}}, nil //nolint:gosec // within their bounds
	case *SVCBRecord:
		rr, err := x.binding(head(dns.TypeSVCB), target)
		return []dns.RR{&rr}, err
	case *HTTPSRecord:
		rr, err := x.binding(head(dns.TypeHTTPS), target)
		return []dns.RR{&dns.HTTPS{SVCB: rr}}, err
	case *TXTRecord:
		return []dns.RR{&dns.TXT{Hdr: head(dns.TypeTXT), Txt: chunks(x.Text)}}, nil
	case *HINFORecord:
		return []dns.RR{&dns.HINFO{Hdr: head(dns.TypeHINFO), Cpu: escape(x.CPU), Os: escape(x.OS)}}, nil
	case *NAPTRRecord:
		replacement := "."
		if x.Replacement != "" && x.Replacement != "." {
			if replacement, err = fqdn(x.Replacement); err != nil {
				return nil, err
			}
		}
		return []dns.RR{&dns.NAPTR{Hdr: head(dns.TypeNAPTR), Order: uint16(x.Order), Preference: uint16(x.Preference), Flags: escape(x.Flags),
			//nolint:gosec // within their bounds
			Service: escape(x.Service), Regexp: escape(x.RegularExpression), Replacement: replacement}}, nil
	case *GenericRecord:
		rr, err := naming.NewRecord(name, ttl, x.RecordType, x.Rdata)
		if err != nil {
			return nil, err
		}
		return []dns.RR{rr}, nil
	}
	return nil, nil
}

// RecordTypes gives the types of the records that a resource stands for, whatever they say; none for what is no record of DNS.
func RecordTypes(a *resource.API, r *store.Resource) (types []uint16, err error) {
	z := &zoneReader{api: a, targets: map[int64]string{r.ID: "."},
		addresses: map[int64][]netip.Addr{r.ID: {netip.IPv4Unspecified(), netip.IPv6Unspecified()}}}
	rrs, err := z.recordsOf(r)
	for _, rr := range rrs {
		types = append(types, rr.Header().Rrtype)
	}
	return types, err
}

// chunks cuts text into strings of at most 255 bytes, as the DNS library writes them.
func chunks(text string) (parts []string) {
	for part := range slices.Chunk([]byte(text), 255) {
		parts = append(parts, escape(string(part)))
	}
	return parts
}

// escape writes text as the DNS library keeps it (RFC 1035 section 5.1).
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, "\\%03d", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape undoes escape.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		if i+3 < len(text) && isDigits(text[i+1:i+4]) {
			b.WriteByte((text[i+1]-'0')*100 + (text[i+2]-'0')*10 + text[i+3] - '0')
			i += 3
			continue
		}
		i++
		b.WriteByte(text[i])
	}
	return b.String()
}

func isDigits(text string) bool {
	return strings.Trim(text, "0123456789") == ""
}
