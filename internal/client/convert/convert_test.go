package convert

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// words returns the resources of a document, one line each, and its notes and skipped rows.
func words(t *testing.T, d *Document, err error, known ...string) (lines, notes []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	networks := Existing{}
	for _, text := range known {
		prefix, gateway, _ := strings.Cut(text, " ")
		networks[netip.MustParsePrefix(prefix)] = gateway
	}
	d.SkipOutside(networks)
	d.Settle(networks, true)
	all, _, err := d.JSON(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range all {
		if !strings.Contains(string(raw), `ServiceOption"`) { // the defaults of the source
			lines = append(lines, string(raw))
		}
	}
	notes = d.Notes()
	for _, one := range d.Skipped {
		notes = append(notes, one.String())
	}
	return lines, notes
}

// TestRoutersAreInherited checks that a subnet inherits a router of an enclosing level if the router is an address in it and the subnet
// sets none.
func TestRoutersAreInherited(t *testing.T) {
	for name, read := range map[string]func() (*Document, error){
		"dhcpd, of all": func() (*Document, error) {
			return Dhcpd([]byte(`subnet 10.1.0.0 netmask 255.255.255.0 { } option routers 10.2.0.1, 10.1.0.1;`), nil)
		},
		"dhcpd, of a shared network": func() (*Document, error) {
			return Dhcpd([]byte("option routers 10.1.0.9; shared-network x { option routers 10.1.0.1; "+
				"subnet 10.1.0.0 netmask 255.255.255.0 { } }"), nil)
		},
		"dhcpd, its own": func() (*Document, error) {
			return Dhcpd([]byte("option routers 10.1.0.9; subnet 10.1.0.0 netmask 255.255.255.0 { option routers 10.1.0.1; }"), nil)
		},
		"Kea, of all": func() (*Document, error) {
			return Kea([]byte(`{"Dhcp4":{"option-data":[{"name":"routers","data":"10.2.0.1, 10.1.0.1"}],"subnet4":[{"subnet":"10.1.0.0/24"}]}}`), nil)
		},
		"Kea, of a shared network": func() (*Document, error) {
			return Kea([]byte(`{"Dhcp4":{"option-data":[{"name":"routers","data":"10.1.0.9"}],"shared-networks":[{"name":"x",`+
				`"option-data":[{"code":3,"data":"10.1.0.1"}],"subnet4":[{"subnet":"10.1.0.0/24"}]}]}}`), nil)
		},
		"Kea, by its number": func() (*Document, error) {
			return Kea([]byte(`{"Dhcp4":{"subnet4":[{"subnet":"10.1.0.0/24","option-data":[{"code":3,"data":"10.1.0.1"}]}]}}`), nil)
		},
	} {
		d, err := read()
		if lines, notes := words(t, d, err); len(lines) == 0 || !strings.Contains(lines[0], `"gateway":"10.1.0.1"`) {
			t.Errorf("%s: %s, without %s", name, lines, notes)
		}
	}
}

// TestGatewaysStay checks that an existing network keeps its gateway if the file sets none, and that a new network gets none.
func TestGatewaysStay(t *testing.T) {
	for _, file := range []string{"subnet 10.1.0.0 netmask 255.255.255.0 { }",
		"subnet 10.1.0.0 netmask 255.255.255.0 { option routers gate.example; }"} {
		d, err := Dhcpd([]byte(file), nil)
		if lines, _ := words(t, d, err, "10.1.0.0/24"); len(lines) != 1 || strings.Contains(lines[0], "gateway") {
			t.Errorf("%s: %s", file, lines)
		}
		d, err = Dhcpd([]byte(file), nil)
		if lines, _ := words(t, d, err); len(lines) != 1 || !strings.Contains(lines[0], `"gateway":null`) {
			t.Errorf("%s, new: %s", file, lines)
		}
	}
	// phpIPAM exports gateways with the addresses, in another file.
	d, err := Phpipam("", []byte("IP address,Is gateway\n10.1.0.254,Yes\n10.9.0.1,Yes\n"))
	lines, notes := words(t, d, err, "10.1.0.0/24")
	if !slices.Equal(lines, []string{`{"gateway":"10.1.0.254","range":"10.1.0.0/24","type":"IPv4Network"}`}) ||
		!slices.Equal(notes, []string{"line 3 (10.9.0.1): the gateway 10.9.0.1 is not in any network: create the network first"}) {
		t.Errorf("%s, without %s", lines, notes)
	}
}

// TestExistingGatewayIsNotImported checks that an existing gateway is not imported as another address, and that a host is not given an
// edge address.
func TestExistingGatewayIsNotImported(t *testing.T) {
	d, err := Phpipam("", []byte("IP address,Hostname\n10.1.0.9,gate\n10.1.0.10,host\n10.1.0.255,all\n"))
	if lines, notes := words(t, d, err, "10.1.0.0/24 10.1.0.9"); len(lines) != 1 || !strings.Contains(lines[0], `"10.1.0.10"`) || len(notes) != 2 {
		t.Errorf("%s, without %s", lines, notes)
	}
	d = &Document{Resources: []Resource{{"type": "HostRecord", "absoluteName": "bc.example", "addresses": []string{"10.1.0.255"}},
		{"type": "HostRecord", "absoluteName": "two.example", "addresses": []string{"10.1.0.255", "10.1.0.7"}}}}
	if lines, notes := words(t, d, nil, "10.1.0.0/24"); len(lines) != 3 || strings.Contains(lines[0], "255") || len(notes) != 0 {
		t.Errorf("%s, without %s", lines, notes)
	}
	d, err = Phpipam("", []byte("Subnet,Mask\n10.1.0.0,24\n"), []byte("IP address,Is gateway\n10.1.0.0,1\n"))
	if lines, notes := words(t, d, err); len(lines) != 1 || !strings.Contains(lines[0], `"gateway":null`) || len(notes) != 1 {
		t.Errorf("%s, without %s", lines, notes)
	}
}

// TestReservedRouterReplacesGateway checks that a router with a reservation is imported into a network that has it as its gateway.
func TestReservedRouterReplacesGateway(t *testing.T) {
	d, err := Kea([]byte(`{"Dhcp4":{"subnet4":[{"subnet":"10.1.0.0/24","option-data":[{"name":"routers","data":"10.1.0.1"}],"reservations":[
		{"hw-address":"00:00:5e:00:53:03","ip-address":"10.1.0.1","hostname":"router"}]}]}}`), nil)
	lines, notes := words(t, d, err, "10.1.0.0/24 10.1.0.1")
	if len(lines) != 3 || !strings.Contains(lines[0], `"gateway":null`) || !strings.Contains(lines[1], `"DHCP_RESERVED"`) ||
		!slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, "the router 10.1.0.1 has a reservation") }) {
		t.Errorf("there are %s, with %q", strings.Join(lines, "\n"), notes)
	}
}

// TestInvalidRowsAreSkipped checks that each invalid row is skipped with a note and that the rest is imported.
func TestInvalidRowsAreSkipped(t *testing.T) {
	d, err := Kea([]byte(`{"Dhcp4":{"subnet4":[{"subnet":"10.1.0.0/24","option-data":[{"name":"routers","data":"10.1.0.1"}],"reservations":[
		{"hw-address":"0:0:c0:5d:bd:95","ip-address":"10.1.0.9","hostname":"one"},
		{"hw-address":"00:00:5e:00:53:02","ip-address":"10.1.0.9","hostname":"two"},
		{"hw-address":"00:00:5e:00:53:03","ip-address":"10.1.0.1","hostname":"router"},
		{"hw-address":"00:00:5e:00:53:04","ip-address":"10.1.0.255"},{"hw-address":"00:00:5e:00:53:05","ip-address":"10.1.0.0"},
		{"duid":"00:01:02","ip-address":"10.1.0.20"},{"hw-address":"00:00:5e:00:53:06","ip-address":"999.1.1.1"}]}]},
		"Dhcp6":{"subnet6":[{"subnet":"2001:db8::/64","reservations":[{"duid":"1:2","prefixes":["2001:db8:1::/48"]}]}]}}`), nil)
	lines, notes := words(t, d, err)
	if len(lines) != 6 || !strings.Contains(lines[2], `"10.1.0.9"`) || !strings.Contains(lines[2], `"one"`) ||
		!strings.Contains(lines[4], `"RESERVED"`) ||
		!strings.Contains(lines[0], `"gateway":null`) || !strings.Contains(lines[3], `"10.1.0.1"`) || // a router with a reservation
		!strings.Contains(lines[5], `"name":"router","type":"DHCPv4ClientOption","value":["10.1.0.1"]`) {
		t.Errorf("there are %s", strings.Join(lines, "\n"))
	}
	for _, want := range []string{"reservation number 2 of subnet 10.1.0.0/24 (10.1.0.9): it has the same key as reservation number 1 of",
		"(10.1.0.255): the address is the first or the last",
		"(10.1.0.0): the address is the first or the last",
		"DUIDs of clients of IPv4", "(999.1.1.1): \"999.1.1.1\" is not an IP address: correct the reservation",
		"it reserves prefixes alone (2001:db8:1::/48)"} {
		if !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, want) }) {
			t.Errorf("it is not said that left out is %q: %q", want, notes)
		}
	}
}

// TestDUIDs checks that DUIDs are read in all notations of Kea and dhcpd.
func TestDUIDs(t *testing.T) {
	for text, want := range map[string]string{"1:2:3:a:b": "0102030A0B", "01:02:03:0A:0b": "0102030A0B", "01-02-03": "010203",
		"01 02 03": "010203",
		"0x010203": "010203", "'abc'": "616263", "0102030a": "0102030A", "01:2": "", "1": "", "123:45": "", "xx:yy:zz": "", "'": ""} {
		got, err := keptDUID(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestUnreadableEncodingsAreSkipped checks that rows in another encoding are skipped by name.
func TestUnreadableEncodingsAreSkipped(t *testing.T) {
	d, err := Phpipam("", []byte("Subnet,Mask,Description\n10.1.0.0,24,B\xfcro\n"))
	if err != nil {
		t.Fatal(err)
	}
	if lines, notes := words(t, d, nil); len(lines) != 0 || len(notes) != 1 || !strings.Contains(notes[0],
		"line 2 (10.1.0.0): the name \"B\\xfcro\" is not valid UTF-8") {
		t.Errorf("it is %s, without %s", lines, notes)
	}
	if _, err := Kea([]byte("{\"Dhcp4\":{\"subnet4\":[{\"subnet\":\"10.1.0.0/24\",\"user-context\":"+
		"{\"name\":\"B\xfcro\"}}]}}"), nil); err == nil ||
		!strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("Kea's: %v", err)
	}
}
