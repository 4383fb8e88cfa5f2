// Package peers finds other people's programs that tests compare with: name servers, signers, validators.
package peers

import (
	"os"
	"os/exec"
	"testing"
)

// packages are the Debian packages of programs; others have the name of their program.
var packages = map[string]string{"named": "bind9", "rndc": "bind9", "named-checkconf": "bind9-utils", "named-checkzone": "bind9-utils",
	"named-compilezone": "bind9-utils", "dnssec-signzone": "bind9-utils", "dnssec-verify": "bind9-utils", "delv": "bind9-dnsutils",
	"dig": "bind9-dnsutils"}

// Program gives the path of a program. Where it is not on the machine the test is skipped and, with CI=true, fails: .ci/run installs it
// first. With -short the test is skipped.
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
