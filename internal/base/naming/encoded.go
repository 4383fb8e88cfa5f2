package naming

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	dns "portolan/internal/base/dnsmsg"
)

// encoder encodes the data of a record as octets. It returns nil if the library can parse the data. keeps is true if the library interprets
// these octets differently from BIND, so that the record must be kept as octets.
type encoder func(fields []string, origin string) (octets []byte, keeps bool, err error)

// encoderOf returns the encoder of a record type whose text the DNS library reads differently from BIND; nil for other types.
func encoderOf(recordType string) encoder {
	switch recordType {
	case "CAA":
		return encodeCAA
	case "URI":
		return encodeURI
	case "NXT":
		return encodeNXT
	case "ISDN":
		return encodeISDN
	case "AMTRELAY":
		return encodeRelay
	case "APL":
		return encodePrefixes
	case "GPOS":
		return encodePosition
	case "NSEC3":
		return encodeHashed
	case "SVCB", "HTTPS":
		return encodeService
	}
	return nil
}

// rawOctets returns the octets of a token, without its quotation marks and with the escapes \c and \ddd decoded (RFC 1035 section 5.1).
func rawOctets(token string) ([]byte, error) {
	if len(token) > 1 && token[0] == '"' && token[len(token)-1] == '"' {
		token = token[1 : len(token)-1]
	}
	octets := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		if token[i] != '\\' {
			octets = append(octets, token[i])
			continue
		}
		if i++; i == len(token) {
			return nil, fmt.Errorf("%q ends with a backslash", token)
		}
		if token[i] < '0' || token[i] > '9' {
			octets = append(octets, token[i])
			continue
		}
		value, err := strconv.ParseUint(token[i:min(i+3, len(token))], 10, 8)
		if err != nil || i+3 > len(token) {
			return nil, fmt.Errorf("%q has an invalid escape; use a backslash and three digits up to 255", token)
		}
		octets = append(octets, byte(value))
		i += 2
	}
	return octets, nil
}

// numbersOf parses fields as numbers with the given sizes in bits.
func numbersOf(fields []string, bits ...int) (octets []byte, err error) {
	if len(fields) < len(bits) {
		return nil, fmt.Errorf("expected %d numbers", len(bits))
	}
	for i, size := range bits {
		n, err := strconv.ParseUint(fields[i], 10, size)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is not a number of %d bits", fields[i], size)
		case size == 8:
			octets = append(octets, byte(n))
		default:
			octets = binary.BigEndian.AppendUint16(octets, uint16(n)) //nolint:gosec // of 16 bits
		}
	}
	return octets, nil
}

// maxPacked is the maximum length of a record's last text that the library can write, in octets.
const maxPacked = 1000

// packsUnchanged reports whether the library writes the last text of a record unchanged. It decodes backslashes in the text again.
func packsUnchanged(octets []byte) bool {
	return len(octets) > 0 && len(octets) <= maxPacked && bytes.IndexByte(octets, '\\') < 0
}

// packsData applies packsUnchanged to data in the form of RFC 3597, as far as that can be seen from its digits.
func packsData(data string) bool {
	fields := dataFields(data)
	octets, err := hex.DecodeString(strings.Join(fields[min(2, len(fields)):], ""))
	return err != nil || packsUnchanged(octets) && (len(octets) < 3 || len(octets) > 2+int(octets[1]))
}

// encodeCAA encodes flags, a tag and a value of any length (RFC 8659 section 4.1).
func encodeCAA(fields []string, _ string) ([]byte, bool, error) {
	if len(fields) != 3 {
		return nil, false, nil // the library reports the missing field
	}
	octets, err := numbersOf(fields, 8)
	if err != nil {
		return nil, false, err
	}
	tag, err := rawOctets(fields[1])
	value, e := rawOctets(fields[2])
	if err = errors.Join(err, e); err != nil || len(tag) == 0 || len(tag) > 255 || strings.ContainsFunc(string(tag), func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return nil, false, errors.Join(err, fmt.Errorf("%q is not a tag", fields[1]))
	}
	return append(append(append(octets, byte(len(tag))), tag...), value...), !packsUnchanged(value), nil
}

// encodeURI encodes a priority, a weight and a target, which is limited only by the size of the data (RFC 7553 section 4.4).
func encodeURI(fields []string, _ string) ([]byte, bool, error) {
	if len(fields) != 3 {
		return nil, false, nil
	}
	octets, err := numbersOf(fields, 16, 16)
	if err != nil {
		return nil, false, err
	}
	target, err := rawOctets(fields[2])
	return append(octets, target...), !packsUnchanged(target), err
}

// encodeNXT encodes the next name and a bit map of types below 128 (RFC 2535 section 5.2).
func encodeNXT(fields []string, origin string) ([]byte, bool, error) {
	if len(fields) == 0 {
		return nil, true, errors.New("expected a name")
	}
	octets, err := packTarget(fields[0], origin)
	if err != nil {
		return nil, true, err
	}
	var bits [16]byte
	last := -1
	for _, one := range fields[1:] {
		kind := typeNumber(strings.ToUpper(one))
		if n, err := strconv.ParseUint(one, 10, 16); err == nil {
			kind = uint16(n)
		}
		if kind == 0 || kind >= 128 {
			return nil, true, fmt.Errorf("%q is not a type below 128", one)
		}
		bits[kind/8] |= 0x80 >> (kind % 8)
		last = max(last, int(kind/8))
	}
	return append(octets, bits[:last+1]...), true, nil
}

// encodeISDN encodes an address and an optional subaddress (RFC 1183 section 3.2).
func encodeISDN(fields []string, origin string) ([]byte, bool, error) {
	if len(fields) == 0 || len(fields) > 2 {
		return nil, true, errors.New("expected an address and an optional subaddress")
	}
	octets, err := dataTexts(fields, origin)
	return octets, true, err
}

// encodeRelay encodes a precedence, the discovery bit, a type and a relay (RFC 8777 section 4.3.1). The library omits the relay if the bit
// is set.
func encodeRelay(fields []string, origin string) ([]byte, bool, error) {
	if len(fields) != 4 || fields[1] != "1" {
		return nil, false, nil
	}
	octets, err := numbersOf([]string{fields[0], fields[2]}, 8, 8)
	if err != nil || octets[1] > 127 {
		return nil, true, errors.Join(err, fmt.Errorf("%q is not a relay type", fields[2]))
	}
	kind := octets[1]
	octets[1] |= 0x80
	switch kind {
	case dns.AMTRELAYNone:
		return octets, true, nil
	case dns.AMTRELAYIPv4, dns.AMTRELAYIPv6:
		a, err := netip.ParseAddr(fields[3])
		if err != nil || a.Is4() != (kind == dns.AMTRELAYIPv4) {
			return nil, true, fmt.Errorf("%q is not an address of the relay type's family", fields[3])
		}
		return append(octets, a.AsSlice()...), true, nil
	case dns.AMTRELAYHost:
		target, err := packTarget(fields[3], origin)
		return append(octets, target...), true, err
	}
	return nil, true, fmt.Errorf("%q is not a relay type", fields[2])
}
