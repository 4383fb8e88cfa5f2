package naming

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// Types of records that the DNS library has no text for; they are served in the form that every name
// server reads (RFC 3597 section 5).
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
}

// NewRecord reads a record's data in zone-file syntax. name is absolute, ttl in seconds, recordType a mnemonic or of the form TYPE65280.
func NewRecord(name string, ttl uint32, recordType, data string) (dns.RR, error) {
	return newRecord(name, ".", ttl, recordType, data)
}

// newRecord is NewRecord of data whose relative names are completed by an origin.
func newRecord(name, origin string, ttl uint32, recordType, data string) (dns.RR, error) {
	generic := strings.HasPrefix(strings.TrimSpace(data), `\#`) // RFC 3597 section 5, of any type
	if h, ok := historic[recordType]; ok && generic {
		recordType = fmt.Sprintf("TYPE%d", h.number)
	} else if ok {
		raw, err := h.data(strings.Fields(data), origin)
		if err != nil {
			return nil, fmt.Errorf("%q is no data of a record %s: %w", data, recordType, err)
		}
		return &dns.RFC3597{Hdr: dns.RR_Header{Name: name, Rrtype: h.number, Class: dns.ClassINET, Ttl: ttl, Rdlength: uint16(len(raw))},
			Rdata: hex.EncodeToString(raw)}, nil //nolint:gosec // a line is shorter
	}
	if adapt := adapted[recordType]; adapt != nil && !generic {
		data = adapt(data)
	}
	rr, err := readRecord(fmt.Sprintf(". %d IN %s %s", ttl, recordType, data), origin)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "dns: ")
		if at := strings.Index(reason, " at line"); at > 0 {
			reason = reason[:at]
		}
		return nil, fmt.Errorf("%q is no data of a record %s: %s", data, recordType, reason)
	}
	if dns.Type(rr.Header().Rrtype).String() != recordType && fmt.Sprintf("TYPE%d", rr.Header().Rrtype) != recordType {
		return nil, fmt.Errorf("%q is no data of a record %s", data, recordType)
	}
	rr.Header().Name = name
	rr, err = normal(rr)
	if err != nil {
		return nil, fmt.Errorf("%q is no data of a record %s: %w", data, recordType, err)
	}
	return rr, nil
}

// adapted gives data in the one form in which the DNS library reads it.
var adapted = map[string]func(data string) string{
	"X25":  func(data string) string { return strings.Trim(data, `"`) },
	"GPOS": func(data string) string { return strings.ReplaceAll(data, `"`, "") },
	"NID":  groupsPadded, "L64": groupsPadded,
}

// groupsPadded writes all groups of a locator or identifier with four digits (RFC 6742 section 2.1.2 lets zeros in front of one be left out).
func groupsPadded(data string) string {
	preference, locator, _ := strings.Cut(strings.TrimSpace(data), " ")
	groups := strings.Split(strings.TrimSpace(locator), ":")
	for i, group := range groups {
		groups[i] = strings.Repeat("0", max(0, 4-len(group))) + group
	}
	return preference + " " + strings.Join(groups, ":")
}

// ReadRecord reads one record in zone-file syntax, and refuses whatever stands behind it. Directives are none: nothing else is read.
func ReadRecord(text string) (dns.RR, error) { return readRecord(text, ".") }

func readRecord(text, origin string) (dns.RR, error) {
	p := dns.NewZoneParser(strings.NewReader(text+"\n\n"), origin, "") // behind IPSECKEY the library reads the end of the line twice
	p.SetDefaultTTL(DefaultTTL)
	if strings.HasPrefix(strings.TrimSpace(text), "$") {
		return nil, errors.New("dns: it is no record")
	}
	rr, ok := p.Next()
	if err := p.Err(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("dns: it is no record")
	}
	if _, more := p.Next(); more || p.Err() != nil {
		return nil, errors.New("dns: it is more than one record")
	}
	return rr, nil
}

// DefaultTTL is the time to live, in seconds, of records that say none.
const DefaultTTL = 3600

// packName gives a name as the wire has it.
func packName(name string) ([]byte, error) {
	b := make([]byte, 256)
	n, err := dns.PackDomainName(dns.Fqdn(name), b, 0, nil, false)
	return b[:n], err
}

// dataA6 reads a prefix length, the rest of an address and the name that has its beginning (RFC 2874
// section 3.1).
func dataA6(fields []string, origin string) ([]byte, error) {
	if len(fields) == 0 {
		return nil, fmt.Errorf("expected a prefix length")
	}
	length, err := strconv.ParseUint(fields[0], 10, 8)
	if err != nil || length > 128 {
		return nil, fmt.Errorf("the prefix length is none from 0 to 128")
	}
	b, rest := []byte{byte(length)}, fields[1:]
	if length < 128 {
		if len(rest) == 0 {
			return nil, fmt.Errorf("expected an address suffix")
		}
		a, err := netip.ParseAddr(rest[0])
		if err != nil || !a.Is6() || a.Zone() != "" {
			return nil, fmt.Errorf("%q is no IPv6 address", rest[0])
		}
		sixteen := a.As16()
		suffix := sixteen[length/8:]
		suffix[0] &= 0xff >> (length % 8)
		b, rest = append(b, suffix...), rest[1:]
	}
	if (length > 0) != (len(rest) == 1) || len(rest) > 1 {
		return nil, fmt.Errorf("a prefix name stands behind a prefix length above 0, and nowhere else")
	}
	if length > 0 {
		name := rest[0]
		if !absolute(name) {
			name = dns.Fqdn(Join(name, strings.TrimSuffix(origin, ".")))
		}
		packed, err := packName(name)
		if err != nil {
			return nil, err
		}
		b = append(b, packed...)
	}
	return b, nil
}

// dataNSAP reads hexadecimal digits with dots anywhere (RFC 1706 section 4).
func dataNSAP(fields []string, _ string) ([]byte, error) {
	if len(fields) != 1 || !strings.HasPrefix(strings.ToLower(fields[0]), "0x") {
		return nil, fmt.Errorf("expected 0x and hexadecimal digits")
	}
	return hex.DecodeString(strings.ReplaceAll(fields[0][2:], ".", ""))
}

// dataSINK reads a meaning, a coding, a subcoding and data in base 64.
func dataSINK(fields []string, _ string) ([]byte, error) {
	if len(fields) < 3 {
		return nil, fmt.Errorf("expected a meaning, a coding and a subcoding")
	}
	var b []byte
	for _, text := range fields[:3] {
		n, err := strconv.ParseUint(text, 10, 8)
		if err != nil {
			return nil, fmt.Errorf("%q is no number from 0 to 255", text)
		}
		b = append(b, byte(n))
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(fields[3:], ""))
	return append(b, data...), err
}

// dataATMA reads an E.164 number with + in front, or hexadecimal digits with dots anywhere.
func dataATMA(fields []string, _ string) ([]byte, error) {
	text := strings.ReplaceAll(strings.Join(fields, ""), ".", "")
	if number, is := strings.CutPrefix(text, "+"); is && number != "" {
		return append([]byte{1}, number...), nil
	}
	data, err := hex.DecodeString(text)
	return append([]byte{0}, data...), err
}

// dataDOA reads an enterprise, a type, a location, a media type and data in base 64, or - for none (draft-durand-doa-over-dns).
func dataDOA(fields []string, _ string) ([]byte, error) {
	if len(fields) < 5 {
		return nil, fmt.Errorf("expected an enterprise, a type, a location, a media type and data")
	}
	var b []byte
	for i, bits := range []int{32, 32, 8} {
		n, err := strconv.ParseUint(fields[i], 10, bits)
		if err != nil {
			return nil, fmt.Errorf("%q is no number of %d bits", fields[i], bits)
		}
		if bits == 8 {
			b = append(b, byte(n))
		} else {
			b = binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // of 32 bits
		}
	}
	media := strings.Trim(fields[3], `"`)
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

// services are ports by the names that zone files have for them (RFC 1035 section 3.4.2).
var services = map[string]uint16{"ftp-data": 20, "ftp": 21, "ssh": 22, "telnet": 23, "smtp": 25, "time": 37, "nameserver": 42, "whois": 43,
	"domain": 53, "tftp": 69, "gopher": 70, "finger": 79, "http": 80, "kerberos": 88, "pop3": 110, "sunrpc": 111, "nntp": 119, "ntp": 123,
	"imap": 143, "snmp": 161, "https": 443}

// dataWKS reads an address, a protocol and the services that are there.
func dataWKS(fields []string, _ string) ([]byte, error) {
	if len(fields) < 2 {
		return nil, fmt.Errorf("expected an address and a protocol")
	}
	a, err := netip.ParseAddr(fields[0])
	if err != nil || !a.Is4() {
		return nil, fmt.Errorf("%q is no IPv4 address", fields[0])
	}
	protocols := map[string]uint64{"tcp": 6, "udp": 17}
	protocol, ok := protocols[strings.ToLower(fields[1])]
	if !ok {
		if protocol, err = strconv.ParseUint(fields[1], 10, 8); err != nil {
			return nil, fmt.Errorf("%q is no protocol", fields[1])
		}
	}
	var bits []byte
	for _, text := range fields[2:] {
		port, ok := services[strings.ToLower(text)]
		if !ok {
			n, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("%q is no service: give its port", text)
			}
			port = uint16(n)
		}
		for len(bits) <= int(port/8) {
			bits = append(bits, 0)
		}
		bits[port/8] |= 0x80 >> (port % 8)
	}
	return append(append(a.AsSlice(), byte(protocol)), bits...), nil
}
