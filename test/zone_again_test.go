package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"portolan/internal/testkit/peers"
)

// TestRepeatedZoneImport checks that a repeated import of a zone file prints the changed and the kept records. --prune deletes nothing
// for an incomplete zone, if a record was skipped, or without confirmation.
func TestRepeatedZoneImport(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "view", "name=internal")
	dir := t.TempDir()
	run := func(code int, text string, flags ...string) string {
		t.Helper()
		file := filepath.Join(dir, "zone")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		command := append([]string{"import", "zone", file, "--configuration", "main", "--view", "internal"}, m.where...)
		got, out := m.wrong(append(command, flags...)...)
		if got != code {
			t.Fatalf("%q %q ends with %d, want %d\n%s", text, flags, got, code, out)
		}
		return out
	}
	says := func(out string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("it does not say %q:\n%s", part, out)
			}
		}
	}
	const head = "$ORIGIN example.net.\n$TTL 300\n@ IN SOA ns1 host 1 3600 600 604800 300\n@ NS ns1\nns1 A 192.0.2.1\n"
	run(0, head+"www A 192.0.2.7\nal CNAME ns1\n")
	says(run(0, head+"www A 192.0.2.7\nal CNAME ns1\n"), "0 resources created", "0 records skipped")
	says(run(3, head+"www A 192.0.2.7\nal CNAME ns1\nal CNAME www\n"),
		"line 8: al.example.net. CNAME: the name has another record of this type in line 7")
	says(run(3, "\ufeff"+head+"www A 192.0.2.7\nal CNAME www\n"), "skipped: line 7: al.example.net. CNAME", "not in the file, kept")
	// The SOA and the TTLs of the file become those of the zone.
	says(run(0, strings.Replace(head, "3600", "7200", 1)+"www 60 A 192.0.2.7\nal CNAME ns1\n"), "changed: SOA: refresh 3600 -> 7200",
		"changed: www.example.net. 300 IN A 192.0.2.7: the time to live becomes 60")
	// An incomplete zone deletes nothing.
	for _, text := range []string{"", "hello world\n"} {
		says(run(1, text, "--origin", "example.net", "--prune", "-y"), "nothing was imported")
	}
	says(run(1, "$TTL 60\nwww A 192.0.2.9\n", "--origin", "example.net", "--prune", "-y"), "this one has no SOA")
	says(run(3, head+"www A 192.0.2.999\n", "--prune", "-y"), "nothing is deleted, because the zone may contain",
		"kept (--prune deletes it): www")
	says(run(3, head+"www A 192.0.2.7\nal A 192.0.2.8\nal CNAME x\n", "--prune", "-n"), "nothing is deleted")
	says(run(2, head+"www A 192.0.2.7\n", "--prune"), "add --yes to confirm", "not in the file, would be deleted: al.example.net.")
	says(run(0, head+"www A 192.0.2.7\nal CNAME www\n", "--prune", "-y"), "not in the file, deleted: al.example.net. 300 IN CNAME ns1")
	says(run(0, head+"www A 192.0.2.7\nal CNAME www\n"), "0 resources created", "0 names changed")
	// An unreadable row does not affect other rows.
	says(run(3, head+"www A 192.0.2.7\nal CNAME www\n$INCLUDE nowhere\nt TXT \"open\nu TXT u\n"), "line 8: $INCLUDE",
		"line 9: no closing quotation mark", "1 resource created")
	m.check()
}

// TestUnusualDataRoundTrips checks that data which the DNS library would change is imported and exported in BIND's form.
func TestUnusualDataRoundTrips(t *testing.T) {
	t.Parallel()
	program := peers.Program(t, "named-compilezone")
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "view", "name=internal")
	dir := t.TempDir()
	text := "$ORIGIN example.net.\n$TTL 60\n@ SOA ns1 host 1 3600 600 604800 300\n@ NS ns1\nns1 A 192.0.2.1\n" +
		`a CAA 0 issue "a\\b"` + "\n" + `b CAA 128 tag ""` + "\n" + `c URI 1 2 "a\\b"` + "\nd ISDN 150862028003217\ne NXT a A NS\n" +
		"f AMTRELAY 128 1 3 amtrelays.example.com.\ng AMTRELAY 10 1 2 2001:db8::15\nh DNSKEY 0400 3 8 AQID\n" +
		"i DS 1 NSEC3RSASHA1 1 " + strings.Repeat("ab", 20) + "\n" + `j WALLET "  a  "` + "\nk A6 10 ::1 @\n" + `"@" TXT own` + "\n" +
		`l CAA 0 issue "ca.example"` + "\n" + `m URI 1 2 "` + strings.Repeat("x", 1200) + `"` + "\n" +
		`$GENERATE 1-1 n$ NAPTR "100 10 \"u\" \"E2U+sip\" \"\" a."` + "\n"
	file, exported := filepath.Join(dir, "zone"), filepath.Join(dir, "exported")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m.portolan(append([]string{"import", "zone", file, "--configuration", "main", "--view", "internal", "--strict"}, m.where...)...)
	out := m.portolan(append([]string{"export", "zone", "example.net", "--configuration", "main", "--view", "internal"}, m.where...)...)
	if err := os.WriteFile(exported, []byte(out+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := func(path string) (all []string) {
		t.Helper()
		compiled, err := exec.Command(program, "-q", "-k", "ignore", "-i", "none", "-n", "ignore", "-m", "ignore", "-s", "full", "-o", "-",
			"example.net", path).Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, compiled)
		}
		for line := range strings.Lines(string(compiled)) {
			if !strings.Contains(line, "\tSOA\t") && !strings.Contains(line, " SOA\t") {
				all = append(all, strings.Join(strings.Fields(line), " "))
			}
		}
		slices.Sort(all)
		return all
	}
	want, got := lines(file), lines(exported)
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("the export has no %.200s", line)
		}
	}
	if len(got) != len(want) || len(got) < 17 {
		t.Errorf("there are %d records, want %d", len(got), len(want))
	}
	m.check()
}
