package naming

import (
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	dns "portolan/internal/base/dnsmsg"
)

// encodePrefixes encodes address prefixes (RFC 3123 section 4). The library rejects host bits.
func encodePrefixes(fields []string, _ string) (octets []byte, keeps bool, err error) {
	for _, field := range fields {
		item, negated := strings.CutPrefix(field, "!")
		family, prefix, _ := strings.Cut(item, ":")
		address, length, _ := strings.Cut(prefix, "/")
		a, err := netip.ParseAddr(address)
		bits, e := strconv.Atoi(length)
		if err != nil || e != nil || a.Zone() != "" || bits < 0 || bits > a.BitLen() || family != map[bool]string{true: "1",
			false: "2"}[a.Is4()] {
			return nil, false, nil //nolint:nilerr // the library reports the error
		}
		part := a.AsSlice()
		if netip.PrefixFrom(a, bits).Masked().Addr() != a {
			keeps = true
		}
		for len(part) > 0 && part[len(part)-1] == 0 {
			part = part[:len(part)-1]
		}
		octets = binary.BigEndian.AppendUint16(octets, uint16(family[0]-'0'))
		size := byte(len(part)) //nolint:gosec // at most 16
		if negated {
			size |= 0x80
		}
		octets = append(append(octets, byte(bits), size), part...) //nolint:gosec // at most 128
	}
	if !keeps {
		return nil, false, nil
	}
	return octets, true, nil
}

// encodePosition encodes a longitude, a latitude and an altitude as texts (RFC 1712 section 3). The library rejects empty ones.
func encodePosition(fields []string, _ string) (octets []byte, keeps bool, err error) {
	if len(fields) != 3 {
		return nil, false, nil
	}
	for _, field := range fields {
		text, err := rawOctets(field)
		if err != nil || len(text) > 255 {
			return nil, false, err
		}
		keeps = keeps || len(text) == 0
		octets = append(append(octets, byte(len(text))), text...)
	}
	if !keeps {
		return nil, false, nil
	}
	return octets, true, nil
}

// hashLength is the length of the hashed names in NSEC3 records, in octets (RFC 5155 section 11). The library reads only this length.
const hashLength = 20

// encodeHashed encodes an algorithm, flags, iterations, a salt, the next hash and types (RFC 5155 section 3.2).
func encodeHashed(fields []string, _ string) ([]byte, bool, error) {
	if len(fields) < 5 {
		return nil, false, nil
	}
	next, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(fields[4]))
	if err != nil || len(next) == 0 || len(next) > 255 || len(next) == hashLength {
		return nil, false, nil //nolint:nilerr // the library reports the error
	}
	octets, err := numbersOf(fields[:3], 8, 8, 16)
	if err != nil {
		return nil, false, err
	}
	var salt []byte
	if fields[3] != "-" {
		if salt, err = hex.DecodeString(fields[3]); err != nil || len(salt) > 255 {
			return nil, false, fmt.Errorf("%q is not a salt", fields[3])
		}
	}
	octets = append(append(octets, byte(len(salt))), salt...)
	octets = append(append(octets, byte(len(next))), next...)
	var types []uint16
	for _, one := range fields[5:] {
		kind := typeNumber(strings.ToUpper(one))
		if n, err := strconv.ParseUint(one, 10, 16); err == nil {
			kind = uint16(n)
		}
		if kind == 0 {
			return nil, false, fmt.Errorf("%q is not a type", one)
		}
		types = append(types, kind)
	}
	return append(octets, typeBitmap(types)...), true, nil
}

// typeBitmap returns the bit maps of types, by windows (RFC 4034 section 4.1.2).
func typeBitmap(types []uint16) (octets []byte) {
	slices.Sort(types)
	for len(types) > 0 {
		window := types[0] >> 8
		var bits [32]byte
		last := 0
		for len(types) > 0 && types[0]>>8 == window {
			low := int(types[0] & 0xff)
			bits[low/8] |= 0x80 >> (low % 8)
			last, types = low/8, types[1:]
		}
		octets = append(append(octets, byte(window), byte(last+1)), bits[:last+1]...)
	}
	return octets
}

// parameter is a service parameter with its key (RFC 9460 section 2.2).
type parameter struct {
	key   uint16
	value []byte
}

// encodeService encodes a priority, a target and parameters (RFC 9460 section 2.1), if they contain values that the library rejects: the
// key 65535, and IPv6 hints that are IPv4-mapped addresses.
func encodeService(fields []string, origin string) ([]byte, bool, error) {
	var own []parameter
	left := slices.DeleteFunc(slices.Clone(fields), func(field string) bool {
		name, value, _ := strings.Cut(field, "=")
		raw, err := rawOctets(value)
		if err != nil {
			return false
		}
		switch strings.ToLower(name) {
		case "key65535":
			own = append(own, parameter{65535, raw})
			return true
		case "ipv6hint":
			var hints []byte
			mapped := false
			for text := range strings.SplitSeq(string(raw), ",") {
				a, err := netip.ParseAddr(text)
				if err != nil || !a.Is6() || a.Zone() != "" {
					return false
				}
				mapped, hints = mapped || a.Is4In6(), append(hints, a.AsSlice()...)
			}
			if mapped {
				own = append(own, parameter{uint16(dns.SVCB_IPV6HINT), hints})
			}
			return mapped
		}
		return false
	})
	if len(own) == 0 || len(left) < 2 {
		return nil, false, nil
	}
	rr, err := newRecord(".", origin, 0, "SVCB", strings.Join(left, " "))
	if err != nil {
		return nil, false, err
	}
	packed := make([]byte, dns.Len(rr)+16)
	n, err := dns.PackRR(rr, packed, 0, nil, false)
	if err != nil {
		return nil, false, err
	}
	const head = 11 // the name of the root, type, class, TTL and length
	octets := packed[head:n]
	at := 2 // after the priority
	for octets[at] != 0 {
		at += int(octets[at]) + 1
	}
	begin, rest := octets[:at+1], octets[at+1:]
	for len(rest) >= 4 {
		size := 4 + int(binary.BigEndian.Uint16(rest[2:]))
		own, rest = append(own, parameter{binary.BigEndian.Uint16(rest), rest[4:size]}), rest[size:]
	}
	slices.SortFunc(own, func(a, b parameter) int { return int(a.key) - int(b.key) })
	out := slices.Clone(begin)
	for i, p := range own {
		if i > 0 && own[i-1].key == p.key {
			return nil, false, fmt.Errorf("the key %d is given twice", p.key)
		}
		out = binary.BigEndian.AppendUint16(out, p.key)
		out = binary.BigEndian.AppendUint16(out, uint16(len(p.value))) //nolint:gosec // a line is shorter
		out = append(out, p.value...)
	}
	return out, true, nil
}

// isService reports whether data in the form of RFC 3597 has a priority, a target, and parameters in the order of their keys (RFC 9460
// section 2.2).
func isService(data string) bool {
	fields := dataFields(data)
	octets, err := hex.DecodeString(strings.Join(fields[min(2, len(fields)):], ""))
	if err != nil || len(octets) < 3 {
		return false
	}
	_, at, err := dns.UnpackDomainName(octets, 2)
	if err != nil {
		return false
	}
	last := -1
	for rest := octets[at:]; len(rest) > 0; {
		if len(rest) < 4 {
			return false
		}
		key, size := int(binary.BigEndian.Uint16(rest)), 4+int(binary.BigEndian.Uint16(rest[2:]))
		if key <= last || size > len(rest) {
			return false
		}
		last, rest = key, rest[size:]
	}
	return true
}
