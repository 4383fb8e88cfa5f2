package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"portolan/internal/testkit/freeport"
	"portolan/internal/testkit/peers"
)

// zoneFile is a zone file with relative names, several records of a name, odd case, and every type.
const zoneFile = `$ORIGIN example.com.
$TTL 1h
@	IN SOA ns1 hostmaster 2024010101 3h 1h 1w 1h
	IN NS ns1
	IN NS ns2.elsewhere.net.
	IN MX 10 mail
	IN MX 20 mx.elsewhere.net.
	IN TXT "v=spf1 -all" " and \"more\""
	IN CAA 0 issue "ca.example.net"
ns1	IN A 10.0.0.53
NS1	IN AAAA 2001:db8::53
mail 300 IN A 10.0.0.25
www	IN CNAME web
web	IN A 10.0.0.80
web	IN A 10.0.0.81
web	IN A 10.0.0.80
blog	IN CNAME www
shop	IN CNAME shops.elsewhere.net.
far	IN A 192.0.2.1
*.wild	IN A 10.0.0.90
host.sub IN A 10.0.0.91
_sip._tcp IN SRV 1 2 5060 mail
both 300 IN A 10.0.0.93
both 600 IN AAAA 2001:db8::93
nomail IN MX 0 .
inner.*.wild IN TXT "a label"
_xmpp._tcp IN SRV 0 0 0 .
_25._tcp.mail IN TLSA 3 1 1 0D6FCB3A4E1B2F2E3C4D5E6F708192A3B4C5D6E7F8091A2B3C4D5E6F70819293
info	IN HINFO "VAX 11" "Unix"
naptr	IN NAPTR 100 10 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .
deleg	IN NS ns.deleg
ns.deleg IN A 10.0.0.99
xn--bcher-kva IN A 10.0.0.92
`

// TestZoneFilesAndBIND imports a zone and exports it in a form that BIND accepts, with every imported record. A zone transfer from a real
// BIND, printed by dig, can be imported again with the same result.
func TestZoneFilesAndBIND(t *testing.T) {
	t.Parallel()
	check, named, dig := peers.Program(t, "named-checkzone"), peers.Program(t, "named"), peers.Program(t, "dig")
	dir := t.TempDir()
	m := serve(t, "")
	prepare := func(name string) string {
		configuration := m.id("/configurations", `{"name":"`+name+`"}`)
		block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
		m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24"}`)
		six := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
		m.id("/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8::/64"}`)
		m.id("/configurations/"+configuration+"/views", `{"name":"v"}`)
		return configuration
	}
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // named runs as another user and reads it
			t.Fatal(err)
		}
		return path
	}
	export := func(configuration string) string {
		t.Helper()
		return m.portolan(append([]string{"export", "zone", "--configuration", configuration, "example.com"}, m.where...)...) + "\n"
	}
	prepare("first")
	got := m.portolan(append([]string{"import", "zone", "--configuration", "first", write("typed.zone", zoneFile)}, m.where...)...)
	if !strings.Contains(got, "0 records skipped") {
		t.Errorf("importing: %s", got)
	}
	first := export("first")
	run(check, "-i", "local", "example.com", write("first.zone", first))
	for _, line := range []string{"www.example.com.\t3600\tIN\tCNAME\tweb.example.com.", "example.com.\t3600\tIN\tMX\t20 mx.elsewhere.net.",
		"far.example.com.\t3600\tIN\tA\t192.0.2.1",
		"mail.example.com.\t300\tIN\tA\t10.0.0.25", `"v=spf1 -all" " and \"more\""`, "*.wild.example.com.\t3600\tIN\tA\t10.0.0.90",
		"_sip._tcp.example.com.\t3600\tIN\tSRV\t1 2 5060 mail.example.com.", "both.example.com.\t300\tIN\tA\t10.0.0.93",
		"both.example.com.\t600\tIN\tAAAA\t2001:db8::93", "nomail.example.com.\t3600\tIN\tMX\t0 .", "inner.*.wild.example.com.\t3600\tIN\tTXT\t",
		"_xmpp._tcp.example.com.\t3600\tIN\tSRV\t0 0 0 .",
		"ns1.example.com.\t3600\tIN\tAAAA\t2001:db8::53", `HINFO	"VAX 11" "Unix"`, `"!^.*$!sip:info@example.com!"`,
		"deleg.example.com.\t3600\tIN\tNS\tns.deleg.example.com.", "TLSA\t3 1 1 0d6f"} {
		if !strings.Contains(first, line) {
			t.Errorf("the export lacks %s:\n%s", line, first)
		}
	}
	if strings.Count(first, "10.0.0.80") != 1 {
		t.Error("a record that stood there twice comes out twice")
	}

	// Blocks and networks have implicit reverse zones, by name or range, also for a network smaller than /24.
	for name, want := range map[string][2]string{
		"0.0.10.in-addr.arpa": {"0.0.10.in-addr.arpa", "80.0.0.10.in-addr.arpa.\t3600\tIN\tPTR\tweb.example.com."},
		"10.0.0.0/24":         {"0.0.10.in-addr.arpa", "25.0.0.10.in-addr.arpa.\t3600\tIN\tPTR\tmail.example.com."},
		"10.0.0.64/27":        {"64-95.0.0.10.in-addr.arpa", "81.64-95.0.0.10.in-addr.arpa.\t3600\tIN\tPTR\tweb.example.com."},
		"2001:db8::/64": {"0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
			"3.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.\t3600\tIN\tPTR\tns1.example.com."},
		"10.in-addr.arpa": {"10.in-addr.arpa", "80.0.0.10.in-addr.arpa.\t3600\tIN\tPTR\tweb.example.com."},
	} {
		text := m.portolan(append([]string{"export", "zone", "--configuration", "first", name}, m.where...)...) + "\n"
		run(check, "-i", "local", want[0], write("reverse.zone", text))
		if !strings.Contains(text, want[1]) {
			t.Errorf("%s lacks %s:\n%s", name, want[1], text)
		}
	}

	// A real BIND serves the zone and transfers it.
	port := fmt.Sprint(freeport.Reserve(t).Port())
	conf := write("named.conf", fmt.Sprintf(`options { directory "%[1]s"; pid-file none; session-keyfile none; listen-on port %[2]s { 127.0.0.1; }; listen-on-v6 { none; };
	allow-transfer { 127.0.0.1; }; recursion no; dnssec-validation no; notify no; };
controls { };
zone "example.com" { type primary; file "%[1]s/first.zone"; };
`, dir, port))
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // named runs as another user and reads it
		t.Fatal(err)
	}
	bind, err := launch(filepath.Join(dir, "named.out"), os.Environ(), dir, named, "-g", "-c", conf, "-n", "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bind.signal(syscall.SIGKILL) })
	transfer := ""
	if !until(func() bool {
		out, err := exec.Command(dig, "+time=2", "+tries=1", "@127.0.0.1", "-p", port, "example.com", "AXFR").Output()
		transfer = string(out)
		return err == nil && strings.Contains(transfer, "XFR size")
	}) {
		t.Fatalf("no transfer: %s\n%s", transfer, bind.text())
	}
	prepare("third")
	if got := m.portolan(append([]string{"import", "zone", "--configuration", "third", "--origin", "example.com", "--from-server",
		"127.0.0.1:" + port}, m.where...)...); !strings.Contains(got, "0 records skipped") {
		t.Errorf("importing from the server: %s", got)
	}
	prepare("second")
	got = m.portolan(append([]string{"import", "zone", "--configuration", "second", write("transfer", transfer)}, m.where...)...)
	if !strings.Contains(got, "0 records skipped") {
		t.Errorf("importing a transfer: %s", got)
	}
	second := export("second")
	third := export("third")
	if _, third, _ = strings.Cut(third, "\n"); !strings.HasSuffix(strings.ToLower(second), strings.ToLower(third)) {
		t.Errorf("what was copied from BIND comes out as\n%s\nnot\n%s", third, second)
	}
	_, a, _ := strings.Cut(first, "\n") // the serial number of the SOA differs
	_, b, _ := strings.Cut(second, "\n")
	if a != b {
		t.Errorf("what went through BIND comes out as\n%s\nnot\n%s", b, a)
	}
	if got := m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
}

// TestGenericRecords checks that every type of generic record is accepted in zone-file syntax, rejected if invalid, and served in a form
// that BIND accepts.
func TestGenericRecords(t *testing.T) {
	t.Parallel()
	check := peers.Program(t, "named-checkzone")
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"generic"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"v"}`)
	zone := m.id("/views/"+view+"/zones", `{"type":"Zone","name":"example"}`)
	key := "AwEAAcd0mMgE2qAoTFKGoSaN0L1OaSxK9Y0pVq9UJlY8HFg5LPiVmXQYt7z6xI9lvvzTJ1cP0LnpEGEWZz1FyA+3"
	for kind, data := range map[string]string{
		"A": "192.0.2.1", "AAAA": "2001:db8::1", "A6": "64 ::1234:5678:9abc:def0 prefix.example.", "AFSDB": "1 afs.example.",
		"APL": "1:192.0.2.0/24 !2:2001:db8::/32",
		"CAA": `0 issue "ca.example.net"`, "CERT": "PGP 0 0 " + key, "DHCID": "AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=",
		"DNAME":  "other.example.",
		"DNSKEY": "256 3 8 " + key, "DS": "60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118", "HTTPS": "1 . alpn=h2",
		"IPSECKEY": "10 1 2 192.0.2.38 " + key,
		"ISDN":     `"150862028003217" "004"`, "KEY": "256 3 8 " + key, "KX": "10 kx.example.",
		"LOC": "52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m", "MB": "mb.example.",
		"MG": "mg.example.", "MINFO": "a.example. b.example.", "MR": "mr.example.",
		"NAPTR": `100 10 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .`, "NS": "ns.example.net.",
		"NSAP": "0x47.0005.80.005a00.0000.0001.e133.ffffff000161.00", "PTR": "host.example.", "PX": "10 a.example. b.example.",
		"RP": "admin.example. text.example.",
		"RT": "2 relay.example.", "SINK": "1 2 3 AAEC", "SPF": `"v=spf1 -all"`, "SSHFP": "2 1 123456789abcdef67890123456789abcdef67890",
		"SVCB": "1 svc.example. alpn=h3",
		"TLSA": "3 1 1 0D6FCB3A4E1B2F2E3C4D5E6F708192A3B4C5D6E7F8091A2B3C4D5E6F70819293", "TXT": `"one" "two"`,
		"URI": `10 1 "ftp://ftp.example/public"`, "WKS": "192.0.2.1 tcp smtp 80 domain", "X25": `"311061700956"`,
	} {
		body := func(data string) string {
			return fmt.Sprintf(`{"type":"GenericRecord","name":"r-%s","recordType":"%s","rdata":%q}`, strings.ToLower(kind), kind, data)
		}
		if status, text, err := m.call("POST", "/zones/"+zone+"/resourceRecords", body(data)); err != nil || status != 201 {
			t.Errorf("%s %s: %d %s %v", kind, data, status, text, err)
		}
		if kind == "TXT" || kind == "SPF" || kind == "ISDN" { // any data is valid for these types
			continue
		}
		if status, text, err := m.call("POST", "/zones/"+zone+"/resourceRecords", body("no such ! data")); err != nil || status != 400 {
			t.Errorf("%s of nonsense: %d %s %v", kind, status, text, err)
		}
	}
	text := m.portolan(append([]string{"export", "zone", "--configuration", "generic", "example"}, m.where...)...) + "\n"
	path := filepath.Join(t.TempDir(), "zone")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(check, "-D", "-k", "ignore", "-i", "none", "example", path).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
	for _, line := range []string{"A6\t64 ::1234:5678:9abc:def0 prefix.example.", "WKS\t192.0.2.1 6 25 53 80",
		"NSAP\t0x47000580005a0000000001e133ffffff00016100"} {
		if !strings.Contains(strings.Join(strings.Fields(string(out)), " "), strings.ReplaceAll(line, "\t", " ")) {
			t.Errorf("BIND does not read %s:\n%s", line, out)
		}
	}
}

// TestZoneTypes checks that BIND accepts the export of ENUM zones, private roots and response policies.
func TestZoneTypes(t *testing.T) {
	t.Parallel()
	check := peers.Program(t, "named-checkzone")
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"types"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"v"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24"}`)
	refused := func(path, body, naming string) {
		t.Helper()
		if status, text, err := m.call("POST", path, body); err != nil || status < 400 || status >= 500 || !strings.Contains(text, naming) {
			t.Errorf("%s %s: %d %s %v", path, body, status, text, err)
		}
	}
	zones := "/views/" + view + "/zones"
	enum := m.id(zones, `{"type":"ENUMZone","name":"e164.arpa"}`)
	refused(zones, `{"type":"ENUMNumberZone","name":"1.2"}`, "ENUMZone")
	refused("/zones/"+enum+"/zones", `{"type":"ENUMNumberZone","name":"12.3"}`, "single digits")
	refused("/zones/"+enum+"/zones", `{"type":"ENUMNumberZone","name":"4.9","numberName":"+49"}`, "numberName")
	country := m.id("/zones/"+enum+"/zones", `{"type":"ENUMNumberZone","name":"9.4"}`)
	number := m.id("/zones/"+country+"/zones", `{"type":"ENUMNumberZone","name":"3.2.1","numberName":"1 2-3"}`)
	m.id("/zones/"+number+"/resourceRecords",
		`{"type":"NAPTRRecord","name":null,"order":100,"preference":10,"service":"E2U+sip","flags":"u","regularExpression":"!^.*$!sip:info@example.com!"}`)

	top := m.id(zones, `{"type":"InternalRootZone"}`)
	refused(zones, `{"type":"InternalRootZone"}`, "root zone already exists")
	m.id("/zones/"+top+"/resourceRecords", `{"type":"GenericRecord","name":null,"recordType":"NS","rdata":"ns.example."}`)
	zone := m.id(zones, `{"type":"Zone","name":"example"}`)
	m.id("/zones/"+zone+"/resourceRecords", `{"type":"GenericRecord","name":null,"recordType":"NS","rdata":"ns.example."}`)
	m.id("/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"ns","addresses":[{"address":"10.0.0.53"}]}`)

	refused("/configurations/"+configuration+"/responsePolicies", `{"name":"walled","policyType":"REDIRECT"}`, "redirectTarget")
	policy := m.id("/configurations/"+configuration+"/responsePolicies", `{"name":"bad","policyType":"BLOCKLIST","ttl":60}`)
	m.id("/responsePolicies/"+policy+"/policyItems", `{"name":"Malware.test."}`)
	m.id("/responsePolicies/"+policy+"/policyItems", `{"name":"*.malware.test"}`)
	refused("/responsePolicies/"+policy+"/policyItems", `{"name":"malware.test"}`, "already")
	m.id(zones, `{"type":"ResponsePolicyZone","name":"rpz","responsePolicyZoneType":"LOCAL","responsePolicy":{"id":`+policy+`}}`)
	over := m.id(zones, `{"type":"ResponsePolicyZone","name":"rpz2","responsePolicyZoneType":"LOCAL","responsePolicy":{"id":`+policy+`},"overridePolicyType":"REDIRECT","redirectTarget":"192.0.2.1"}`)
	refused("/zones/"+over+"/resourceRecords", `{"type":"TXTRecord","name":"x","text":"y"}`, "cannot contain records")
	refused(zones, `{"type":"ResponsePolicyZone","name":"feed","responsePolicyZoneType":"FEED","responsePolicy":{"id":`+policy+`}}`, "LOCAL")
	refused(zones, `{"type":"Zone","name":"rpz"}`, "already")

	for name, want := range map[string]string{
		"e164.arpa": "3.2.1.9.4.e164.arpa.\t3600\tIN\tNAPTR\t100 10 \"u\" \"E2U+sip\"",
		".":         "ns.example.\t3600\tIN\tA\t10.0.0.53",
		"rpz":       "*.malware.test.rpz.\t60\tIN\tCNAME\t.",
		"rpz2":      "malware.test.rpz2.\t60\tIN\tA\t192.0.2.1",
	} {
		text := m.portolan(append([]string{"export", "zone", "--configuration", "types", name}, m.where...)...) + "\n"
		path := filepath.Join(t.TempDir(), "zone")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(check, "-i", "local", name, path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, text)
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s:\n%s", name, want, text)
		}
	}
	if got := m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
}
