package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A zone file that is imported again says what it changes and what it leaves. --prune deletes nothing for a file that is no whole zone,
// where a record was skipped, or without a word.
func TestImportZoneAgain(t *testing.T) {
	m := serve(t, "")
	m.at()
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
	says(run(0, head+"www A 192.0.2.7\nal CNAME ns1\n"), "0 resources made", "0 records skipped")
	says(run(3, head+"www A 192.0.2.7\nal CNAME ns1\nal CNAME www\n"), "line 8: al.example.net. CNAME: the name has another one in line 7")
	says(run(3, "\ufeff"+head+"www A 192.0.2.7\nal CNAME www\n"), "skipped: line 7: al.example.net. CNAME", "not in the file, kept")
	// The SOA of the file is the zone's, and so are times to live.
	says(run(0, strings.Replace(head, "3600", "7200", 1)+"www 60 A 192.0.2.7\nal CNAME ns1\n"), "changed: SOA: refresh 3600 -> 7200",
		"changed: www.example.net. 300 IN A 192.0.2.7: the time to live becomes 60")
	// What is no whole zone deletes nothing.
	for _, text := range []string{"", "hello world\n"} {
		says(run(1, text, "--origin", "example.net", "--prune", "-y"), "nothing was imported")
	}
	says(run(1, "$TTL 60\nwww A 192.0.2.9\n", "--origin", "example.net", "--prune", "-y"), "it has no SOA")
	says(run(3, head+"www A 192.0.2.999\n", "--prune", "-y"), "nothing is deleted, because records are skipped",
		"kept (--prune deletes it): www")
	says(run(3, head+"www A 192.0.2.7\nal A 192.0.2.8\nal CNAME x\n", "--prune", "-n"), "nothing is deleted")
	says(run(2, head+"www A 192.0.2.7\n", "--prune"), "--yes does", "not in the file, deleted: al.example.net.")
	says(run(0, head+"www A 192.0.2.7\nal CNAME www\n", "--prune", "-y"), "not in the file, deleted: al.example.net. 300 IN CNAME ns1")
	says(run(0, head+"www A 192.0.2.7\nal CNAME www\n"), "0 resources made", "0 names changed")
	// What cannot be read in a row takes no other with it.
	says(run(3, head+"www A 192.0.2.7\nal CNAME www\n$INCLUDE nowhere\nt TXT \"open\nu TXT u\n"), "line 8: $INCLUDE",
		"line 9: a quotation mark", "1 resources made")
	m.check()
}
