package convert

import (
	"slices"
	"strings"
	"testing"
)

// TestRefusedOptionsOf6 checks that options that a deployment of DHCPv6 refuses are left out: dhcpd6.conf often has authoritative.
func TestRefusedOptionsOf6(t *testing.T) {
	d, err := Dhcpd([]byte("authoritative;\ndefault-lease-time 600;\nsubnet6 2001:db8::/64 {\n}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(d.Resources, func(r Resource) bool { return r["name"] == "authoritative" }) {
		t.Errorf("the option is imported: %v", d.Resources)
	}
	notes := strings.Join(d.Notes(), "\n")
	if !strings.Contains(notes, "the option authoritative: the server does not support it for DHCPv6") {
		t.Errorf("the notes are %q", notes)
	}
}

// TestImportLeavesOutOptionsWithoutEffect checks that service options are left out where a deployment refuses them, and imported elsewhere.
func TestImportLeavesOutOptionsWithoutEffect(t *testing.T) {
	d, err := Dhcpd([]byte("min-secs 3;\nsubnet 10.0.0.0 netmask 255.255.255.0 { pool { range 10.0.0.10 10.0.0.20; min-secs 5; } }\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var at []any
	for _, r := range d.Resources {
		if r["name"] == "min-secs" {
			at = append(at, r["in"])
		}
	}
	if !slices.Equal(at, []any{nil}) {
		t.Errorf("min-secs is imported at %v", at)
	}
	if notes := strings.Join(d.Notes(), "\n"); !strings.Contains(notes, "the option min-secs: it has no effect at a range: the server reads "+
		"it at the network, or an object above it") {
		t.Errorf("the notes are %q", notes)
	}
}

// TestReservedPrefixesAreListed checks that reserved prefixes of dhcpd and Kea are listed with their hosts, with and without an address.
func TestReservedPrefixesAreListed(t *testing.T) {
	d, err := Dhcpd([]byte(`subnet6 2001:db8::/64 { }
host both { host-identifier option dhcp6.client-id 00:01:02; fixed-address6 2001:db8::5; fixed-prefix6 2001:db8:1::/48; }
host alone { host-identifier option dhcp6.client-id 00:01:03; fixed-prefix6 2001:db8:2::/48; }
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Join(d.notes["the statement fixed-prefix6: "+noReserved], " "); !strings.Contains(rows, "line 2") ||
		!strings.Contains(rows, "line 3") {
		t.Errorf("the notes are %v", d.notes)
	}
	d, err = Kea([]byte(`{"Dhcp6":{"subnet6":[{"subnet":"2001:db8::/64","id":1,"reservations":[{"duid":"00:01:02",
		"ip-addresses":["2001:db8::5"],"prefixes":["2001:db8:1::/48"]}]}]}}`), nil)
	if err != nil || len(d.notes["prefixes that are reserved: "+noReserved]) != 1 {
		t.Errorf("the notes are %v: %v", d.notes, err)
	}
}
