package dhcp_test

import (
	"strings"
	"testing"
)

// TestBadDHCPInput checks that values that a DHCP server cannot use are refused with their field when they are stored.
func TestBadDHCPInput(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	at := "/api/v2/networks/" + network
	ranges, options, classes := at+"/ranges", at+"/deploymentOptions", "/api/v2/configurations/"+configuration+"/clientClasses"
	deep := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	hardware := m.ID(classes, `{"name":"by-hardware","option":"hardware","matchOffset":1,"matchLength":3}`)
	for _, one := range []struct{ name, path, body, want string }{
		{"an exclusion outside", ranges, `{"type":"IPv4DHCPRange","range":"10.0.0.40-10.0.0.50","exclusionRanges":["10.0.0.60"]}`,
			"exclusionRanges"},
		{"an exclusion across the end", ranges,
			`{"type":"IPv4DHCPRange","range":"10.0.0.40-10.0.0.50","exclusionRanges":["10.0.0.45-10.0.0.60"]}`,
			"exclusionRanges"},
		{"a range of another network", ranges, `{"type":"IPv4DHCPRange","range":"10.9.0.40-10.9.0.50"}`, "range"},
		{"a range backwards", ranges, `{"type":"IPv4DHCPRange","range":"10.0.0.50-10.0.0.40"}`, "range"},
		{"a range of another family", ranges, `{"type":"IPv4DHCPRange","range":"2001:db8::1-2001:db8::9"}`, "range"},
		{"a value of another family", options, `{"type":"DHCPv4ClientOption","name":"dns-server","value":["2001:db8::53"]}`, "value"},
		{"a type of another family", options, `{"type":"DHCPv6ClientOption","name":"dns-servers","value":["2001:db8::53"]}`, ""},
		{"a raw option of 1 MB", options, `{"type":"DHCPv4RawOption","value":"` + strings.Repeat("max-lease-time 7200;", 52_429) + `"}`, ""},
		{"a condition 4,000 deep", classes, `{"name":"deep","matchExpression":"if ` + deep("(", "known", ")", 4000) + `"}`, "matchExpression"},
		{"a negation 4,000 deep", classes, `{"name":"deep","matchExpression":"if ` + deep("not ", "known", "", 4000) + `"}`, "matchExpression"},
		{"a function 4,000 deep", classes, `{"name":"deep","matchExpression":"` + deep("lcase(", "option host-name", ")", 4000) + `"}`,
			"matchExpression"},
		{"a class of 1 MB", classes, `{"name":"long","matchExpression":"if option host-name = \"` + strings.Repeat("a", 1<<20) + `\""}`,
			""},
		{"a matchLength of 0", classes, `{"name":"x","option":"hardware","matchOffset":1,"matchLength":0}`, "matchLength"},
		{"a negative matchLength", classes, `{"name":"x","option":"hardware","matchOffset":1,"matchLength":-1}`, "matchLength"},
		{"a huge matchOffset", classes, `{"name":"x","option":"hardware","matchOffset":4294967297,"matchLength":1}`, "matchOffset"},
		{"a subclass that is not hexadecimal", "/api/v2/clientClasses/" + hardware + "/subclasses", `{"value":"0xZZ"}`, "value"},
		{"a subclass of half an octet", "/api/v2/clientClasses/" + hardware + "/subclasses", `{"value":"0x123"}`, "value"},
	} {
		r := m.Do("POST", one.path, one.body)
		if r.StatusCode < 400 || r.StatusCode >= 500 || !strings.Contains(string(r.Body), one.want) || len(r.Body) > 4096 {
			t.Errorf("%s: %d %.300s", one.name, r.StatusCode, r.Body)
		}
	}
}
