// Package naming handles DNS names: it validates, joins and compares them. It has no side effects. Wire format and record data belong to
// the DNS library.
//
// A name is text: labels separated by dots. A label is ASCII text with escapes (RFC 1035 section 5.1), or an internationalized label (RFC
// 5890) that represents its A-label. Functions handle names label by label: an underscore next to a Unicode label is an underscore.
package naming

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	dns "portolan/internal/base/dnsmsg"

	"golang.org/x/net/idna"
)

// MaxName and MaxLabel are the maximum lengths of a name, without its final dot, and of a label, in octets (RFC 1035 section 2.3.4).
const (
	MaxName  = 253
	MaxLabel = 63
)

// Rule selects which names are allowed.
type Rule int

// The rules. AnyName allows any DNS name; octets other than letters, digits, "-", "_", "/" and "*" must be escaped. HostName allows
// letters, digits and hyphens (RFC 1123 section 2.1), and a leading wildcard label (RFC 4592).
const (
	AnyName Rule = iota
	HostName
)

// Clean removes the white space around a name and its final dot.
func Clean(name string) string {
	name = strings.TrimSpace(name)
	if name == "." || !strings.HasSuffix(name, ".") || isEscaped(name, len(name)-1) {
		return name
	}
	return name[:len(name)-1]
}

// isEscaped reports whether the octet at an index of a name is escaped by a backslash before it.
func isEscaped(name string, at int) bool {
	backslashes := 0
	for at--; at >= 0 && name[at] == '\\'; at-- {
		backslashes++
	}
	return backslashes%2 == 1
}

// Cut splits a name after its first label. more is false if the name has only one label.
func Cut(name string) (label, above string, more bool) {
	for at := 0; ; at++ {
		dot := strings.IndexByte(name[at:], '.')
		if dot < 0 {
			return name, "", false
		}
		if at += dot; !isEscaped(name, at) {
			return name[:at], name[at+1:], true
		}
	}
}

// Labels returns the labels of a name, first to last. The empty name has none.
func Labels(name string) (labels []string) {
	for more := name != ""; more; {
		var label string
		label, name, more = Cut(name)
		labels = append(labels, label)
	}
	return labels
}

// Check validates a relative or absolute name. Apply Clean to it first.
func Check(name string, rule Rule) error {
	if name == "" {
		return fmt.Errorf("a name must not be empty")
	}
	if len(name) > 4*MaxName {
		return fmt.Errorf("the name is longer than %d octets", MaxName)
	}
	for _, r := range name {
		if r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.IsSpace(r) {
			return fmt.Errorf("%q must not contain a control character or a space", name)
		}
	}
	size := -1 // dots separate labels
	for i, label := range Labels(dots.Replace(name)) {
		octets, err := octetsOf(label)
		if err != nil {
			return err
		}
		if err := checkLabel(label, octets, rule, i == 0); err != nil {
			return err
		}
		size += 1 + len(octets)
	}
	if size > MaxName {
		return fmt.Errorf("the name has %d octets; the maximum is %d", size, MaxName)
	}
	return nil
}

func checkLabel(label, octets string, rule Rule, first bool) error {
	switch {
	case octets == "":
		return fmt.Errorf("the name must not have an empty label")
	case len(octets) > MaxLabel:
		return fmt.Errorf("label %q has %d octets; the maximum is %d", label, len(octets), MaxLabel)
	case octets == "*" && (first || rule == AnyName): // in other positions it is an ordinary label (RFC 4592 section 2.1.1)
		return nil
	}
	if rule == AnyName {
		for i := range len(label) {
			if c := label[i]; c < 0x80 && c != '\\' && !isPlain(c) && !isEscaped(label, i) {
				return fmt.Errorf("label %q must not contain %q; to use the character, write \\%03d", label, c, c)
			}
		}
		return nil
	}
	for i := range len(octets) {
		switch c := octets[i]; {
		case c == '-' && (i == 0 || i == len(octets)-1):
			return fmt.Errorf("label %q must not start or end with a hyphen", label)
		case c == '_' || c == '/' || c == '*' || !isPlain(c):
			return fmt.Errorf("label %q must not contain %q", label, c)
		}
	}
	return nil
}

// isPlain reports whether an octet of a label is written without an escape: letters, digits, hyphens, underscores (RFC 8552), "/" as in RFC
// 2317, and "*".
func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '/' || c == '*'
}

// dots replaces the characters that are dots between internationalized labels (RFC 3490 section 3.1).
var dots = strings.NewReplacer("\u3002", ".", "\uff0e", ".", "\uff61", ".")

// profile maps internationalized labels to A-labels (RFC 5891), and does not restrict their ASCII characters.
var profile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.CheckJoiners(true), idna.StrictDomainName(false))

// octetsOf returns the octets of a label on the wire.
func octetsOf(label string) (string, error) {
	for i := range len(label) {
		if label[i] >= 0x80 {
			ascii, err := profile.ToASCII(strings.ToLower(label))
			if err != nil || strings.ContainsAny(ascii, ".\\") {
				return "", fmt.Errorf("%q is not a valid internationalised label", label)
			}
			return ascii, nil
		}
	}
	if strings.IndexByte(label, '\\') < 0 {
		return label, nil
	}
	octets := make([]byte, 0, len(label))
	for i := 0; i < len(label); i++ {
		c := label[i]
		if c == '\\' {
			i++
			digits := label[min(i, len(label)):min(i+3, len(label))]
			switch {
			case digits == "":
				return "", fmt.Errorf("label %q must not end with a backslash", label)
			case digits[0] < '0' || digits[0] > '9':
				c = digits[0]
			default:
				value, err := strconv.ParseUint(digits, 10, 8)
				if err != nil || len(digits) < 3 {
					return "", fmt.Errorf("label %q has the invalid escape \\%s; use three digits up to 255", label, digits)
				}
				c = byte(value)
				i += 2
			}
		}
		octets = append(octets, c)
	}
	return string(octets), nil
}

// Text returns a label of octets as text, with escapes.
func Text(octets string) string {
	for i := range len(octets) {
		if !isPlain(octets[i]) {
			return escapedText(octets)
		}
	}
	return octets
}

func escapedText(octets string) string {
	var b strings.Builder
	for i := range len(octets) {
		switch c := octets[i]; {
		case isPlain(c):
			b.WriteByte(c)
		case c > ' ' && c < 0x7f:
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "\\%03d", c)
		}
	}
	return b.String()
}

// ASCII returns the canonical ASCII form of a name: A-labels for internationalized labels, and escapes as in Text.
func ASCII(name string) (string, error) {
	i := 0
	for i < len(name) && (isPlain(name[i]) || name[i] == '.') {
		i++
	}
	if i == len(name) {
		return name, nil
	}
	all := Labels(dots.Replace(name))
	for i, label := range all {
		octets, err := octetsOf(label)
		if err != nil {
			return "", err
		}
		all[i] = Text(octets)
	}
	return strings.Join(all, "."), nil
}

// Key returns the form for comparing names: ASCII in lower case (RFC 4343).
func Key(name string) string {
	ascii, err := ASCII(Clean(name))
	if err != nil {
		ascii = Clean(name)
	}
	return strings.ToLower(ascii)
}

// FQDN returns a name in the form of the DNS library: absolute, with its final dot, in A-labels.
func FQDN(name string) (string, error) {
	ascii, err := ASCII(Clean(name))
	if err != nil {
		return "", err
	}
	if strings.IndexByte(ascii, '\\') < 0 {
		return dns.Fqdn(ascii), nil
	}
	var wire [256]byte // the library has its own escapes for some octets
	n, err := dns.PackDomainName(dns.Fqdn(ascii), wire[:], 0, nil, false)
	if err != nil {
		return "", fmt.Errorf("%q is not a name: %s", name, strings.TrimPrefix(err.Error(), "dns: "))
	}
	text, _, err := dns.UnpackDomainName(wire[:n], 0)
	return text, err
}

// Join returns the absolute name of name in zone. An empty name is the zone's apex, an empty zone the root.
func Join(name, zone string) string {
	switch {
	case name == "":
		return zone
	case zone == "" || zone == ".":
		return name
	}
	return name + "." + zone
}

// Relative returns the part of an absolute name before the zone, and whether the name is in the zone. For the apex the part is empty. The
// part is unchanged text; labels are compared by Key.
func Relative(absolute, zone string) (string, bool) {
	if zone == "" || zone == "." {
		return absolute, true
	}
	names, zones := Labels(dots.Replace(absolute)), Labels(dots.Replace(zone))
	front := len(names) - len(zones)
	if front < 0 {
		return "", false
	}
	for i, label := range zones {
		if names[front+i] != label && Key(names[front+i]) != Key(label) {
			return "", false
		}
	}
	return strings.Join(names[:front], "."), true
}
