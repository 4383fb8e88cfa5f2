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
	if notes := strings.Join(d.Notes(), "\n"); !strings.Contains(notes, "the option authoritative: it has no effect for DHCPv6") {
		t.Errorf("the notes are %q", notes)
	}
}
