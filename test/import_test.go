package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sample returns the path of an export of another program.
func sample(name string) string { return filepath.Join("testdata", "import", name) }

// TestImportsOfOtherPrograms reads, tries and imports exports of other programs. Unsupported data is noted, and a second import changes
// nothing.
func TestImportsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		made []string // the expected resources
		says []string // what the dry run leaves out, and some of what it creates
		code int      // the exit code; 3 if rows are skipped
	}{
		{[]string{"dhcpd", sample("dhcpd.conf")},
			[]string{"networks/10.1.0.0/24 gateway 10.1.0.254", "networks/10.1.1.0/24 name offices",
				"addresses/10.1.0.10 macAddress 00-00-5E-00-53-01",
				"macAddresses/00-00-5E-00-53-01 type MACAddress", "macAddresses/00005e005301 type MACAddress",
				"addresses/10.1.0.11 name scan-1", "ranges/10.1.0.100-10.1.0.149 type IPv4DHCPRange",
				"ranges/10.1.0.150-10.1.0.199 type IPv4DHCPRange",
				"networks/192.0.2.0/25 type IPv4Network", "networks/2001:db8:1::/64 type IPv6Network",
				"ranges/2001:db8:1:0:8000::-2001:db8:1:0:bfff:ffff:ffff:ffff type IPv6DHCPRange",
				"addresses/2001:db8:1::10 reservedUsing CLIENT_DUID"},
			[]string{"temporary addresses", "dhcpd.extra", "www.lab.example is a host name, which the server resolves", "the failover pair",
				"+ DHCPv4ClientOption dns-server", "+ DHCPv4ServiceOption default-lease-time", "+ Tag offices"}, 3},
		{[]string{"kea", sample("kea.conf")},
			[]string{"networks/10.1.0.0/24 gateway 10.1.0.254", "networks/10.1.1.0/24 name offices",
				"ranges/10.1.0.208-10.1.0.223 type IPv4DHCPRange",
				"addresses/10.1.0.10 name printer", "addresses/10.1.0.11 state DHCP_RESERVED", "addresses/10.1.1.5 state DHCP_RESERVED",
				"ranges/2001:db8:1::1-2001:db8:1::ffff:ffff type IPv6DHCPRange",
				"addresses/2001:db8:1::1:10 reservedUsing CLIENT_DUID",
				"addresses/2001:db8:1::1:11 state STATIC"},
			[]string{"2001:db8:1:: of a pool, which is not a host address of", "circuit-id and flex-id", "interfaces-config",
				"renew-timer and rebind-timer",
				"+ DHCPv4ClientOption log-server"}, 0},
		{[]string{"infoblox", sample("infoblox.csv"), "--view", "internal"},
			[]string{"blocks/10.0.0.0/8 name Harbour", "networks/10.1.0.0/24 name Office, first floor",
				"addresses/10.1.0.22 macAddress 00-00-5E-00-53-09",
				"records/web.lab.example type AliasRecord", "records/ftp.lab.example type HostRecord", "records/www.lab.example ttl 300",
				"ranges/10.1.0.100-10.1.0.199 name pool", "addresses/10.1.0.40 name quiet", "addresses/10.1.0.41 macAddress 00-00-5E-00-53-0B"},
			[]string{"reverse zones", "rows of the kind naptrrecord", "not configured for DNS"}, 3},
		{[]string{"phpipam", sample("phpipam-subnets.csv"), sample("phpipam-addresses.csv")},
			[]string{"blocks/10.0.0.0/8 name Harbour", "networks/10.1.0.0/24 gateway 10.1.0.254", "addresses/10.1.0.10 name printer.lab.example",
				"addresses/10.1.0.11 state RESERVED", "networks/2001:db8:1::/64 name Office six", "addresses/10.1.0.12 state STATIC",
				"addresses/2001:db8:1::5 state STATIC"},
			[]string{"it is a folder", "the state reserved of IPv6 addresses", "column vlan", "assigned by DHCP", "state Broken"}, 3},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			t.Parallel()
			m := serve(t, "")
			m.setEnvironment()
			m.portolan("create", "configuration", "name=main")
			m.portolan("create", "view", "name=internal")
			command := append([]string{"import"}, c.args...)
			code, text := m.wrong(append(command, "--dry-run")...)
			if code != c.code || !strings.Contains(text, "dry run: ") {
				t.Fatalf("tried, it ends with %d\n%s", code, text)
			}
			for _, note := range c.says {
				if !strings.Contains(text, note) {
					t.Errorf("it does not say %q:\n%s", note, text)
				}
			}
			if text := m.portolan("list", "networks", "--total"); text != "0" {
				t.Errorf("tried, it made %s networks", text)
			}
			m.ends(c.code, ", transaction ", command...)
			m.ends(c.code, "no changes", command...)
			for _, want := range c.made {
				path, rest, _ := strings.Cut(want, " ")
				field, value, _ := strings.Cut(rest, " ")
				if text := m.portolan("get", path); !strings.Contains(strings.Join(strings.Fields(text), " "), field+" "+value) {
					t.Errorf("%s is\n%s\nwithout %s %s", path, text, field, value)
				}
			}
			// The written document has the same content.
			file := filepath.Join(t.TempDir(), "document.yaml")
			m.ends(c.code, "", append(command, "--write", file, "--configuration", "main")...)
			m.says([]string{"no changes"}, "apply", "-f", file)
			m.check()
		})
	}
}

// TestImportNetbox checks that NetBox is read page by page, and that its token is sent to NetBox only.
func TestImportNetbox(t *testing.T) {
	t.Parallel()
	lists := map[string][]string{
		"/api/ipam/aggregates/": {`{"prefix":"10.0.0.0/8"}`, `{"prefix":"172.16.0.0/12"}`},
		"/api/ipam/prefixes/": {`{"prefix":"10.1.0.0/16","status":{"value":"container"},"description":"Harbour"}`,
			`{"prefix":"10.1.0.0/24","status":{"value":"active"},"description":"Office","custom_fields":{"rack":"A7"}}`,
			`{"prefix":"10.2.0.0/24","status":{"value":"active"},"vrf":{"name":"blue"}}`},
		"/api/ipam/ip-ranges/": {`{"start_address":"10.1.0.100/24","end_address":"10.1.0.199/24"}`},
		"/api/ipam/ip-addresses/": {`{"address":"10.1.0.10/24","status":{"value":"active"},"dns_name":"printer.lab.example"}`,
			`{"address":"10.1.0.11/24","status":{"value":"active"},"dns_name":"printer.lab.example"}`,
			`{"address":"10.1.0.12/24","status":{"value":"reserved"},"description":"later"}`, `{"address":"10.1.0.13/24","status":{"value":"dhcp"}}`},
	}
	netbox := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Token secret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		all, page := lists[r.URL.Path], map[string]any{"next": nil}
		begin := 0
		if r.URL.Query().Get("offset") == "1" {
			begin = 1
		}
		var results []json.RawMessage
		for _, one := range all[begin:] {
			results = append(results, json.RawMessage(one))
		}
		if begin == 0 && len(all) > 1 {
			results, page["next"] = results[:1], "http://"+r.Host+r.URL.Path+"?offset=1"
		}
		page["results"] = results
		_ = json.NewEncoder(w).Encode(page) // the client reports missing data
	}))
	defer netbox.Close()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "view", "name=internal")
	command := []string{"import", "netbox", "--from", netbox.URL, "--from-token", "secret", "--view", "internal", "--vrf", "global"}
	code, text := m.wrong(append(command, "-n")...)
	if code != 3 || !strings.Contains(text, "custom field rack") || !strings.Contains(text, "the VRF blue") || !strings.Contains(text,
		"DHCP or SLAAC") {
		t.Errorf("tried, it ends with %d\n%s", code, text)
	}
	for _, want := range []string{"+ IPv4Block 10.1.0.0/16", "+ IPv4Network 10.1.0.0/24", "+ HostRecord printer.lab.example"} {
		m.ends(3, want, append(command, "-n")...)
	}
	m.ends(3, "9 created", command...)
	m.ends(3, "no changes", command...)
	m.says([]string{"Harbour"}, "get", "blocks/10.1.0.0/16")
	m.says([]string{"RESERVED"}, "get", "addresses/10.1.0.12")
	if code, text := m.wrong("import", "netbox", "--from", netbox.URL, "--from-token", "wrong"); code != 1 || !strings.Contains(text, "403") {
		t.Errorf("a wrong token is %d %s", code, text)
	}
	m.check()
}

// TestImportBind checks that BIND's views and zones are imported, each zone from its file.
func TestImportBind(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "block", "range=10.0.0.0/8")
	m.portolan("create", "network", "range=10.1.0.0/24")
	command := append([]string{"import", "bind", sample("bind/named.conf")}, m.where...)
	for _, want := range []string{"dry run: lab.example into the view internal", "lab.example into the view external", "resources created",
		`no zone of the type "secondary"`, "left out: the reverse zone 1.10.in-addr.arpa"} {
		m.ends(3, want, append(command, "-n")...)
	}
	for _, list := range []string{"zones", "views", "resourceRecords"} {
		if text := m.portolan("list", list, "--total"); text != "0" {
			t.Errorf("tried, it made %s %s", text, list)
		}
	}
	m.ends(3, "imported lab.example into the view internal", command...)
	m.ends(3, "imported lab.example into the view external", command...)
	m.says([]string{"10.1.0.20"}, "list", "records/www.lab.example/addresses", "--view", "internal")
	// The SOA in the file may be that of another zone.
	dir := t.TempDir()
	for name, text := range map[string]string{
		"named.conf": `options { directory "` + dir + `"; }; zone "quay.example" { type primary; file "db"; };`,
		"db": "$ORIGIN elsewhere.example.\n@ 3600 SOA ns.elsewhere.example. admin.quay.example. 7 1 2 3 4\n" +
			"@ 3600 NS ns.elsewhere.example.\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := append([]string{"import", "bind", filepath.Join(dir, "named.conf")}, m.where...)
	for _, flag := range []string{"-n", "--view=internal"} {
		m.ends(3, "has the SOA of elsewhere.example.", append(other, flag)...)
		m.ends(1, "has the SOA of elsewhere.example.", append(other, flag, "--strict")...)
	}
	// A missing include file is skipped. A zone of the view that named.conf does not contain is listed.
	part := filepath.Join(dir, "part.conf")
	if err := os.WriteFile(part, []byte(`include "none.conf"; options { directory "`+filepath.Dir(sample("bind/named.conf"))+`"; };`+
		` zone "other.example" { type primary; file "`+filepath.Join(dir, "other")+`"; };`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), []byte("@ 3600 SOA ns admin 7 1 2 3 4\n@ 3600 NS ns\nns A 10.1.0.54\n"+
		"gone A 10.1.0.55\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	included := append([]string{"import", "bind", part, "--view=internal"}, m.where...)
	m.ends(3, "none.conf: the file does not exist: its zones are not imported: add the file", included...)
	m.ends(3, "not in an imported zone, kept: zone lab.example (view internal)", included...)
	// An address is listed if its last record is pruned.
	if err := os.WriteFile(filepath.Join(dir, "other"), []byte("@ 3600 SOA ns admin 7 1 2 3 4\n@ 3600 NS ns\nns A 10.1.0.54\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	m.ends(3, "note: the address 10.1.0.55 no longer has a record but stays assigned", append(included, "--prune", "-y")...)
	// A zone that was created as the parent of another one gets the SOA of its file.
	for i, name := range []string{"sub.kid.example", "kid.example"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("@ 3600 SOA ns admin 7 3601 601 604801 301\n@ 3600 NS ns\nns A 10.1.0.5"+strconv.Itoa(6+i)+"\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		m.says([]string{"imported " + name}, append([]string{"import", "zone", file, "--origin", name, "--view", "internal"}, m.where...)...)
	}
	m.says([]string{"3601 601 604801 301"}, append([]string{"export", "zone", "kid.example", "--view", "internal"}, m.where...)...)
	// If a zone is imported after its parent, its records and name servers move from the parent.
	for name, text := range map[string]string{
		"both.conf": `options { directory "` + dir + `"; }; zone "top.example" { type primary; file "top"; };` +
			`zone "low.top.example" { type primary; file "low"; };`,
		"top": "@ 3600 SOA ns admin 7 1 2 3 4\n@ 3600 NS ns\nns A 10.1.0.60\nlow NS ns.low\nns.low A 10.1.0.61\n",
		"low": "@ 3600 SOA ns admin 7 1 2 3 4\n@ 3600 NS ns\nns A 10.1.0.61\nwww A 10.1.0.62\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	both := append([]string{"import", "bind", filepath.Join(dir, "both.conf"), "--view=internal"}, m.where...)
	m.says([]string{"imported low.top.example into the view internal", "2 names changed"}, both...)
	m.says([]string{"low.top.example.	3600	IN	NS	ns.low.top.example.", "ns.low.top.example.	3600	IN	A	10.1.0.61",
		"www.low.top.example.	3600	IN	A	10.1.0.62"}, append([]string{"export", "zone", "low.top.example", "--view", "internal"}, m.where...)...)
	m.says([]string{" 0 resources created"}, both...)
	// Bytes that are not UTF-8 are kept, and are imported once.
	for name, text := range map[string]string{
		"named.conf": `options { directory "` + dir + `"; }; zone "latin.example" { type primary; file "db"; };`,
		"db":         "@ 3600 SOA ns.latin.example. admin.latin.example. 7 1 2 3 4\n@ 3600 NS ns\nns A 10.1.0.53\ntxt TXT \"B\xfcro\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, says := range []string{"imported latin.example", " 0 resources created"} {
		m.says([]string{says}, append(other, "--view=internal")...)
	}
	m.says([]string{`"B\252ro"`}, append([]string{"export", "zone", "latin.example", "--view", "internal"}, m.where...)...)
	// The export contains the imported SOA, even before a server serves the zone.
	m.says([]string{"hostmaster.lab.example. 2026010102 7200 900 1209600 300"},
		append([]string{"export", "zone", "lab.example", "--view", "internal"}, m.where...)...)
	m.says([]string{"192.0.2.20"}, "list", "resourceRecords", "--view", "external", "-o", "yaml")
	m.check()
}

// TestImportsRefuse checks that unreadable files are rejected, and with --strict also files with rows that would be skipped. Nothing is
// changed.
func TestImportsRefuse(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	dir, before := t.TempDir(), m.portolan("list", "blocks", "--total")
	for name, c := range map[string]struct{ kind, text, says string }{
		"braces": {"dhcpd", "subnet 10.0.0.0 netmask 255.0.0.0 {\n", "line 2"},
		"mask": {"dhcpd", "subnet 10.0.0.1 netmask 255.0.0.0 {}\n",
			"line 1 (subnet 10.0.0.1 netmask 255.0.0.0): 10.0.0.1/255.0.0.0 is not a subnet"},
		"range": {"dhcpd", "subnet 10.0.0.0 netmask 255.0.0.0 { range 11.0.0.1 11.0.0.2; }",
			"line 1 (range 11.0.0.1 11.0.0.2): 11.0.0.1 to 11.0.0.2"},
		"quotes":  {"dhcpd", "option x \"", "does not end"},
		"comment": {"dhcpd", "/* ", "does not end"},
		"mac":     {"dhcpd", "host a { hardware ethernet 1:2; fixed-address 10.0.0.1; }", "not a hardware address"},
		"json":    {"kea", "/* settings\n of Kea */ {\n\"Dhcp4\": { ]", "line 3: invalid JSON"},
		"kind":    {"kea", "{\"Dhcp4\": {\n\"subnet4\": 7}}", "line 2 (subnet4): it must be an array, not a JSON number"},
		"nothing": {"kea", "{}", "neither Dhcp4 nor Dhcp6"},
		"pool":    {"kea", `{"Dhcp4":{"subnet4":[{"subnet":"10.0.0.0/8","pools":[{"pool":"x"}]}]}}`, "not a range"},
		"header":  {"infoblox", "network,10.0.0.0,8\n", "header-network"},
		"csv":     {"phpipam", "a,b\n1,2\n", "neither a column Subnet"},
		"subnet":  {"phpipam", "Subnet,Mask\n10.0.0.0,x\n", "line 2"},
		"name": {"phpipam", "Subnet,Mask,Description\n10.0.0.0,24," + strings.Repeat("x", 300) + "\n10.1.0.0,24,x\n",
			"skipped: line 2 (10.0.0.0): "},
		"no file":  {"kea", "", "does not exist"},
		"no block": {"dhcpd", "option x y;", "contains nothing to import"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if name != "no file" {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if code, text := m.wrong("import", c.kind, path, "--strict"); code == 0 || !strings.Contains(text, c.says) {
			t.Errorf("%s ends with %d, and says %s", name, code, text)
		}
	}
	if text := m.portolan("list", "blocks", "--total"); text != before {
		t.Errorf("there are %s blocks, before there were %s", text, before)
	}
}

// TestImportListsMissingResources checks that a later import lists resources missing in the source. --prune deletes them after
// confirmation, in this configuration only.
func TestImportListsMissingResources(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		m.portolan("create", "configuration", "name="+name)
	}
	m.portolan("create", "tagGroup", "name=sources")
	m.portolan("create", "tag", "name=ipam", "--in", "tagGroups/sources")
	run := func(code int, configuration, subnets, addresses string, flags ...string) string {
		t.Helper()
		files := []string{filepath.Join(dir, "subnets"), filepath.Join(dir, "addresses")}
		for i, text := range []string{"Subnet,Mask,Description\n" + subnets, "IP address,hostname,mac\n" + addresses} {
			if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, out := m.wrong(append([]string{"import", "phpipam", files[0], files[1], "--configuration", configuration, "--tag", "tags/ipam"},
			flags...)...)
		if got != code {
			t.Fatalf("%q ends with %d, want %d\n%s", flags, got, code, out)
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
	const subnets, addresses = "10.1.0.0,24,office\n10.2.0.0,24,lab\n", "10.1.0.5,h5,00:00:5e:00:53:05\n10.1.0.6,h6,\n"
	for _, configuration := range []string{"one", "two"} {
		run(0, configuration, subnets, addresses, "-y")
	}
	later := []string{"10.1.0.0,24,office\n", "10.1.0.5,h5,\n"}
	says(run(0, "one", later[0], later[1], "-y"), "not in the source, kept (--prune deletes it): IPv4Network 10.2.0.0/24",
		"not in the source, kept (--prune deletes it): IPv4Address 10.1.0.6",
		"empty in the source, kept (--prune removes it): IPv4Address 10.1.0.5: macAddress")
	says(run(2, "one", later[0], later[1], "--prune"), "then add --yes")
	says(run(3, "one", later[0]+"10.9.0.0,x,bad\n", later[1], "--prune", "-y"), "nothing is deleted", "skipped 1: ")
	says(run(0, "one", later[0], later[1], "--prune", "-y"), "2 deleted")
	says(run(0, "one", later[0], later[1], "--prune", "-y"), "no changes")
	if text := m.portolan("list", "networks", "--total"); text != "3" {
		t.Errorf("there are %s networks", text)
	}
	says(run(2, "three", later[0], later[1], "-y"), "does not exist; existing configurations")
	code, out := m.wrong("import", "phpipam", filepath.Join(dir, "subnets"), "-y")
	if code != 2 || !strings.Contains(out, "--configuration is required") {
		t.Errorf("without a configuration it ends with %d: %s", code, out)
	}
	m.check()
}

// TestLinesArePruned checks that networks and addresses missing in the file are listed, and deleted with --prune. They are deleted before
// other resources take their place, and not if a row is skipped.
func TestLinesArePruned(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "block", "range=10.0.0.0/8")
	file := filepath.Join(t.TempDir(), "rows.csv")
	run := func(code int, what, rows, says string, flags ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
		m.ends(code, says, append(append([]string{"import", what, file}, m.where...), flags...)...)
	}
	run(0, "networks", "network,name\n10.1.0.0/24,a\n10.2.0.0/24,b\n", "2 networks created")
	run(0, "addresses", "address,name\n10.1.0.5,one\n10.1.0.6,two\n10.2.0.7,three\n", "3 addresses created")
	run(0, "addresses", "address,name\n10.1.0.5,one\n", "not in the file, kept (--prune deletes it): 10.1.0.6 two")
	run(0, "addresses", "address,name\n10.1.0.5,one\n", "not in the file, would be deleted: 10.1.0.6 two", "--prune", "-n")
	run(2, "addresses", "address,name\n10.1.0.5,one\n", "add --yes to confirm", "--prune")
	run(3, "addresses", "address,name\n10.1.0.5,one\n10.1.0.300,x\n", "nothing is deleted", "--prune", "-y")
	run(3, "addresses", "address,name\n10.1.0.5,one\n10.9.0.3,x\n", "kept (--prune deletes it): 10.1.0.6", "--prune", "-y")
	m.says([]string{"two"}, "get", "addresses/10.1.0.6")
	run(0, "addresses", "address,name\n10.1.0.5,one\n", "0 addresses created, 0 changed, 1 unchanged, 1 deleted", "--prune", "-y")
	run(0, "addresses", "address,name\n10.1.0.5,one\n", "0 deleted", "--prune", "-y")
	m.says([]string{"three"}, "get", "addresses/10.2.0.7") // in a network that the file does not contain
	// A network that has grown needs the space of resources missing in the file.
	const grown = "network,name\n10.1.0.0/24,a\n10.2.0.0/23,b\n"
	run(3, "networks", grown, "1 row skipped")
	run(0, "networks", grown, "not in the file, would be deleted: 10.2.0.0/24 b, with ", "--prune", "-n")
	m.says([]string{"three"}, "get", "addresses/10.2.0.7")
	run(0, "networks", grown, "1 network created, 0 changed, 1 unchanged, 1 deleted", "--prune", "-y")
	// A network with more addresses than a dry run covers is deleted only with --yes.
	many := strings.Builder{}
	many.WriteString("address\n")
	for i := range 1500 {
		fmt.Fprintf(&many, "10.16.%d.%d\n", 1+i/250, 1+i%250)
	}
	run(0, "networks", grown+"10.16.0.0/16,large\n", "1 network created")
	run(0, "addresses", many.String(), "1500 addresses created")
	run(2, "networks", grown, "add --yes to confirm", "--prune")
	m.says([]string{"large"}, "get", "networks/10.16.0.0/16")
	m.check()
}

// TestSignedZoneFilesArePruned checks that a signed zone file is imported without its DNSSEC records, which do not count as skipped rows.
func TestSignedZoneFilesArePruned(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "view", "name=internal")
	file := filepath.Join(t.TempDir(), "db")
	const head = "$ORIGIN signed.example.\n$TTL 300\n@ SOA ns1 host 1 3600 600 604800 300\n@ NS ns1\nns1 A 192.0.2.1\n"
	const signed = "ns1 RRSIG A 13 3 300 20300101000000 20200101000000 1 signed.example. AAAA\nns1 NSEC signed.example. A RRSIG NSEC\n"
	for _, one := range [][2]string{{head + "old A 192.0.2.2\n", "imported"}, {head + signed, "not in the file, deleted: old.signed.example."},
		{head + signed, "left out 1 RRSIG records"}} {
		if err := os.WriteFile(file, []byte(one[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		m.ends(0, one[1], append([]string{"import", "zone", file, "--view", "internal", "--prune", "--strict", "-y"}, m.where...)...)
	}
}

// TestImportFilePrunes checks that a file imported again with its tag lists missing resources, and deletes them with --prune after showing
// them.
func TestImportFilePrunes(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "block", "range=10.0.0.0/8")
	m.portolan("create", "tagGroup", "name=plans")
	m.portolan("create", "tag", "name=plan", "--in", "tagGroups/plans")
	file := filepath.Join(t.TempDir(), "plan.csv")
	run := func(code int, rows, says string, flags ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("type,range,name\n"+rows), 0o600); err != nil {
			t.Fatal(err)
		}
		m.ends(code, says, append([]string{"import", "file", file, "--into", "configurations/main"}, flags...)...)
	}
	const both, one = "IPv4Network,10.1.0.0/24,a\nIPv4Network,10.2.0.0/24,b\n", "IPv4Network,10.1.0.0/24,a\n"
	run(2, both, "--prune requires --tag", "--prune", "-y")
	run(0, both, "2 rows: 2 created", "--tag", "tags/plan")
	run(0, both, "2 rows: 0 created, 0 updated, 2 unchanged", "--tag", "tags/plan")
	run(0, one, "not in the file, kept (prune deletes it): IPv4Network 10.2.0.0/24", "--tag", "tags/plan")
	run(0, one, "not in the file, would be deleted: IPv4Network 10.2.0.0/24", "--tag", "tags/plan", "--prune", "-n")
	run(2, one, "run again with --yes", "--tag", "tags/plan", "--prune")
	run(3, one+"IPv4Network,10.3.0.0/99,c\n", "not in an imported row, kept: IPv4Network 10.2.0.0/24", "--tag", "tags/plan")
	run(1, one+"IPv4Network,10.3.0.0/99,c\n", "nothing was imported: 1 row would be skipped", "--strict")
	run(0, one, "1 row: 0 created, 0 updated, 1 unchanged", "--strict")
	run(3, one+"IPv4Network,10.3.0.0/99,c\n", "nothing is deleted, because rows were refused", "--tag", "tags/plan", "--prune", "-y")
	m.says([]string{"b"}, "get", "networks/10.2.0.0/24")
	run(0, one, "1 resource without a row deleted", "--tag", "tags/plan", "--prune", "-y")
	run(0, one, "0 resources without a row deleted", "--tag", "tags/plan", "--prune", "-y")
	run(0, one, "0 resources without a row deleted", "--tag", "tags/plan", "--prune") // without confirmation, because nothing is deleted
	m.check()
}

// TestImportOfALongSource imports more resources than fit into one request from a file of another product, with the same flags.
func TestImportOfALongSource(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "view", "name=internal")
	m.portolan("create", "tagGroup", "name=sources")
	m.portolan("create", "tag", "name=ipam", "--in", "tagGroups/sources")
	file := filepath.Join(t.TempDir(), "export.csv")
	const many = 10_010
	rows := func(from int, odd string) string {
		var all strings.Builder
		fmt.Fprintf(&all, "header-authzone,fqdn*\nauthzone,example.net\nheader-network,address*,netmask*\nnetwork,10.5.0.0,24\n"+
			"header-hostrecord,fqdn*,addresses\nhostrecord,h.example.net,10.5.0.%d\nheader-txtrecord,fqdn*,text,ttl\n", 5+from)
		for i := from; i < many; i++ {
			fmt.Fprintf(&all, "txtrecord,t%d.example.net,text %d,%s\n", i, i, odd)
		}
		return all.String()
	}
	run := func(code int, source string, says []string, flags ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		got, text := m.wrong(append([]string{"import", "infoblox", file, "--view", "internal", "--tag", "tags/ipam"}, flags...)...)
		if got != code {
			t.Fatalf("%q ends with %d, want %d\n%.2000s", flags, got, code, text)
		}
		for _, part := range says {
			if !strings.Contains(text, part) {
				t.Errorf("%q does not say %q:\n%.1000s\n...\n%s", flags, part, text, text[max(len(text)-1000, 0):])
			}
		}
	}
	records := func(n int) {
		t.Helper()
		if text := m.portolan("list", "resourceRecords", "--total"); text != strconv.Itoa(n) {
			t.Errorf("there are %s records, want %d", text, n)
		}
	}
	all := rows(0, "60")
	run(0, all, []string{"10014 rows: 10014 would be created, 0 updated, 0 unchanged, 0 refused"}, "-n")
	refused := all + "txtrecord,a..example.net,text,\n"
	run(1, refused, []string{"skipped: line 10018 (txtrecord a..example.net)", "nothing was imported: 1 row would be skipped"}, "-y",
		"--strict")
	records(0)
	run(3, refused, []string{"skipped: line 10018 (txtrecord a..example.net)", "10014 created", "skipped 1: "}, "-y")
	records(many + 1)
	run(0, all, []string{"note: without --tag, resources of an earlier import"}, "-y", "--tag=")
	changed := rows(5, "")
	lost := "note: HostRecord h.example.net %s the address 10.5.0.5, which stays assigned"
	run(0, changed, []string{fmt.Sprintf(lost, "would no longer have")}, "-n")
	run(0, changed, []string{fmt.Sprintf(lost, "no longer has"), "not in the file, kept (prune deletes it): TXTRecord t0.example.net",
		"10007 unchanged",
		"empty in the source, kept (--prune removes it): line 8 (txtrecord t5.example.net): TXTRecord"}, "-y")
	run(2, changed, []string{"not in the file, would be deleted: TXTRecord t0.example.net", "5 resources without a row would be deleted",
		"run again with --yes"}, "--prune")
	records(many + 1)
	run(0, changed, []string{"changed: line 8 (txtrecord t5.example.net)", "ttl 60 -> null", "the log has no room for more",
		"not in the file, deleted: TXTRecord t0.example.net", "5 resources without a row deleted"},
		"--prune", "-y")
	records(many - 4)
	m.check()
}

// TestZoneGroupIsLinkedOnce checks that a repeated import of dhcpd.conf with zones keeps the link of the zone group to its server.
func TestZoneGroupIsLinkedOnce(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "server", "--in", "configurations/main", "name=dhcp1", "profile=PORTOLAN_SERVICE_POINT",
		`interfaces=[{"type":"NetworkInterface","name":"dhcp1.example","managementAddress":"127.0.0.1"}]`)
	file := filepath.Join(t.TempDir(), "dhcpd.conf")
	if err := os.WriteFile(file, []byte(`ddns-update-style interim;
		key "update" { algorithm hmac-sha256; secret "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MTI="; };
		zone lab.example. { primary 127.0.0.1; key update; }
		subnet 10.77.0.0 netmask 255.255.255.0 { range 10.77.0.10 10.77.0.20; option domain-name "lab.example"; }
	`), 0o600); err != nil {
		t.Fatal(err)
	}
	m.ends(0, ", transaction ", "import", "dhcpd", file, "--server", "dhcp1")
	m.ends(0, "no changes", "import", "dhcpd", file, "--server", "dhcp1")
}
