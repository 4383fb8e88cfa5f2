package dhcppublish

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/manager/serverconfig"
)

// subCodes are the options that are sub-options of another one, with their codes in it: option 122 (RFC 3495) and option 63 (RFC 2242).
var subCodes = map[string]byte{"cablelabs.primary-dhcp-server": 1, "cablelabs.secondary-dhcp-server": 2, provisioningServer: 3,
	"cablelabs.as-backoff-retry": 4, "cablelabs.ap-backoff-retry": 5, "cablelabs.kerberos-realm-name": 6,
	"cablelabs.ticket-granting-server-utilization": 7, "cablelabs.provisioning-timer-value": 8,
	"nwip.nsq-broadcast": 5, "nwip.preferred-dss": 6, "nwip.nearest-nwip-server": 7, "nwip.auto-retries": 8, "nwip.auto-retry-delay": 9,
	"nwip.1-1-compatibility": 10, "nwip.primary-dss": 11}

// subLengths are the lengths of sub-options with a fixed number of values: nominal timeout, maximum timeout and retries (RFC 3495 sections
// 5.3 and 5.4).
var subLengths = map[string]int{"cablelabs.as-backoff-retry": 12, "cablelabs.ap-backoff-retry": 12}

// nwipCode is the option with the sub-options of NetWare/IP. nwipExists is its first sub-option: the option contains all information
// (RFC 2242 section 3).
const nwipCode = 63

var nwipExists = []byte{2, 0}

// provisioningServer is a sub-option that contains an address or a name (RFC 3495 section 5.2).
const provisioningServer = "cablelabs.provisioning-server"

// encodeOption returns the octets of the value of a client option. text is the format of its definition.
func encodeOption(name string, v6 bool, text, value json.RawMessage) ([]byte, error) {
	format, err := serverconfig.ParseFormat(text)
	if err != nil {
		return nil, err
	}
	e := optionEncoder{name: name, v6: v6}
	if err := format.Each(value, e.add); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return e.finish()
}

// optionEncoder collects the octets of a value.
type optionEncoder struct {
	name string
	v6   bool
	out  []byte
}

// lengthPrefixed are the options of lists in which a length of two octets precedes each text.
var lengthPrefixed = map[string]bool{"v4-sztp-redirect": true, "v6-sztp-redirect": true, "bootfile-param": true}

// leadingOctet are the IPv4 options that begin with another octet: that for addresses (RFC 3361), or that for values that are not mandatory
// (RFC 2610).
var leadingOctet = map[string]byte{"sip-server": 1, "slp-directory-agent": 0, "slp-service-scope": 0}

// add appends one value of a kind.
func (e *optionEncoder) add(kind string, raw json.RawMessage) error {
	if len(e.out) == 0 {
		if first, is := leadingOctet[e.name]; is && !e.v6 {
			e.out = append(e.out, first)
		}
	}
	number := func() (n int64, err error) { return n, json.Unmarshal(raw, &n) }
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return e.addText(kind, text)
	}
	if kind == "boolean" {
		var on bool
		if err := json.Unmarshal(raw, &on); err != nil {
			return err
		}
		e.out = append(e.out, map[bool]byte{true: 1}[on])
		return nil
	}
	n, err := number()
	if err != nil {
		return err
	}
	switch kind {
	case "integer_8", "unsigned_integer_8":
		e.out = append(e.out, byte(n))
	case "integer_16", "unsigned_integer_16":
		e.out = binary.BigEndian.AppendUint16(e.out, uint16(n)) //nolint:gosec // the definition limits it
	default:
		e.out = binary.BigEndian.AppendUint32(e.out, uint32(n)) //nolint:gosec // the definition limits it
	}
	return nil
}

// addText appends a text of a kind.
func (e *optionEncoder) addText(kind, text string) error {
	switch kind {
	case "ipv4_address", "ipv6_address", "ip_address", "ipv4_mask":
		a, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		e.out = append(e.out, a.AsSlice()...)
	case "hex":
		data, is := serverconfig.HexOctets(text)
		if !is {
			return fmt.Errorf("%q is not hexadecimal", text)
		}
		e.out = append(e.out, data...)
	case "string":
		data, is := hexOctets(text)
		if !is {
			data = []byte(text)
		}
		e.out = append(e.out, data...)
	case "domain_name":
		name, err := wireName(text)
		e.out = append(e.out, name...)
		return err
	case "route":
		return e.addRoute(text)
	case "ipv4_prefix", "ipv6_prefix":
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return err
		}
		octets := (p.Bits() + 7) / 8
		e.out = append(append(e.out, byte(p.Bits())), p.Addr().AsSlice()[:octets]...)
	default:
		if lengthPrefixed[e.name] {
			e.out = binary.BigEndian.AppendUint16(e.out, uint16(len(text))) //nolint:gosec // a text has at most 4,000 octets
		} else if e.v6 && e.name == "ntp-server" {
			return e.addNTPServer(text)
		}
		e.out = append(e.out, text...)
	}
	return nil
}

// addRoute appends a route as RFC 3442 encodes it.
func (e *optionEncoder) addRoute(text string) error {
	prefix, gateway, _ := strings.Cut(text, ":")
	p, err := netip.ParsePrefix(prefix)
	if err != nil {
		return err
	}
	via, err := netip.ParseAddr(gateway)
	if err != nil {
		return err
	}
	e.out = append(append(e.out, byte(p.Bits())), p.Addr().AsSlice()[:(p.Bits()+7)/8]...)
	e.out = append(e.out, via.AsSlice()...)
	return nil
}

// addNTPServer appends a server as a sub-option of RFC 5908: an address, a multicast address, or a name.
func (e *optionEncoder) addNTPServer(text string) error {
	code, data := uint16(1), []byte(nil)
	if a, err := netip.ParseAddr(text); err == nil {
		if a.IsMulticast() {
			code = 2
		}
		data = a.AsSlice()
	} else if code = 3; true {
		if data, err = wireName(text); err != nil {
			return err
		}
	}
	e.out = binary.BigEndian.AppendUint16(e.out, code)
	e.out = append(binary.BigEndian.AppendUint16(e.out, uint16(len(data))), data...) //nolint:gosec // a name has at most 255 octets
	return nil
}

// finish returns the octets. A sub-option gets its head.
func (e *optionEncoder) finish() ([]byte, error) {
	if len(e.out) == 0 {
		return nil, fmt.Errorf("%s has an empty value, which cannot be sent", e.name)
	}
	code, is := subCodes[e.name]
	if !is {
		return e.out, nil
	}
	if e.name == provisioningServer {
		if a, err := netip.ParseAddr(string(e.out)); err == nil && a.Is4() {
			e.out = append([]byte{1}, a.AsSlice()...)
		} else {
			name, err := wireName(string(e.out))
			if err != nil {
				return nil, err
			}
			e.out = append([]byte{0}, name...)
		}
	}
	if n, fixed := subLengths[e.name]; fixed && len(e.out) != n {
		return nil, fmt.Errorf("%s has %d octets, and requires %d", e.name, len(e.out), n)
	}
	if len(e.out) > 255 {
		return nil, fmt.Errorf("%s has %d octets, more than 255", e.name, len(e.out))
	}
	return append([]byte{code, byte(len(e.out))}, e.out...), nil
}

// wireName returns a domain name as labels with lengths (RFC 1035 section 3.1).
func wireName(text string) ([]byte, error) {
	name, err := naming.ASCII(naming.Clean(text))
	if err != nil {
		return nil, err
	}
	var out []byte
	if name != "" && name != "." {
		for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
			if len(label) == 0 || len(label) > 63 {
				return nil, fmt.Errorf("%q is not a domain name", text)
			}
			out = append(append(out, byte(len(label))), label...)
		}
	}
	if out = append(out, 0); len(out) > 255 {
		return nil, fmt.Errorf("%q has more than 255 octets", text)
	}
	return out, nil
}

// hexOctets returns the octets of a text that is hexadecimal with a prefix 0x or with colons between all octets.
func hexOctets(text string) ([]byte, bool) {
	digits, prefixed := strings.CutPrefix(text, "0x")
	plain := strings.ReplaceAll(digits, ":", "")
	if !prefixed && (len(text) < 5 || strings.Count(text, ":") != len(plain)/2-1) {
		return nil, false
	}
	data, err := hex.DecodeString(plain)
	return data, err == nil && len(data) > 0
}
