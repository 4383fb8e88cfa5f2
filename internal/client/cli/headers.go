package cli

import (
	"slices"
	"strings"
)

// likelyTypes are the types of rows by usual headers, without punctuation and in lower case. The first match is the guess. The console has
// the same list (console/src/sheet.ts), and both have the same test cases (testdata/headers.json).
var likelyTypes = []struct {
	typeName string
	headers  []string
}{
	{"", []string{"type", "id"}}, // each row has its type
	{"IPv4Address", []string{"ip", "ipaddress", "ipaddr", "ipv4address", "ipv6address", "address"}},
	{"IPv4Network", []string{"network", "subnet", "prefix", "cidr"}},
	{"Zone", []string{"zone", "zonename", "domain"}},
}

// LikelyType returns the type of rows that the header of a table suggests. It is empty if the rows have a type, or for other headers. The
// manager gives rows with IPv6 addresses the IPv6 type.
func LikelyType(header []string) string {
	for _, one := range likelyTypes {
		if slices.ContainsFunc(header, func(h string) bool { return slices.Contains(one.headers, plainHeader(h)) }) {
			return one.typeName
		}
	}
	return ""
}

// plainHeader returns the letters and digits of a header in lower case.
func plainHeader(header string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(header))
}
