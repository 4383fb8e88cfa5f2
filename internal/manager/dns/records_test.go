package dns_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/ipam"
	"portolan/internal/testkit/apitest"
)

// TestRecordsOfAName checks that data that DNS does not allow is refused: other records beside an alias, an alias at the apex, and a
// duplicate record. An undo that would cause it is refused as well.
func TestRecordsOfAName(t *testing.T) {
	m := start(t)
	_, view, zone, _, _ := m.Basics()
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	host := m.ID(records, `{"type":"HostRecord","name":"www","addresses":[{"address":"10.0.0.10"}]}`)
	alias := m.ID(records, `{"type":"AliasRecord","name":"web","linkedRecord":{"id":`+host+`}}`)
	txt := m.ID(records, `{"type":"TXTRecord","name":"www","text":"one"}`)
	m.ID(records, `{"type":"TXTRecord","name":"www","text":"two"}`)
	srv := m.ID(records, `{"type":"SRVRecord","name":"_sip._tcp","linkedRecord":{"id":`+host+`},"priority":1,"weight":2,"port":5060}`)
	m.ID(records, `{"type":"HINFORecord","name":"www","os":"Unix","cpu":"VAX"}`)
	m.ID(records, `{"type":"NAPTRRecord","name":"n","order":1,"preference":2,"flags":"u","service":"E2U+sip","regularExpression":"!^.*$!sip:x@example.com!"}`)
	m.Refused(409, "ResourceConflictsWithOther", "HostRecord "+host, "POST", records, `{"type":"AliasRecord","name":"WWW","linkedRecord":{"id":`+host+`}}`)
	m.Refused(409, "ResourceConflictsWithOther", "AliasRecord "+alias, "POST", records,
		`{"type":"HostRecord","name":"Web","addresses":[{"address":"10.0.0.11"}]}`)
	m.Refused(409, "ResourceConflictsWithOther", "AliasRecord "+alias, "PATCH", "/api/v2/resourceRecords/"+txt, `{"name":"web"}`, apitest.MergePatch)
	m.Refused(409, "ResourceConflictsWithOther", "example.com", "POST", records, `{"type":"AliasRecord","name":null,"linkedRecord":{"id":`+host+`}}`,
		"x-bcn-same-as-zone: true")
	m.Refused(409, "ResourceAlreadyExists", "TXTRecord "+txt, "POST", records, `{"type":"TXTRecord","name":"www","text":"one"}`)
	m.Refused(409, "ResourceAlreadyExists", "HostRecord "+host, "POST", records,
		`{"type":"HostRecord","name":"www","addresses":[{"address":"10.0.0.12"}]}`)
	m.Refused(409, "ResourceAlreadyExists", "SRVRecord "+srv, "POST", records,
		`{"type":"SRVRecord","name":"_sip._tcp","linkedRecord":{"id":`+host+`},"priority":1,"weight":2,"port":5060}`)
	m.Refused(400, "InvalidResourceFieldValue", "RFC 3403", "POST", records,
		`{"type":"NAPTRRecord","name":"n2","regularExpression":"!a!b!","replacement":"example.com"}`)
	m.Refused(400, "ValueOutsideRange", "65535", "POST", records,
		`{"type":"SRVRecord","name":"s","linkedRecord":{"id":`+host+`},"priority":1,"weight":2,"port":65536}`)

	// The target of a record may be an external host if the header permits it.
	mx := `{"type":"MXRecord","name":"mail","linkedRecord":{"absoluteName":"mx.elsewhere.net"}}`
	m.Refused(404, "InlinedResourceNotFound", "mx.elsewhere.net", "POST", records, mx)
	r := m.Want(201, "POST", records, mx, "x-bcn-link-to-external-host: true")
	if r.Text("linkedRecord.name") != "mx.elsewhere.net" || r.Text("linkedRecord.type") != "ExternalHostRecord" {
		t.Errorf("the mail record is %s", r.Body)
	}
	external := m.Want(200, "GET", "/api/v2/zones?filter=type:'ExternalHostsZone'", "").Text("data.0.id")
	m.Refused(400, "InvalidResourceFieldValue", "only contain ExternalHostRecords", "POST", "/api/v2/zones/"+external+"/resourceRecords",
		`{"type":"TXTRecord","name":"x","text":"y"}`)
	// One that is sent to another zone of the view comes into the one for external hosts.
	if r := m.Want(201, "POST", records, `{"type":"ExternalHostRecord","name":"x.example.net"}`); r.Text("_links.up.href") != "/api/v2/zones/"+external {
		t.Errorf("the external host is %s", r.Body)
	}
	m.Refused(409, "ResourceAlreadyExists", "mx.elsewhere.net", "POST", "/api/v2/zones/"+external+"/resourceRecords",
		`{"type":"ExternalHostRecord","name":"mx.elsewhere.net"}`)
	m.Refused(400, "InvalidResourceType", "ExternalHostsZone", "POST", "/api/v2/views/"+view+"/zones", `{"type":"ExternalHostsZone"}`)
	m.Refused(403, "DeleteNotAllowed", "ExternalHostsZone", "DELETE", "/api/v2/zones/"+external, "")

	// An undo does not restore an alias if its name is used meanwhile.
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+alias, "")
	deleted := m.LastTransaction()
	m.ID(records, `{"type":"TXTRecord","name":"web","text":"x"}`)
	if r := m.Undo(deleted); r.StatusCode != 409 || !strings.Contains(r.Text("message"), "an alias must be alone") {
		t.Errorf("undoing the deletion: %d %s", r.StatusCode, r.Body)
	}
	m.Verify()
}

// TestServiceBindings creates SVCB and HTTPS records (RFC 9460) and URI records (RFC 7553). Invalid ones are refused, and exported records
// can be imported again.
func TestServiceBindings(t *testing.T) {
	m := start(t)
	_, _, zone, _, _ := m.Basics()
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	host := m.ID(records, `{"type":"GenericRecord","name":"web","recordType":"A","rdata":"192.0.2.1"}`)
	https := func(name, rest string) string { return `{"type":"HTTPSRecord","name":"` + name + `",` + rest + `}` }
	full := m.ID(records, https("www", `"linkedRecord":{"absoluteName":"web.example.com"},"priority":1,"serviceParameters":{"alpnIdentifiers":["h2","h3"],`+
		`"defaultAlpnIdentifierEnabled":false,"port":8443,"ipv4AddressHints":["192.0.2.1"],"ipv6AddressHints":["2001:db8::1"],`+
		`"encryptedClientHello":"AEX+DQ==","mandatoryKeys":["port","alpn"],"privateUseValues":{"key65280":"x"}}`))
	m.ID(records, https("self", `"priority":1,"serviceParameters":{"alpnIdentifiers":["h2"]}`))
	m.ID(records, https("alias", `"priority":0,"linkedRecord":{"id":`+host+`}`))
	m.ID(records, `{"type":"SVCBRecord","name":"_dns","priority":2,"linkedRecord":{"id":`+host+`},"serviceParameters":{"alpnIdentifiers":["dot"]}}`)
	m.ID(records, `{"type":"URIRecord","name":"_ftp._tcp","priority":10,"weight":1,"target":"ftp://ftp.example.com/public"}`)
	for naming, rest := range map[string][2]string{
		"serviceParameters.alpnIdentifiers":              {"InvalidStringLength", `"priority":1,"serviceParameters":{"alpnIdentifiers":["` + strings.Repeat("x", 256) + `"]}`},
		"serviceParameters.port":                         {"ValueLessThanMinimum", `"priority":1,"serviceParameters":{"port":0}`},
		"serviceParameters.defaultAlpnIdentifierEnabled": {"InvalidResourceFieldValue", `"priority":1,"serviceParameters":{"defaultAlpnIdentifierEnabled":false}`},
		"serviceParameters.ipv4AddressHints":             {"InvalidResourceFieldValue", `"priority":1,"serviceParameters":{"ipv4AddressHints":["2001:db8::1"]}`},
		"serviceParameters.ipv6AddressHints":             {"InvalidResourceFieldValue", `"priority":1,"serviceParameters":{"ipv6AddressHints":["192.0.2.1"]}`},
		"serviceParameters.encryptedClientHello":         {"InvalidResourceFieldValue", `"priority":1,"serviceParameters":{"encryptedClientHello":"?"}`},
		"serviceParameters.mandatoryKeys":                {"InvalidResourceFieldValue", `"priority":1,"serviceParameters":{"port":1,"mandatoryKeys":["alpn"]}`},
		"serviceParameters.privateUseValues":             {"InvalidResourceFieldValue", `"priority":1,"serviceParameters":{"privateUseValues":{"key1":"x"}}`},
		"serviceParameters.privateUseValues ":            {"InvalidResourceFieldValue", `"priority":1,"serviceParameters":{"privateUseValues":{"key065280":"x"}}`},
		"serviceParameters ":                             {"InvalidResourceFieldValue", `"priority":1,"serviceParameters":{"privateUseValues":{"key65280":"` + strings.Repeat("x", 65536) + `"}}`},
		"serviceParameters":                              {"ConflictingResourceFieldValues", `"priority":0,"serviceParameters":{"port":1}`},
		"priority":                                       {"ValueOutsideRange", `"priority":65536`},
	} {
		m.Refused(400, rest[0], strings.TrimSpace(naming), "POST", records, https("bad", rest[1]))
	}
	m.Refused(400, "InvalidResourceFieldValue", "target", "POST", records, `{"type":"URIRecord","name":"u","target":"no address"}`)
	m.Refused(400, "InvalidResourceFieldValue", "target", "POST", records, `{"type":"URIRecord","name":"u","target":"https://example.com/a b"}`)
	m.Refused(409, "ResourceAlreadyExists", "HTTPSRecord", "POST", records, https("self", `"priority":1,"serviceParameters":{"alpnIdentifiers":["h2"]}`))
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+full, `{"serviceParameters":{"alpnIdentifiers":["h2"]}}`, apitest.MergePatch)
	m.Want(200, "PUT", "/api/v2/resourceRecords/"+full, string(m.Want(200, "GET", "/api/v2/resourceRecords/"+full, "").Body))
	file := apitest.ZoneFile(t, m.Address, "example.com")
	for _, line := range []string{"www.example.com.\t3600\tIN\tHTTPS\t1 web.example.com. ",
		"self.example.com.\t3600\tIN\tHTTPS\t1 . alpn=\"h2\"",
		"alias.example.com.\t3600\tIN\tHTTPS\t0 web.example.com.", "_dns.example.com.\t3600\tIN\tSVCB\t2 web.example.com. alpn=\"dot\"",
		"_ftp._tcp.example.com.\t3600\tIN\tURI\t10 1 \"ftp://ftp.example.com/public\""} {
		if !strings.Contains(file, line) {
			t.Errorf("the zone file has no %q:\n%s", line, file)
		}
	}
	// The exported file contains the imported data unchanged.
	m.Want(204, "DELETE", "/api/v2/zones/"+zone, "")
	name, z, err := readZone(file, "")
	if err != nil {
		t.Fatal(err)
	}
	done, err := transfer.ImportZone(t.Context(), m.Address, "main", "internal", name, z, ipam.Import{})
	if err != nil || done.Created != 9 { // with the zone and its start of authority
		t.Fatalf("%+v %v", done, err)
	}
	if again := apitest.ZoneFile(t, m.Address, "example.com"); unnumbered(again) != unnumbered(file) {
		t.Errorf("the zone was\n%s\nand is\n%s", file, again)
	}
	for name, kind := range map[string]string{"www": "HTTPSRecord", "self": "HTTPSRecord", "_dns": "SVCBRecord", "_ftp._tcp": "URIRecord"} {
		if r := m.Want(200, "GET", "/api/v2/resourceRecords?"+apitest.Filter("absoluteName:'"+name+".example.com'"),
			""); r.Text("data.0.type") != kind {
			t.Errorf("%s is %s", name, r.Body)
		}
	}
	m.Verify()
}

// TestUnparsedServiceRecordsAreStored checks that a service record of a zone file that does not fit the fields of its type is stored in
// the notation of the file.
func TestUnparsedServiceRecordsAreStored(t *testing.T) {
	m := start(t)
	m.Basics()
	name, records, err := readZone("$ORIGIN svc.test.\n@ 300 IN SOA a b 1 1 1 1 1\n"+
		"a 300 IN HTTPS 1 . alpn=h2 key65281=\"\\001a\"\nb 300 IN SVCB 0 a port=5\n"+
		"c 300 IN URI 10 1 \"no address\"\nd 300 IN HTTPS 1 . key9=x\n", "")
	if err != nil {
		t.Fatal(err)
	}
	done, err := transfer.ImportZone(t.Context(), m.Address, "main", "internal", name, records, ipam.Import{})
	if err != nil || done.Created != 6 { // with the zone and its start of authority
		t.Fatalf("%+v %v", done, err)
	}
	if r := m.Want(200, "GET", "/api/v2/resourceRecords?"+apitest.Filter("type:'GenericRecord'"), ""); r.Text("count") != "4" {
		t.Errorf("they are %s", r.Body)
	}
	if file := apitest.ZoneFile(t, m.Address, "svc.test"); !strings.Contains(file, `key65281="\001a"`) {
		t.Errorf("the zone is\n%s", file)
	}
}

// unnumbered is a zone file without the line that has its serial.
func unnumbered(file string) string {
	lines := strings.Split(file, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "\tSOA\t") }), "\n")
}

// readZone reads a zone file; a fault of an entry is an error.
func readZone(text, origin string) (zone string, records []dns.RR, err error) {
	z, err := naming.ReadZone(strings.NewReader(text), origin, nil)
	if err == nil && len(z.Faults) > 0 {
		err = errors.New(z.Faults[0])
	}
	if err != nil {
		return "", nil, err
	}
	return z.Zone, z.Records, nil
}
