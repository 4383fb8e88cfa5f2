// Package naming is arithmetic on DNS names: what may be one, how names join, how they compare.
// It is pure, and anyone may use it. Wire format and record data belong to the DNS library.
package naming

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// MaxName and MaxLabel are the most octets of a name, written without its last dot, and of a
// label (RFC 1035 section 2.3.4).
const (
	MaxName  = 253
	MaxLabel = 63
)

// Rule says which names are allowed.
type Rule int

// The rules: any DNS name, with underscores and * as a label; host names of letters, digits and hyphens
// (RFC 1123 section 2.1), a leading wildcard label allowed (RFC 4592).
const (
	AnyName Rule = iota
	HostName
)

// Clean takes the white space around a name and its last dot away.
func Clean(name string) string {
	name = strings.TrimSpace(name)
	if name == "." {
		return name
	}
	return strings.TrimSuffix(name, ".")
}

// Check says what is wrong with a name, relative or absolute, after Clean.
func Check(name string, rule Rule) error {
	if name == "" {
		return fmt.Errorf("a name must not be empty")
	}
	if len(name) > 4*MaxName {
		return fmt.Errorf("the name is longer than %d octets", MaxName)
	}
	for _, r := range name {
		if r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.IsSpace(r) {
			return fmt.Errorf("%q holds a control character or a space", name)
		}
	}
	ascii, err := ASCII(name)
	if err != nil {
		return err
	}
	if len(ascii) > MaxName {
		return fmt.Errorf("the name has %d octets, more than %d", len(ascii), MaxName)
	}
	for i, label := range strings.Split(ascii, ".") {
		if err := checkLabel(label, rule, i == 0); err != nil {
			return err
		}
	}
	return nil
}

func checkLabel(label string, rule Rule, first bool) error {
	switch {
	case label == "":
		return fmt.Errorf("the name has an empty label")
	case len(label) > MaxLabel:
		return fmt.Errorf("label %q has %d octets, more than %d", label, len(label), MaxLabel)
	case label == "*" && (first || rule == AnyName): // elsewhere than in front it stands for itself (RFC 4592 section 2.1.1)
		return nil
	}
	for i := range len(label) {
		c := label[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-':
			if rule == HostName && (i == 0 || i == len(label)-1) {
				return fmt.Errorf("label %q starts or ends with a hyphen", label)
			}
		case (c == '_' || c == '/') && rule == AnyName: // / as in RFC 2317
		default:
			return fmt.Errorf("label %q holds %q, which is not allowed here", label, c)
		}
	}
	return nil
}

// ASCII gives the name with every label that is not ASCII as an A-label (RFC 5891).
func ASCII(name string) (string, error) {
	for i := range len(name) {
		if name[i] >= 0x80 {
			ascii, err := idna.Lookup.ToASCII(strings.ToLower(name))
			if err != nil {
				return "", fmt.Errorf("%q is not a valid internationalised name", name)
			}
			return ascii, nil
		}
	}
	return name, nil
}

// Key gives the form by which names are the same: A-labels in lower case (RFC 4343).
func Key(name string) string {
	ascii, err := ASCII(Clean(name))
	if err != nil {
		ascii = Clean(name)
	}
	return strings.ToLower(ascii)
}

// Join gives the absolute name of name in zone; an empty name is the zone's apex, an empty zone
// the root.
func Join(name, zone string) string {
	switch {
	case name == "":
		return zone
	case zone == "" || zone == ".":
		return name
	}
	return name + "." + zone
}

// Relative gives the part of an absolute name in front of the zone, and whether the name is in the
// zone at all. The apex gives an empty part.
func Relative(absolute, zone string) (string, bool) {
	if zone == "" || zone == "." {
		return absolute, true
	}
	if Key(absolute) == Key(zone) {
		return "", true
	}
	cut := len(absolute) - len(zone) - 1
	if cut > 0 && absolute[cut] == '.' && Key(absolute[cut+1:]) == Key(zone) {
		return absolute[:cut], true
	}
	return "", false
}
