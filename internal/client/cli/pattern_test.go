package cli_test

import (
	"strings"
	"testing"

	"portolan/internal/client/cli"
)

// TestNames checks name patterns. The cases are those of the console's TestPureParts.
func TestNames(t *testing.T) {
	for pattern, want := range map[string]string{
		"rack7-srv-[01-03]": "rack7-srv-01 rack7-srv-02 rack7-srv-03", "srv-[08-10].x": "srv-08.x srv-09.x srv-10.x", "a[9]": "a9 a10 a11",
		"a[007]": "a007 a008 a009", "rack7-srv-##": "rack7-srv-01 rack7-srv-02 rack7-srv-03", "#": "1 2 3",
		"printer": "printer-1 printer-2 printer-3",
		"":        "  ",
	} {
		names, err := cli.Names(pattern, 3)
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s gives %q, not %q: %v", pattern, got, want, err)
		}
	}
	if names, err := cli.Names("printer", 1); err != nil || names[0] != "printer" {
		t.Errorf("one printer: %v %v", names, err)
	}
	for _, pattern := range []string{"a[1-2]", "a[1-4]", "a[3-1]", "[1-3][1-3]", "a[x]", "a[1-3]##", "a[", "a[1-", "[99999999999]"} {
		if names, err := cli.Names(pattern, 3); err == nil {
			t.Errorf("%s gives %q", pattern, names)
		}
	}
	if n := cli.NamesIn("rack7-srv-[01-40]"); n != 40 {
		t.Errorf("[01-40] states %d names", n)
	}
	for _, pattern := range []string{"", "a", "a[7]", "a[9-1]", "##"} {
		if n := cli.NamesIn(pattern); n != 1 {
			t.Errorf("%s states %d names", pattern, n)
		}
	}
	if list, err := cli.ListConsecutive("10.0.0.254", 3); err != nil || strings.Join(list, " ") != "10.0.0.254 10.0.0.255 10.0.1.0" {
		t.Errorf("consecutive addresses: %v %v", list, err)
	}
	for _, first := range []string{"255.255.255.254", "x", "fe80::1%eth0"} {
		if list, err := cli.ListConsecutive(first, 3); err == nil {
			t.Errorf("three addresses from %s: %v", first, list)
		}
	}
}
