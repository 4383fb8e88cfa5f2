package space

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"
)

// ParseHardware reads a hardware address of 48 or 64 bits in hexadecimal digits: in groups of one length with one of colons, hyphens, dots
// or spaces between, or in one. Where the groups are bytes a leading 0 may be left out.
func ParseHardware(text string) (net.HardwareAddr, error) {
	text = strings.TrimSpace(text)
	digits := text
	if i := strings.IndexAny(text, ":-. "); i >= 0 {
		groups := strings.Split(text, text[i:i+1])
		bytes := len(groups) == 6
		for n, group := range groups {
			if bytes && len(group) == 1 {
				groups[n] = "0" + group
			}
			if len(groups[n]) != len(groups[0]) || len(groups[n])%2 != 0 {
				return nil, fmt.Errorf("%q is no hardware address", text)
			}
		}
		digits = strings.Join(groups, "")
	}
	mac, err := hex.DecodeString(digits)
	if err != nil || len(mac) != 6 && len(mac) != 8 {
		return nil, fmt.Errorf("%q is no hardware address", text)
	}
	return mac, nil
}

// DUID limits, in bytes (RFC 8415 section 11.1: two of a type, and up to 128; one byte behind the type at least).
const shortestDUID, longestDUID = 3, 130

// KeptDUID gives a DUID (RFC 8415 section 11) as it is kept and shown, 000100012A: it may be written in either case, in groups of whole
// bytes with colons, hyphens or blanks between. Of a group that is one byte a leading 0 may be left out, as dhcpd and Kea have it.
func KeptDUID(text string) (string, error) {
	var digits strings.Builder
	for group := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(":- ", r) }) {
		if len(group) == 1 {
			digits.WriteByte('0')
		} else if len(group)%2 != 0 {
			return "", fmt.Errorf("%q is no DUID: a group has %d digits, which are no whole bytes", text, len(group))
		}
		digits.WriteString(group)
	}
	data, err := hex.DecodeString(digits.String())
	if err != nil || len(data) < shortestDUID || len(data) > longestDUID {
		return "", fmt.Errorf("%q is no DUID: %d to %d bytes in hexadecimal (RFC 8415 section 11)", text, shortestDUID, longestDUID)
	}
	return strings.ToUpper(digits.String()), nil
}

// FormatHardware is how hardware addresses are kept and shown: 00-00-5E-00-53-01.
func FormatHardware(mac net.HardwareAddr) string {
	return strings.ToUpper(strings.ReplaceAll(mac.String(), ":", "-"))
}
