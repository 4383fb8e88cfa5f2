package naming

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	dns "portolan/internal/base/dnsmsg"
)

// historic are record types without a text form in the DNS library, old and new ones. They are served in the generic form that all name
// servers read (RFC 3597 section 5).
var historic = map[string]struct {
	number uint16
	data   func(fields []string, origin string) ([]byte, error)
}{
	"A6":   {38, dataA6},
	"ATMA": {34, dataATMA},
	"DOA":  {259, dataDOA},
	"NSAP": {22, dataNSAP},
	"SINK": {40, dataSINK},
	"WKS":  {11, dataWKS},
	"HHIT": {67, dataBase64}, "BRID": {68, dataBase64}, // RFC 9886
	"DSYNC":  {66, dataDSYNC},
	"WALLET": {262, dataTexts},
}

// opaque are types whose data is handled as octets. They have no specified form, except for the last four, whose text the library reads
// differently (encoded.go). opaqueType is a type that the library reads as octets (RFC 6895 section 3.1).
var opaque = []uint16{dns.TypeUID, dns.TypeGID, dns.TypeUINFO, 103 /* UNSPEC */, dns.TypeNXT, dns.TypeISDN, dns.TypeAMTRELAY}

const opaqueType = "TYPE65535"

// typeNumber returns the number of a type from its mnemonic or from TYPE and the number; 0 for other texts.
func typeNumber(recordType string) uint16 {
	if kind, known := dns.StringToType[recordType]; known {
		return kind
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(recordType, "TYPE"), 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

// NewRecord parses a record's data in zone-file syntax. name is absolute, ttl is in seconds, recordType is a mnemonic or has the form
// TYPE65280.
func NewRecord(name string, ttl uint32, recordType, data string) (dns.RR, error) {
	return newRecord(name, ".", ttl, recordType, data)
}

// isGeneric reports whether data has the generic form: \#, the number of octets, and the octets (RFC 3597 section 5).
func isGeneric(data string) bool {
	fields := strings.Fields(data)
	if len(fields) < 2 || fields[0] != `\#` {
		return len(fields) == 1 && fields[0] == `\#` // the length is missing; the library rejects it
	}
	_, err := strconv.ParseUint(fields[1], 10, 16)
	return err == nil
}

// newRecord is NewRecord with an origin that completes relative names in the data.
func newRecord(name, origin string, ttl uint32, recordType, data string) (dns.RR, error) {
	generic := isGeneric(data)
	if h, ok := historic[recordType]; ok && generic {
		recordType = fmt.Sprintf("TYPE%d", h.number)
	} else if kind := typeNumber(recordType); generic && (slices.Contains(opaque, kind) ||
		(kind == dns.TypeCAA || kind == dns.TypeURI) && !packsData(data)) {
		return parseOctets(name, ttl, kind, data)
	} else if ok {
		raw, err := h.data(dataFields(data), origin)
		if err != nil {
			return nil, fmt.Errorf("%q is not valid data for a %s record: %w", data, recordType, err)
		}
		return &dns.RFC3597{Hdr: dns.RR_Header{Name: name, Rrtype: h.number, Class: dns.ClassINET, Ttl: ttl, Rdlength: uint16(len(raw))},
			Rdata: hex.EncodeToString(raw)}, nil //nolint:gosec // a line is shorter
	}
	if encode := encoderOf(recordType); encode != nil && !generic {
		octets, keeps, err := encode(dataFields(data), origin)
		if err != nil {
			return nil, fmt.Errorf("%q is not valid data for a %s record: %w", data, recordType, err)
		}
		if octets != nil && keeps {
			return &dns.RFC3597{Hdr: dns.RR_Header{Name: name, Rrtype: typeNumber(recordType), Class: dns.ClassINET, Ttl: ttl,
				Rdlength: uint16(len(octets))}, Rdata: hex.EncodeToString(octets)}, nil //nolint:gosec // a line is shorter
		}
		if octets != nil {
			data, generic = fmt.Sprintf(`\# %d %s`, len(octets), hex.EncodeToString(octets)), true
		}
	}
	if adapt := adapted[recordType]; adapt != nil && !generic {
		data = adapt(data)
	}
	rr, err := readRecord(fmt.Sprintf(". %d IN %s %s", ttl, recordType, data), origin)
	if kind := typeNumber(recordType); err != nil && generic && (kind == dns.TypeSVCB || kind == dns.TypeHTTPS) && isService(data) {
		return parseOctets(name, ttl, kind, data)
	}
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "dns: ")
		if at := strings.Index(reason, " at line"); at > 0 {
			reason = reason[:at]
		}
		return nil, fmt.Errorf("%q is not valid data for a %s record: %s", data, recordType, reason)
	}
	if dns.Type(rr.Header().Rrtype).String() != recordType && fmt.Sprintf("TYPE%d", rr.Header().Rrtype) != recordType {
		return nil, fmt.Errorf("%q is not valid data for a %s record", data, recordType)
	}
	rr.Header().Name = name
	rr, err = normalizeRecord(rr)
	if err != nil {
		return nil, fmt.Errorf("%q is not valid data for a %s record: %w", data, recordType, err)
	}
	if generic && !keepsOctets(rr, data) {
		return parseOctets(name, ttl, rr.Header().Rrtype, data)
	}
	return rr, nil
}

// parseOctets parses data in the form of RFC 3597 as octets, whatever the type.
func parseOctets(name string, ttl uint32, kind uint16, data string) (dns.RR, error) {
	rr, err := newRecord(name, ".", ttl, opaqueType, data)
	if unknown, is := rr.(*dns.RFC3597); is {
		unknown.Hdr.Rrtype = kind
	}
	return rr, err
}

// keepsOctets reports whether the library preserves a record's octets. rr was parsed from data, in the form of RFC 3597. It must have the
// same octets when packed, and when written as text and read again.
func keepsOctets(rr dns.RR, data string) bool {
	fields := dataFields(data)
	want := strings.ToLower(strings.Join(fields[min(2, len(fields)):], ""))
	same := func(rr dns.RR) bool {
		if unknown, is := rr.(*dns.RFC3597); is {
			return strings.EqualFold(unknown.Rdata, want)
		}
		var octets dns.RFC3597
		return octets.ToRFC3597(rr) == nil && strings.EqualFold(octets.Rdata, want)
	}
	again, err := dns.NewRR(rr.String())
	return err == nil && again != nil && same(rr) && same(again)
}

// ReadRecord parses one record in zone-file syntax. More than one record, and directives, are errors.
func ReadRecord(text string) (dns.RR, error) { return readRecord(text, ".") }

func readRecord(text, origin string) (dns.RR, error) {
	p := dns.NewZoneParser(strings.NewReader(text+"\n\n"), origin, "") // after IPSECKEY, the library reads the end of the line twice
	p.SetDefaultTTL(DefaultTTL)
	if strings.HasPrefix(strings.TrimSpace(text), "$") {
		return nil, fmt.Errorf("dns: %.40q is a directive, not a record", text)
	}
	rr, ok := p.Next()
	if err := p.Err(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("dns: %.40q is a directive, not a record", text)
	}
	if _, more := p.Next(); more || p.Err() != nil {
		return nil, errors.New("dns: it has more than one record")
	}
	return rr, nil
}

// DefaultTTL is the time to live of records without one, in seconds.
const DefaultTTL = 3600

// packName returns a name in wire format.
func packName(name string) ([]byte, error) {
	b := make([]byte, 256)
	n, err := dns.PackDomainName(dns.Fqdn(name), b, 0, nil, false)
	return b[:n], err
}

// dataA6 parses a prefix length, the address suffix and the name of the prefix (RFC 2874 section 3.1).
func dataA6(fields []string, origin string) ([]byte, error) {
	if len(fields) == 0 {
		return nil, fmt.Errorf("expected a prefix length")
	}
	length, err := strconv.ParseUint(fields[0], 10, 8)
	if err != nil || length > 128 {
		return nil, fmt.Errorf("the prefix length must be between 0 and 128")
	}
	b, rest := []byte{byte(length)}, fields[1:]
	if length < 128 {
		if len(rest) == 0 {
			return nil, fmt.Errorf("expected an address suffix")
		}
		a, err := netip.ParseAddr(rest[0])
		if err != nil || !a.Is6() || a.Zone() != "" {
			return nil, fmt.Errorf("%q is not an IPv6 address", rest[0])
		}
		sixteen := a.As16()
		suffix := sixteen[length/8:]
		suffix[0] &= 0xff >> (length % 8)
		b, rest = append(b, suffix...), rest[1:]
	}
	if (length > 0) != (len(rest) == 1) || len(rest) > 1 {
		return nil, fmt.Errorf("a prefix name must follow a prefix length above 0, and is not allowed after 0")
	}
	if length > 0 {
		packed, err := packTarget(rest[0], origin)
		if err != nil {
			return nil, err
		}
		b = append(b, packed...)
	}
	return b, nil
}

// dataNSAP parses hexadecimal digits with dots anywhere (RFC 1706 section 4).
func dataNSAP(fields []string, _ string) ([]byte, error) {
	if len(fields) != 1 || !strings.HasPrefix(strings.ToLower(fields[0]), "0x") {
		return nil, fmt.Errorf("expected 0x and hexadecimal digits")
	}
	return hex.DecodeString(strings.ReplaceAll(fields[0][2:], ".", ""))
}

// dataSINK parses a meaning, a coding, a subcoding and data in base64.
func dataSINK(fields []string, _ string) ([]byte, error) {
	if len(fields) < 3 {
		return nil, fmt.Errorf("expected a meaning, a coding and a subcoding")
	}
	var b []byte
	for _, text := range fields[:3] {
		n, err := strconv.ParseUint(text, 10, 8)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number from 0 to 255", text)
		}
		b = append(b, byte(n))
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(fields[3:], ""))
	return append(b, data...), err
}

// dataBase64 parses data in base64.
func dataBase64(fields []string, _ string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(fields, ""))
}

// dataDSYNC parses a type, a scheme, a port and a target (RFC 9859 section 2.2).
func dataDSYNC(fields []string, origin string) ([]byte, error) {
	if len(fields) != 4 {
		return nil, fmt.Errorf("expected a type, a scheme, a port and a target")
	}
	kind := typeNumber(strings.ToUpper(fields[0]))
	if kind == 0 {
		return nil, fmt.Errorf("%q is not a record type", fields[0])
	}
	scheme := fields[1]
	if strings.EqualFold(scheme, "NOTIFY") {
		scheme = "1"
	}
	number, err := strconv.ParseUint(scheme, 10, 8)
	if err != nil {
		return nil, fmt.Errorf("%q is not a scheme: use NOTIFY or a number from 0 to 255", fields[1])
	}
	port, err := strconv.ParseUint(fields[2], 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q is not a port", fields[2])
	}
	target, err := packTarget(fields[3], origin)
	if err != nil {
		return nil, err
	}
	b := append(binary.BigEndian.AppendUint16(nil, kind), byte(number))
	return append(binary.BigEndian.AppendUint16(b, uint16(port)), target...), nil
}

// packTarget returns a name in data in wire format. A relative name is completed with origin.
func packTarget(name, origin string) ([]byte, error) {
	switch {
	case name == "@":
		name = origin
	case !isAbsolute(name):
		name = dns.Fqdn(Join(name, strings.TrimSuffix(origin, ".")))
	}
	return packName(name)
}

// dataTexts parses texts of at most 255 octets each, as in TXT records.
func dataTexts(fields []string, _ string) ([]byte, error) {
	rr, err := readRecord(". 0 IN TXT "+strings.Join(fields, " "), ".")
	if err != nil {
		return nil, err
	}
	var unknown dns.RFC3597
	if err := unknown.ToRFC3597(rr); err != nil {
		return nil, err
	}
	return hex.DecodeString(unknown.Rdata)
}

// dataATMA parses an E.164 number that starts with +, or hexadecimal digits with dots anywhere.
func dataATMA(fields []string, _ string) ([]byte, error) {
	text := strings.ReplaceAll(strings.Join(fields, ""), ".", "")
	if number, is := strings.CutPrefix(text, "+"); is && number != "" {
		return append([]byte{1}, number...), nil
	}
	data, err := hex.DecodeString(text)
	return append([]byte{0}, data...), err
}

// dataDOA parses an enterprise, a type, a location, a media type and data in base64, or - for no data (draft-durand-doa-over-dns).
func dataDOA(fields []string, _ string) ([]byte, error) {
	if len(fields) < 5 {
		return nil, fmt.Errorf("expected an enterprise, a type, a location, a media type and data")
	}
	var b []byte
	for i, bits := range []int{32, 32, 8} {
		n, err := strconv.ParseUint(fields[i], 10, bits)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of %d bits", fields[i], bits)
		}
		if bits == 8 {
			b = append(b, byte(n))
		} else {
			b = binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // of 32 bits
		}
	}
	media, err := rawOctets(fields[3])
	if err != nil {
		return nil, err
	}
	if len(media) > 255 {
		return nil, fmt.Errorf("the media type is longer than 255 octets")
	}
	b = append(append(b, byte(len(media))), media...)
	text := strings.Join(fields[4:], "")
	if text == "-" {
		return b, nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return append(b, data...), err
}

// ipProtocols maps the names of protocols to their numbers, as in RFC 1010 for WKS records.
var ipProtocols = map[string]uint64{"icmp": 1, "igmp": 2, "ggp": 3, "tcp": 6, "egp": 8, "udp": 17, "rdp": 27}

// dataWKS parses an address, a protocol and services.
func dataWKS(fields []string, _ string) ([]byte, error) {
	if len(fields) < 2 {
		return nil, fmt.Errorf("expected an address and a protocol")
	}
	a, err := netip.ParseAddr(fields[0])
	if err != nil || !a.Is4() {
		return nil, fmt.Errorf("%q is not an IPv4 address", fields[0])
	}
	protocol, ok := ipProtocols[strings.ToLower(fields[1])]
	if !ok {
		if protocol, err = strconv.ParseUint(fields[1], 10, 8); err != nil {
			return nil, fmt.Errorf("%q is not a protocol", fields[1])
		}
	}
	var bits []byte
	for _, text := range fields[2:] {
		n, err := strconv.ParseUint(text, 10, 16)
		port := uint16(n) //nolint:gosec // of 16 bits
		if err != nil {
			if port, ok = portOf(strings.ToLower(fields[1]), strings.ToLower(text)); !ok {
				return nil, fmt.Errorf("%q is not a service; give its port", text)
			}
		}
		for len(bits) <= int(port/8) {
			bits = append(bits, 0)
		}
		bits[port/8] |= 0x80 >> (port % 8)
	}
	return append(append(a.AsSlice(), byte(protocol)), bits...), nil
}
