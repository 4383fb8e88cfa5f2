package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// RecordsOf returns the DNS records of a resource; none for an external host.
func (z *ZoneReader) RecordsOf(r *store.Resource) ([]dns.RR, error) {
	name, err := FQDN(r.Key)
	if err != nil {
		return nil, err
	}
	o, err := z.API.Object(r)
	if err != nil {
		return nil, err
	}
	a, ok := o.(ComparableRecord)
	if !ok { // an external host
		return nil, nil
	}
	ttl := uint32(DefaultTTL)
	if given := a.CommonFields().TTL; given != nil {
		ttl = uint32(*given) //nolint:gosec // the field's bounds are those of a TTL
	}
	head := func(t uint16) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: t, Class: dns.ClassINET, Ttl: ttl}
	}
	target, err := FQDN(z.Targets[r.ID])
	if err != nil {
		return nil, err
	}
	switch x := o.(type) {
	case *HostRecord:
		var rrs []dns.RR
		for _, addr := range z.Addresses[r.ID] {
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
			Target: EscapeText(x.Target)}}, nil //nolint:gosec // within their bounds
	case *SVCBRecord:
		rr, err := x.data(head(dns.TypeSVCB), target)
		return []dns.RR{&rr}, err
	case *HTTPSRecord:
		rr, err := x.data(head(dns.TypeHTTPS), target)
		return []dns.RR{&dns.HTTPS{SVCB: rr}}, err
	case *TXTRecord:
		return []dns.RR{&dns.TXT{Hdr: head(dns.TypeTXT), Txt: TextChunks(x.Text)}}, nil
	case *HINFORecord:
		return []dns.RR{&dns.HINFO{Hdr: head(dns.TypeHINFO), Cpu: EscapeText(x.CPU), Os: EscapeText(x.OS)}}, nil
	case *NAPTRRecord:
		replacement := "."
		if x.Replacement != "" && x.Replacement != "." {
			if replacement, err = FQDN(x.Replacement); err != nil {
				return nil, err
			}
		}
		return []dns.RR{&dns.NAPTR{Hdr: head(dns.TypeNAPTR), Order: uint16(x.Order), Preference: uint16(x.Preference), Flags: EscapeText(x.Flags),
			//nolint:gosec // within their bounds
			Service: EscapeText(x.Service), Regexp: EscapeText(x.RegularExpression), Replacement: replacement}}, nil
	case *GenericRecord:
		rr, err := naming.NewRecord(name, ttl, x.RecordType, x.Rdata)
		if err != nil {
			return nil, err
		}
		return []dns.RR{rr}, nil
	}
	return nil, nil
}

// RecordTypes returns the DNS types of the records of a resource, independent of their data; none if the resource has no DNS records.
func RecordTypes(a *resource.API, r *store.Resource) (types []uint16, err error) {
	z := &ZoneReader{API: a, Targets: map[int64]string{r.ID: "."},
		Addresses: map[int64][]netip.Addr{r.ID: {netip.IPv4Unspecified(), netip.IPv6Unspecified()}}}
	rrs, err := z.RecordsOf(r)
	for _, rr := range rrs {
		types = append(types, rr.Header().Rrtype)
	}
	return types, err
}

// TextChunks splits text into strings of at most 255 bytes, in the escaped form of the DNS library.
func TextChunks(text string) (parts []string) {
	for part := range slices.Chunk([]byte(text), 255) {
		parts = append(parts, EscapeText(string(part)))
	}
	return parts
}

// EscapeText returns text in the escaped form of the DNS library (RFC 1035 section 5.1).
func EscapeText(text string) string {
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

// UnescapeText reverses EscapeText.
func UnescapeText(text string) string {
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

// IsText reports whether a field can store the texts: valid UTF-8 without control characters.
func IsText(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool {
		return !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl)
	})
}
