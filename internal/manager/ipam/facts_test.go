package ipam_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestInlinedFacts checks that a reference shows its published fields beside id, type and name, can be narrowed to them, and is found by
// them.
func TestInlinedFacts(t *testing.T) {
	m := start(t)
	configuration, _, zone, block, network := m.Basics()
	a := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"DHCP_RESERVED","macAddress":{"address":"00:11:22:aa:bb:cc"},"clientIdentifier":{"uid":"me"}}`)
	if a.Text("macAddress.address") != "00-11-22-AA-BB-CC" || a.Text("clientIdentifier.uid.clientIdentifier") != "me" {
		t.Errorf("the address is %s", a.Body)
	}
	id := a.Text("id")
	if r := m.Want(200, "GET", "/api/v2/addresses/"+id+"?fields=macAddress.address",
		""); string(r.Body) != `{"macAddress":{"address":"00-11-22-AA-BB-CC"}}` {
		t.Errorf("narrowed it is %s", r.Body)
	}
	for _, notation := range []string{"00:11:22:AA:BB:CC", "00-11-22-aa-bb-cc", "0011.22aa.bbcc", "001122AABBCC"} {
		if r := m.Want(200, "GET", "/api/v2/addresses?"+apitest.Filter("macAddress.address:'"+notation+"'"), ""); r.Text("data.0.id") != id ||
			r.Text("data.0.macAddress.address") != "00-11-22-AA-BB-CC" {
			t.Errorf("%s finds %s", notation, r.Body)
		}
		if r := m.Want(200, "GET", "/api/v2/macAddresses?"+apitest.Filter("address:in('"+notation+"','00:00:00:00:00:09')"),
			""); r.Text("count") != "1" {
			t.Errorf("%s finds %s", notation, r.Body)
		}
	}
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	net6 := m.ID("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8::/64"}`)
	if r := m.Want(201, "POST", "/api/v2/networks/"+net6+"/addresses",
		`{"type":"IPv6Address","state":"DHCP_RESERVED","clientIdentifier":{"duid":"00:01:00:01"}}`); r.Text("clientIdentifier.duid") != "00010001" {
		t.Errorf("the IPv6 address is %s", r.Body)
	}
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"WWW","addresses":[{"address":"10.0.0.9"}]}`)
	alias := m.Want(201, "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"AliasRecord","name":"web","linkedRecord":{"absoluteName":"www.example.com"}}`)
	if alias.Text("linkedRecord.absoluteName") != "WWW.example.com" {
		t.Errorf("the alias is %s", alias.Body)
	}
	split := m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits",
		`{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2,"gatewayPreserved":true}`)
	if got := split.Text("network.range"); got != "10.0.0.0/25" && got != "10.0.0.0/24" {
		t.Errorf("the split is %s", split.Body)
	}
	// A change of what is shown is seen at once.
	mac := a.Text("macAddress.id")
	m.Want(200, "PATCH", "/api/v2/macAddresses/"+mac, `{"address":"00:11:22:00:00:01"}`)
	if r := m.Want(200, "GET", "/api/v2/addresses/"+id, ""); r.Text("macAddress.address") != "00-11-22-00-00-01" {
		t.Errorf("after the change it is %s", r.Body)
	}
}

// TestHugeIDsAreNotFound checks that an id beyond the largest id is not found, in every place of a request.
func TestHugeIDsAreNotFound(t *testing.T) {
	m := start(t)
	for _, path := range []string{"/99999999999999999999", "/networks/99999999999999999999", "/networks/99999999999999999999/addresses",
		"/servers/99999999999999999999", "/networks/0", "/networks/00000000000000000000000000001"} {
		m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2"+path, "")
	}
}

// TestRangesFromTheEnd creates ranges and groups with positions from the end of their network.
func TestRangesFromTheEnd(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	if r := m.Want(201, "POST", "/api/v2/networks/"+network+"/ranges",
		`{"type":"IPv4DHCPRange","range":"-40,30"}`); r.Text("range") != "10.0.0.216-10.0.0.245" {
		t.Errorf("the range is %s", r.Text("range"))
	}
	if r := m.Want(201, "POST", "/api/v2/networks/"+network+"/ipGroups",
		`{"type":"IPv4Group","name":"g","range":"-9,5"}`); r.Text("range") != "10.0.0.247-10.0.0.251" {
		t.Errorf("the group is %s", r.Text("range"))
	}
	m.Refused(400, "InvalidResourceFieldValue", "is outside", "POST", "/api/v2/networks/"+network+"/ranges",
		`{"type":"IPv4DHCPRange","range":"-300,30"}`)
}

// TestMatchTypes checks that matchType is read in any letter case, and stored in the published one.
func TestMatchTypes(t *testing.T) {
	m := start(t)
	for _, kind := range []string{"EXACT", "any", "Exact"} {
		r := m.Want(201, "POST", "/api/v2/namingPolicyRestrictions",
			`{"type":"NamingPolicyRestriction","name":"`+kind+`","restrictions":[{"value":"x","matchType":"`+kind+`"}]}`)
		if got := r.Text("restrictions.0.matchType"); !strings.EqualFold(got, kind) || got != "Exact" && got != "Any" {
			t.Errorf("%s is kept as %q", kind, got)
		}
	}
	m.Refused(400, "InvalidResourceFieldValue", "Exact or Any", "POST", "/api/v2/namingPolicyRestrictions",
		`{"type":"NamingPolicyRestriction","name":"z","restrictions":[{"value":"x","matchType":"some"}]}`)
}

// TestNamesAsZoneFilesWriteThem creates records with names in the notation of zone files.
func TestNamesAsZoneFilesWriteThem(t *testing.T) {
	m := start(t)
	_, _, zone, _, network := m.Basics()
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	for name, want := range map[string]string{"@": "example.com", "example.com": "example.com", "EXAMPLE.COM.": "example.com",
		"www.example.com.": "www.example.com", "a.b": "a.b.example.com"} {
		r := m.Want(201, "POST", records, `{"type":"TXTRecord","name":"`+name+`","text":"`+name+`"}`)
		if !strings.EqualFold(r.Text("absoluteName"), want) {
			t.Errorf("%s becomes %s", name, r.Text("absoluteName"))
		}
	}
	for _, body := range []string{`{"type":"MXRecord","name":"@","linkedRecord":{"absoluteName":"mail.example.com"}}`,
		`{"type":"GenericRecord","name":"@","recordType":"CAA","rdata":"0 issue \"ca.example\""}`} {
		if r := m.Want(201, "POST", records, body, "x-bcn-link-to-external-host: true"); r.Text("absoluteName") != "example.com" ||
			r.Get("name") != "" {
			t.Errorf("%s becomes %s", body, r.Body)
		}
	}
	m.Refused(400, "InvalidResourceFieldValue", "not in the zone", "POST", records, `{"type":"TXTRecord","name":"www.example.net.","text":"x"}`)
	m.Refused(400, "MissingRequiredField", "text", "POST", records, `{"type":"TXTRecord","name":"empty"}`)
	m.Refused(400, "MissingRequiredField", "text", "POST", records, `{"type":"TXTRecord","name":"empty","text":null}`)
	// No address leads back to a wildcard.
	wild := m.Want(201, "POST", records, `{"type":"HostRecord","name":"*","addresses":[{"address":"10.0.0.7"}],"reverseRecord":true}`)
	if wild.Text("reverseRecord") != "false" {
		t.Errorf("the wildcard is %s", wild.Body)
	}
	_ = network
}
