// Package peers finds third-party programs that tests compare with: name servers, signers, validators, DHCP clients.
package peers

import (
	"os"
	"os/exec"
	"testing"
)

// packages are the Debian packages of programs whose package has a different name.
var packages = map[string]string{"named": "bind9", "rndc": "bind9", "named-checkconf": "bind9-utils", "named-checkzone": "bind9-utils",
	"named-compilezone": "bind9-utils", "dnssec-signzone": "bind9-utils", "dnssec-verify": "bind9-utils", "delv": "bind9-dnsutils",
	"dig": "bind9-dnsutils", "dhclient": "isc-dhcp-client", "dhcpd": "isc-dhcp-server", "dhcrelay": "isc-dhcp-relay", "dhcpcd": "dhcpcd-base",
	"ip": "iproute2", "kea-dhcp4": "kea-dhcp4-server", "kea-dhcp6": "kea-dhcp6-server", "tftp": "tftp-hpa", "perfdhcp": "kea-admin"}

// Program returns the path of a program. If it is not installed, the test is skipped, or fails with CI=true, because .ci/run installs it.
// With -short the test is skipped.
func Program(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: not beside " + name)
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	from := packages[name]
	if from == "" {
		from = name
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%v: .ci/run installs the package %s", err, from)
	}
	t.Skipf("%s is not on this machine (Debian: apt-get install %s)", name, from)
	return ""
}
