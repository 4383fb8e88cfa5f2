package test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// testCase returns the path of a file of a case.
func testCase(name, file string) string { return filepath.Join("testdata", "cases", name, file) }

// records lists the records of a view, one per line: name, type and data.
func (m *manager) records() (all []string) {
	m.t.Helper()
	_, text, err := m.call("GET", "/resourceRecords?limit=1000", "")
	var list struct {
		Data []struct {
			Type, AbsoluteName, Text, RecordType, Rdata string
			TTL                                         *int64
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &list)
	}
	if err != nil {
		m.t.Fatal(text, err)
	}
	for _, r := range list.Data {
		if r.Type != "GenericRecord" {
			r.RecordType = ""
		}
		if r.Type != "ExternalHostRecord" {
			all = append(all, strings.Join(strings.Fields(strings.Join([]string{r.AbsoluteName, r.Type, r.RecordType, r.Text + r.Rdata}, " ")), " "))
		}
	}
	slices.Sort(all)
	return all
}

// TestCases imports inputs that failed for users, each twice. The second import must change nothing.
func TestCases(t *testing.T) {
	t.Parallel()
	offline := func(args ...string) func(*manager) []string {
		return func(m *manager) []string { return append(args, m.where...) }
	}
	online := func(args ...string) func(*manager) []string { return func(*manager) []string { return args } }
	for name, c := range map[string]struct {
		command func(m *manager) []string
		// stops reports that the manager must not run during the command.
		stops bool
		code  int
		says  []string
		// records are the expected records; nil skips the check.
		records []string
		// has are texts in the exported configuration. hasNot are texts that must not be in it.
		has, hasNot []string
	}{
		"idn-underscore-import": {command: offline("import", "zone", testCase("idn-underscore-import", "idn.zone"), "--origin", "müller.example",
			"--view", "internal"), stops: true,
			records: []string{"*.apps.xn--mller-kva.example GenericRecord A 192.0.2.4", "_dmarc.xn--mller-kva.example TXTRecord v=DMARC1; p=none",
				"host._tcp.xn--mller-kva.example GenericRecord A 192.0.2.5", "www.xn--mller-kva.example GenericRecord A 192.0.2.6",
				"xn--mller-kva.example GenericRecord NS ns1.example.net."}},
		"generate-ttl": {command: offline("import", "zone", testCase("generate-ttl", "example.com.zone"), "--origin", "example.com", "--view",
			"internal"), stops: true,
			records: []string{"example.com GenericRecord NS ns1.example.com.", "host-1.example.com GenericRecord A 192.0.2.1",
				"host-2.example.com GenericRecord A 192.0.2.2",
				"ns1.example.com GenericRecord A 192.0.2.53", "plain.example.com GenericRecord A 192.0.2.9"}},
		"include": {command: offline("import", "zone", testCase("include", "example.com.zone"), "--origin", "example.com", "--view",
			"internal"), stops: true,
			records: []string{"example.com GenericRecord NS ns1.example.com.", "ns1.example.com GenericRecord A 192.0.2.53",
				"www.example.com GenericRecord A 192.0.2.80"}},
		"include by named.conf": {command: offline("import", "bind", testCase("include", "named.conf"), "-y"), stops: true,
			records: []string{"example.com GenericRecord NS ns1.example.com.", "ns1.example.com GenericRecord A 192.0.2.53",
				"www.example.com GenericRecord A 192.0.2.80"}},
		"escaped-owner": {command: offline("import", "zone", testCase("escaped-owner", "example.com.zone"), "--origin", "example.com", "--view",
			"internal"), stops: true,
			records: []string{`Lab\032Printer._ipp._tcp.example.com SRVRecord`, `Lab\032Printer._ipp._tcp.example.com TXTRecord txtvers=1`,
				`_ipp._tcp.example.com GenericRecord PTR Lab\032Printer._ipp._tcp.example.com.`, "example.com GenericRecord NS ns1.example.com.",
				`first\.last.example.com TXTRecord dot in a label`, "ns1.example.com GenericRecord A 192.0.2.53"}},
		"rfc3597-types": {command: offline("import", "zone", testCase("rfc3597-types", "example.com.zone"), "--origin", "example.com", "--view",
			"internal"), stops: true,
			records: []string{"_25._tcp.mail.example.com GenericRecord SMIMEA 3 0 0 308202", "example.com GenericRecord CSYNC 66 3 A NS AAAA",
				"example.com GenericRecord NS ns1.example.com.",
				"example.com GenericRecord ZONEMD 1 1 1 " +
					"aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899",
				"key.example.com GenericRecord OPENPGPKEY AQIDBAU=", "mac.example.com GenericRecord EUI48 00-00-5e-00-53-2a",
				"mac.example.com GenericRecord EUI64 00-00-5e-ef-10-00-00-2a", "node.example.com GenericRecord L64 10 2001:0DB8:1140:1000",
				"node.example.com GenericRecord NID 10 0014:4fff:ff20:ee64", "ns1.example.com GenericRecord A 192.0.2.53", `priv.example.com GenericRecord TYPE65280 \# 4 0a000001`}},
		"infoblox-txt-quotes": {command: online("import", "infoblox", testCase("infoblox-txt-quotes", "export.csv"), "--view", "internal", "-y"),
			records: []string{"example.com TXTRecord v=spf1 -all", `two.example.com GenericRecord TXT "part one" "part two"`}},
		"infoblox-one-row-refuses-all": {command: online("import", "infoblox", testCase("infoblox-one-row-refuses-all", "export.csv"), "--view",
			"internal", "-y"),
			records: []string{"cloud.example.com GenericRecord A 203.0.113.9", "good.example.com HostRecord",
				"my_host.example.com GenericRecord A 192.0.2.11"}},
		"phpipam-vrfs": {command: online("import", "phpipam", testCase("phpipam-vrfs", "subnets.csv"),
			testCase("phpipam-vrfs", "addresses.csv"), "-y"), code: 2, says: []string{"there are the VRFs ALPHA, BETA: choose one by --vrf"},
			hasNot: []string{"192.0.2."}},
		"phpipam-vrfs, one": {command: online("import", "phpipam", testCase("phpipam-vrfs", "subnets.csv"),
			testCase("phpipam-vrfs", "addresses.csv"), "--vrf", "BETA", "-y"), says: []string{"left out: rows of the VRF ALPHA"},
			has:    []string{`"192.0.2.0/24"`, `"beta"`, `"192.0.2.10"`, `"beta-gw"`, `"192.0.2.11"`, `"beta-only"`},
			hasNot: []string{"alpha"}},
		"dhcpd6-temporary": {command: online("import", "dhcpd", testCase("dhcpd6-temporary", "dhcpd6.conf"), "-y"),
			says: []string{"left out: the range 2001:db8:0:1::/64 of temporary"},
			has:  []string{`"2001:db8:0:1::/64"`, `"2001:db8:0:1::100-2001:db8:0:1::1ff"`}, hasNot: []string{"2001:db8:0:1::1-"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := serve(t, "")
			m.setEnvironment()
			m.portolan("create", "configuration", "name=main")
			m.portolan("create", "view", "name=internal")
			if c.stops {
				if err := m.process.signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			var first string
			for i := range 2 {
				code, text := m.wrong(c.command(m)...)
				if code != c.code {
					t.Fatalf("it ends with %d\n%s", code, text)
				}
				for _, want := range c.says {
					if !strings.Contains(text, want) {
						t.Errorf("it does not say %q:\n%s", want, text)
					}
				}
				if c.stops {
					m.start()
				}
				all := m.portolan("export", "configurations/main", "-o", "json")
				if i == 0 {
					first = all
				} else if all != first {
					t.Errorf("imported again, there is\n%s\nafter the first time there was\n%s", all, first)
				}
				if c.stops && i == 0 {
					if err := m.process.signal(syscall.SIGTERM); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, want := range c.has {
				if !strings.Contains(first, want) {
					t.Errorf("there is no %s in\n%s", want, first)
				}
			}
			for _, other := range c.hasNot {
				if strings.Contains(first, other) {
					t.Errorf("there is %s in\n%s", other, first)
				}
			}
			if got := m.records(); c.records != nil && !slices.Equal(got, c.records) {
				t.Errorf("there are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.records, "\n"))
			}
			m.check()
		})
	}
}

// TestNetboxAddressesOutside checks that NetBox addresses outside of all networks are skipped with their names, each with a line, and that
// the others are imported, also if the token may not read VLANs.
func TestNetboxAddressesOutside(t *testing.T) {
	t.Parallel()
	lists := map[string]string{
		"/api/ipam/aggregates/":   `[]`,
		"/api/ipam/vlan-groups/":  `[]`,
		"/api/ipam/prefixes/":     `[{"prefix":"192.0.2.0/24","status":{"value":"active"}},{"prefix":"192.0.2.0/26","status":{"value":"active"}},{"prefix":"198.51.100.0/24","status":{"value":"active"}}]`,
		"/api/ipam/ip-ranges/":    `[]`,
		"/api/ipam/ip-addresses/": `[{"address":"198.51.100.10/24","status":{"value":"active"},"dns_name":"good.example.com"},{"address":"198.51.100.11/24","status":{"value":"active"},"dns_name":"my_host.example.com"},{"address":"192.0.2.200/24","status":{"value":"active"},"dns_name":"in-parent.example.com"},{"address":"203.0.113.1/32","status":{"value":"active"},"dns_name":"orphan.example.com"}]`,
	}
	netbox := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lists[r.URL.Path] == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"next":null,"results":` + lists[r.URL.Path] + `}`))
	}))
	defer netbox.Close()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "view", "name=internal")
	command := []string{"import", "netbox", "--from", netbox.URL, "--from-token", "x", "--view", "internal", "-y"}
	for range 2 {
		code, text := m.wrong(command...)
		if code != 3 {
			t.Fatalf("it ends with %d\n%s", code, text)
		}
		for _, want := range []string{"skipped: /api/ipam/vlans/: the token may not read this list",
			"skipped: ip-addresses number 3 (192.0.2.200/24): 192.0.2.200 is not in any network",
			"the name orphan.example.com of the address 203.0.113.1",
			"my_host.example.com", "portolan: 4 rows were skipped"} {
			if !strings.Contains(text, want) {
				t.Errorf("it does not say %q:\n%s", want, text)
			}
		}
	}
	if got := m.records(); !slices.Equal(got, []string{"good.example.com HostRecord"}) {
		t.Errorf("there are %s", got)
	}
	if code, text := m.wrong(append(command, "--strict")...); code != 1 || !strings.Contains(text, "nothing was imported") {
		t.Errorf("strictly it ends with %d %s", code, text)
	}
	m.check()
}

// TestSmallNetworks checks that networks with one or two host addresses (RFC 3021) get no gateway, so that all addresses can be assigned.
func TestSmallNetworks(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "block", "range=192.0.2.0/24")
	for network, addresses := range map[string]int{"192.0.2.0/31": 2, "192.0.2.8/32": 1, "192.0.2.16/30": 1} {
		m.portolan("create", "network", "range="+network)
		for range addresses {
			m.says([]string{"192.0.2."}, "assign", "networks/"+network)
		}
		if code, text := m.wrong("assign", "networks/"+network); code == 0 {
			t.Errorf("%s has one address more: %s", network, text)
		}
	}
}

// TestPlacesInSeveralConfigurations checks that the parent of a new resource is searched in the named configuration.
func TestPlacesInSeveralConfigurations(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	for _, name := range []string{"A", "B"} {
		m.portolan("create", "configuration", "name="+name)
		m.portolan("create", "view", "name=internal", "--configuration", name)
		m.portolan("create", "zone", "absoluteName=example.com", "--configuration", name, "--view", "internal")
	}
	m.portolan("create", "DNSOption", "--in", "zones/example.com", "name=notify", "value=no", "--configuration", "B")
	m.says([]string{"notify"}, "list", "zones/example.com/deploymentOptions", "--configuration", "B")
	if text := m.portolan("list", "zones/example.com/deploymentOptions", "--configuration", "A", "--total"); text != "0" {
		t.Errorf("the zone of A has %s options", text)
	}
}
