package naming

import (
	"encoding/base64"
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
	data   func(fields []string) ([]byte, error)
}{
	"A6":   {38, dataA6},
	"NSAP": {22, dataNSAP},
	"SINK": {40, dataSINK},
	"WKS":  {11, dataWKS},
}

// NewRecord reads a record's data in zone-file syntax. name is absolute, ttl in seconds.
func NewRecord(name string, ttl uint32, recordType, data string) (dns.RR, error) {
	if h, ok := historic[recordType]; ok {
		raw, err := h.data(strings.Fields(data))
		if err != nil {
			return nil, fmt.Errorf("%q is no data of a record %s: %w", data, recordType, err)
		}
		return &dns.RFC3597{Hdr: dns.RR_Header{Name: name, Rrtype: h.number, Class: dns.ClassINET, Ttl: ttl, Rdlength: uint16(len(raw))},
			Rdata: hex.EncodeToString(raw)}, nil //nolint:gosec // a line is shorter
	}
	if recordType == "X25" { // which the library reads without quotes alone
		data = strings.Trim(data, `"`)
	}
	rr, err := ReadRecord(fmt.Sprintf("%s %d IN %s %s", name, ttl, recordType, data))
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "dns: ")
		if at := strings.Index(reason, " at line"); at > 0 {
			reason = reason[:at]
		}
		return nil, fmt.Errorf("%q is no data of a record %s: %s", data, recordType, reason)
	}
	if dns.TypeToString[rr.Header().Rrtype] != recordType {
		return nil, fmt.Errorf("%q is no data of a record %s", data, recordType)
	}
	return rr, nil
}

// ReadRecord reads one record in zone-file syntax, and refuses whatever stands behind it. Directives are none: nothing else is read.
func ReadRecord(text string) (dns.RR, error) {
	p := dns.NewZoneParser(strings.NewReader(text), ".", "")
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
func dataA6(fields []string) ([]byte, error) {
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
		name, err := packName(rest[0])
		if err != nil {
			return nil, err
		}
		b = append(b, name...)
	}
	return b, nil
}

// dataNSAP reads hexadecimal digits with dots anywhere (RFC 1706 section 4).
func dataNSAP(fields []string) ([]byte, error) {
	if len(fields) != 1 || !strings.HasPrefix(strings.ToLower(fields[0]), "0x") {
		return nil, fmt.Errorf("expected 0x and hexadecimal digits")
	}
	return hex.DecodeString(strings.ReplaceAll(fields[0][2:], ".", ""))
}

// dataSINK reads a meaning, a coding, a subcoding and data in base 64.
func dataSINK(fields []string) ([]byte, error) {
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

// services are ports by the names that zone files have for them (RFC 1035 section 3.4.2).
var services = map[string]uint16{"ftp-data": 20, "ftp": 21, "ssh": 22, "telnet": 23, "smtp": 25, "time": 37, "nameserver": 42, "whois": 43,
	"domain": 53, "tftp": 69, "gopher": 70, "finger": 79, "http": 80, "kerberos": 88, "pop3": 110, "sunrpc": 111, "nntp": 119, "ntp": 123,
	"imap": 143, "snmp": 161, "https": 443}

// dataWKS reads an address, a protocol and the services that are there.
func dataWKS(fields []string) ([]byte, error) {
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
