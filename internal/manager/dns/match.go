package dns

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Match is an element of a BIND access control list: an address or prefix, a key, or the name of another list.
type Match struct {
	// Not negates the element: matching clients are rejected.
	Not bool
	// Prefix is the address or prefix; not valid for other kinds of elements.
	Prefix netip.Prefix
	// Key is the name of a key, List the name of another list.
	Key, List string
}

// ParseMatch parses an element: 10.0.0.5, 10.0.0.0/24, 10.0.0/24, 2001:db8::/32, key NAME or NAME, each optionally preceded by "!".
func ParseMatch(text string) (Match, error) {
	var m Match
	rest := strings.TrimSpace(text)
	if after, negated := strings.CutPrefix(rest, "!"); negated {
		m.Not, rest = true, strings.TrimSpace(after)
	}
	words := strings.Fields(rest)
	switch {
	case len(words) == 2 && strings.EqualFold(words[0], "key"):
		m.Key = strings.Trim(words[1], `"`)
		return m, checkListName(m.Key)
	case len(words) != 1 || strings.EqualFold(words[0], "key"):
		return m, fmt.Errorf("must be an address, a prefix, the name of a list, or key NAME, not %q", text)
	}
	if rest[0] >= '0' && rest[0] <= '9' && !strings.Contains(rest, ":") || strings.Contains(rest, ":") || strings.Contains(rest, "/") {
		prefix, err := parsePrefix(rest)
		m.Prefix = prefix
		return m, err
	}
	m.List = strings.Trim(rest, `"`)
	return m, checkListName(m.List)
}

// parsePrefix parses an address or prefix. In an IPv4 prefix, trailing zero octets may be omitted: 10.0.0/24.
func parsePrefix(text string) (netip.Prefix, error) {
	address, length, prefixed := strings.Cut(text, "/")
	if prefixed && !strings.Contains(address, ":") {
		for strings.Count(address, ".") < 3 {
			address += ".0"
		}
	}
	a, err := netip.ParseAddr(address)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("must be an address or a prefix, not %q", text)
	}
	bits := a.BitLen()
	if prefixed {
		if bits, err = strconv.Atoi(length); err != nil || bits < 0 || bits > a.BitLen() {
			return netip.Prefix{}, fmt.Errorf("%q has no prefix length after the /", text)
		}
	}
	p := netip.PrefixFrom(a, bits)
	if p != p.Masked() {
		return p, fmt.Errorf("%q has host bits set; use %s", text, p.Masked())
	}
	return p, nil
}

// listName matches names of lists and keys that need no quoting.
var listName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// checkListName rejects a name that is invalid or ambiguous in the configuration of a name server.
func checkListName(name string) error {
	if !listName.MatchString(name) || strings.EqualFold(name, "key") {
		return fmt.Errorf("%q is not a valid name: use a letter, then letters, digits, - _ and dots", name)
	}
	return nil
}
