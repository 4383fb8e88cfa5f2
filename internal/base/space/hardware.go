package space

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"
)

// ParseHardware parses a hardware address of 48 or 64 bits in hexadecimal. Digits can be in groups of equal length, separated by colons,
// hyphens, dots or spaces. In groups of one byte, a leading 0 can be omitted.
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
				return nil, fmt.Errorf("%q is not a hardware address, such as 00:00:5E:00:53:01", text)
			}
		}
		digits = strings.Join(groups, "")
	}
	mac, err := hex.DecodeString(digits)
	if err != nil || len(mac) != 6 && len(mac) != 8 {
		return nil, fmt.Errorf("%q is not a hardware address, such as 00:00:5E:00:53:01", text)
	}
	return mac, nil
}

// minDUID and maxDUID are the limits of a DUID, in bytes (RFC 8415 section 11.1): two bytes of type, and 1 to 128 more.
const minDUID, maxDUID = 3, 130

// KeptDUID returns a DUID (RFC 8415 section 11) in its stored form, such as 000100012A. The text can be in either case, in groups of whole
// bytes separated by colons, hyphens or spaces. In groups of one byte, a leading 0 can be omitted, as in dhcpd and Kea.
func KeptDUID(text string) (string, error) {
	var digits strings.Builder
	for group := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(":- ", r) }) {
		if len(group) == 1 {
			digits.WriteByte('0')
		} else if len(group)%2 != 0 {
			return "", fmt.Errorf("%q is not a DUID: a group has %d digits, which is an odd number", text, len(group))
		}
		digits.WriteString(group)
	}
	data, err := hex.DecodeString(digits.String())
	if err != nil || len(data) < minDUID || len(data) > maxDUID {
		return "", fmt.Errorf("%q is not a DUID, which is %d to %d bytes in hexadecimal (RFC 8415 section 11)", text, minDUID, maxDUID)
	}
	return strings.ToUpper(digits.String()), nil
}

// FormatHardware returns the stored form of a hardware address: 00-00-5E-00-53-01.
func FormatHardware(mac net.HardwareAddr) string {
	return strings.ToUpper(strings.ReplaceAll(mac.String(), ":", "-"))
}
