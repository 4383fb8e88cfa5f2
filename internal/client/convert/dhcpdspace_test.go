package convert

import (
	"slices"
	"strings"
	"testing"
)

// TestOptionSpacesAreSent checks that options of a space of the site are options of DHCP with their codes, and that those of a space that
// no statement sends are named.
func TestOptionSpacesAreSent(t *testing.T) {
	d, err := Dhcpd([]byte(`option space pxelinux;
option pxelinux.magic code 208 = string;
option pxelinux.menu code 230 = text;
option space lost;
option lost.one code 1 = text;
site-option-space "pxelinux";
option pxelinux.magic f1:00:74:7e;
option lost.one "x";
subnet 10.1.0.0 netmask 255.255.255.0 { option pxelinux.menu "m"; range 10.1.0.10 10.1.0.20; }
`), nil)
	lines, notes := words(t, d, err)
	all := strings.Join(lines, "\n")
	for _, want := range []string{`"code":230,"description":"Imported option 230.","displayName":"pxelinux-menu","name":"pxelinux-menu"`,
		`"name":"pxelinux-menu","type":"DHCPv4ClientOption","value":"m"`, `"value":"0xF100747E"`} {
		if !strings.Contains(all, want) {
			t.Errorf("the import lacks %s:\n%s", want, all)
		}
	}
	const want = "the option lost.one: no vendor-option-space or site-option-space sends the options of the space lost"
	if !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, want) }) {
		t.Errorf("the notes are %q, without %q", notes, want)
	}
}
