package dhcp_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestClientClasses checks that a class compares a part of the clients' messages, or has an expression. Subclasses are values of that part.
func TestClientClasses(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, _ := m.Basics()
	classes := "/api/v2/configurations/" + configuration + "/clientClasses"
	phones := m.ID(classes, `{"name":"phones","option":"hardware","matchOffset":1,"matchLength":3}`)
	for body, naming := range map[string]string{
		`{"name":"x","option":"hardware"}`:                                                        "together",
		`{"name":"x","option":"hardware","matchOffset":0,"matchLength":3}`:                        "matchOffset",
		`{"name":"x","option":"hardware","matchOffset":4,"matchLength":4}`:                        "1 to 3",
		`{"name":"x","option":"color","matchOffset":1,"matchLength":3}`:                           "color",
		`{"name":"x","option":"hardware","matchOffset":1,"matchLength":3,"matchExpression":"if"}`: "cannot be combined",
		`{"name":"x","matchExpression":"substring(hardware, 1, 3"}`:                               "bracket",
		`{"name":"x","matchExpression":"if option x = \"y"}`:                                      "does not end",
		`{"name":"x","matchExpression":"x; } evil { "}`:                                           "statements",
		`{"name":"x","matchExpression":"\"\\\\\" } evil { \""}`:                                   "statements",
		`{"name":"x","matchExpression":"substring(x,0,1) # the rest"}`:                            "comments",
	} {
		m.Refused(400, "InvalidMatchCriteria", naming, "POST", classes, body)
	}
	m.Refused(400, "InvalidResourceFieldValue", "name", "POST", classes, `{"name":"a b"}`)
	subclasses := "/api/v2/clientClasses/" + phones + "/subclasses"
	sub := m.Want(201, "POST", subclasses, `{"value":"0x00085D"}`)
	if sub.Text("name") != "0x00085D" {
		t.Errorf("a subclass is %s", sub.Body)
	}
	m.Refused(409, "ResourceAlreadyExists", "0x00085D", "POST", subclasses, `{"value":"0x00085D"}`)
	m.Refused(400, "InvalidResourceFieldValue", "4 bytes", "POST", subclasses, `{"value":"0x00085D01"}`)
	m.Refused(400, "InvalidResourceFieldValue", "value", "POST", subclasses, `{"value":"0x0"}`)
	m.Refused(400, "InvalidResourceFieldValue", "no byte", "POST", subclasses, `{"value":"0x"}`)
	m.Refused(400, "InvalidMatchCriteria", "matchLength", "PATCH", "/api/v2/clientClasses/"+phones, `{"matchLength":2}`, apitest.MergePatch)
	m.Refused(403, "ResourceInUse", "subclasses", "PATCH", "/api/v2/clientClasses/"+phones,
		`{"option":null,"matchOffset":null,"matchLength":null,"matchExpression":"if known"}`, apitest.MergePatch)
	decided := m.ID(classes, `{"name":"decided","matchExpression":"if substring(option vendor-class-identifier, 0, 9) = \"PXEClient\""}`)
	m.Refused(409, "ResourceConflictsWithOther", "cannot have subclasses", "POST", "/api/v2/clientClasses/"+decided+"/subclasses", `{"value":"a"}`)
	for _, expression := range []string{"match if known", "IF known", "  Match   If known"} { // as in dhcpd.conf
		id := m.ID(classes, `{"name":"copied","matchExpression":"`+expression+`"}`)
		m.Refused(409, "ResourceConflictsWithOther", "cannot have subclasses", "POST", "/api/v2/clientClasses/"+id+"/subclasses", `{"value":"a"}`)
		m.Want(204, "DELETE", "/api/v2/clientClasses/"+id, "")
	}
	m.Want(204, "DELETE", "/api/v2/clientClasses/"+phones, "")
	m.Want(404, "GET", "/api/v2/subclasses/"+sub.Text("id"), "")
	m.Verify()
}

// TestMACPools checks that a hardware address is in one pool at most. Every configuration has a pool whose members get no address.
func TestMACPools(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	at := "/api/v2/configurations/" + configuration
	pools := m.Want(200, "GET", at+"/macPools", "")
	deny := pools.Text("data.0.id")
	if pools.Text("count") != "1" || pools.Text("data.0.type") != "DenyMACPool" || pools.Text("data.0.name") != "DENY" {
		t.Errorf("the pools are %s", pools.Body)
	}
	m.Refused(400, "InvalidResourceType", "type", "POST", at+"/macPools", `{"type":"DenyMACPool","name":"x"}`)
	m.Refused(403, "DeleteNotAllowed", "DENY", "DELETE", "/api/v2/macPools/"+deny, "")
	m.Refused(403, "UpdateNotAllowed", "DENY", "PATCH", "/api/v2/macPools/"+deny, `{"name":"x"}`, apitest.MergePatch)
	guests := m.ID(at+"/macPools", `{"type":"MACPool","name":"guests"}`)
	mac := m.ID(at+"/macAddresses", `{"address":"00:00:5e:00:53:01","macPool":{"id":`+guests+`}}`)
	if r := m.Want(200, "GET", "/api/v2/macPools/"+guests+"/macAddresses", ""); r.Text("data.0.id") != mac || r.Text("count") != "1" {
		t.Errorf("its members are %s", r.Body)
	}
	m.Want(201, "POST", "/api/v2/macPools/"+deny+"/macAddresses", `{"id":`+mac+`}`)
	if r := m.Want(200, "GET", "/api/v2/macAddresses/"+mac, ""); r.Text("macPool.id") != deny {
		t.Errorf("the address is %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/macAddresses?"+apitest.Filter("macPool.name:'DENY'"), ""); r.Text("count") != "1" {
		t.Errorf("found by its pool: %s", r.Body)
	}
	m.Refused(409, "ResourceAlreadyExists", mac, "POST", "/api/v2/macPools/"+deny+"/macAddresses", `{"id":`+mac+`}`)
	m.Want(204, "DELETE", "/api/v2/macPools/"+deny+"/macAddresses/"+mac, "")
	m.Want(200, "PATCH", "/api/v2/macAddresses/"+mac, `{"macPool":{"id":`+guests+`}}`, apitest.MergePatch)
	m.Want(204, "DELETE", "/api/v2/macPools/"+guests, "")
	if r := m.Want(200, "GET", "/api/v2/macAddresses/"+mac, ""); r.Text("macPool.id") != "" {
		t.Errorf("without its pool the address is %s", r.Body)
	}
	m.Refused(404, "InlinedResourceNotFound", "macPool", "PATCH", "/api/v2/macAddresses/"+mac, `{"macPool":{"id":`+configuration+`}}`, apitest.MergePatch)
	m.Verify()
}

// TestZoneGroups checks that declarations define the servers and the signatures of updates.
func TestZoneGroups(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, _, network := m.Basics()
	at := "/api/v2/configurations/" + configuration
	group := m.ID(at+"/zoneGroups", `{"name":"updates"}`)
	all := "/api/v2/zoneGroups/" + group + "/zoneDeclarations"
	key := m.ID(at+"/signingKeys", `{"type":"TSIGKey","name":"k","algorithm":"SHA256","length":256}`)
	realm := m.ID(at+"/realms", `{"name":"EXAMPLE.NET","domain":"example.net"}`)
	forward := `{"type":"DHCPForwardZone","primaryDnsServerAddress":"10.0.0.53","zone":{"id":` + zone + `}`
	made := m.Want(201, "POST", all, forward+`,"dynamicUpdateSigningKeyType":"TSIG","dynamicUpdateSigningKey":{"id":`+key+`}}`)
	if made.Text("name") != "example.com" || made.Text("zone.id") != zone || made.Text("zoneAbsoluteName") != "" {
		t.Errorf("a declaration is %s", made.Body)
	}
	elsewhere := m.Want(201, "POST", all, `{"type":"DHCPForwardZone","primaryDnsServerAddress":"10.0.0.53","zone":{"absoluteName":"corp.example"}}`)
	if elsewhere.Text("name") != "corp.example" || elsewhere.Text("zone.id") != "" || elsewhere.Text("zoneAbsoluteName") != "corp.example" {
		t.Errorf("that of another's zone is %s", elsewhere.Body)
	}
	if r := m.Want(200, "PUT", "/api/v2/zoneDeclarations/"+elsewhere.Text("id"), string(elsewhere.Body)); r.Text("name") != "corp.example" {
		t.Errorf("written back: %s", r.Body)
	}
	reverse := m.Want(201, "POST", all, `{"type":"DHCPReverseZone","primaryDnsServerAddress":"10.0.0.53","prefix":{"id":`+network+`}}`)
	if reverse.Text("name") != "0.0.10.in-addr.arpa" {
		t.Errorf("a reverse declaration is %s", reverse.Body)
	}
	m.Refused(400, "MissingRequiredField", "dynamicUpdateSigningKey", "POST", all, forward+`,"dynamicUpdateSigningKeyType":"TSIG"}`)
	m.Refused(400, "ConflictingResourceFieldValues", "dynamicUpdateSigningKey", "POST", all, forward+`,"dynamicUpdateSigningKey":{"id":`+key+`}}`)
	m.Refused(400, "NoKeyDistributionCentersInRealm", "", "POST", all,
		forward+`,"dynamicUpdateSigningKeyType":"GSS_TSIG","dynamicUpdateSigningKeyRealm":{"id":`+realm+`}}`)
	m.Refused(404, "InlinedResourceNotFound", "zone", "POST", all, strings.Replace(forward, zone, network, 1)+`}`)
	m.Refused(400, "InvalidIpAddressValue", "primaryDnsServerAddress", "POST", all, strings.Replace(forward, "10.0.0.53", "ns", 1)+`}`)
	m.Refused(403, "ResourceInUse", "", "DELETE", "/api/v2/signingKeys/"+key, "")
	if r := m.Want(201, "POST", all, `{"type":"DHCPReverseZone","primaryDnsServerAddress":"10.0.0.53","prefix":{"range":"10.0.0.0/24"}}`); r.Text(
		"prefix.id") != network {
		t.Errorf("a prefix by its range: %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"name":"instance"}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/zoneDeclarations/"+made.Text("id"), ""); r.Text("name") != "instance.com" {
		t.Errorf("after another name of the zone: %s", r.Body)
	}
	server := m.ID(at+"/servers", `{"type":"Server","name":"dhcp1","profile":"DNS_DHCP_SERVER_60","interfaces":[{"managementAddress":"10.0.0.53"}]}`)
	m.Want(201, "POST", "/api/v2/zoneGroups/"+group+"/servers", `{"id":`+server+`}`)
	if r := m.Want(200, "GET", "/api/v2/zoneGroups/"+group+"/servers", ""); r.Text("data.0.id") != server {
		t.Errorf("its servers are %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/zoneGroups/"+group+"/servers/"+server, "")
	m.Want(200, "GET", "/api/v2/servers/"+server, "")
	m.Verify()
}

// TestLeases checks that lists of leases are served, and are empty.
func TestLeases(t *testing.T) {
	m := startAlone(t)
	_, _, _, block, network := m.Basics()
	for _, path := range []string{"leases", "blocks/" + block + "/leases", "networks/" + network + "/leases"} {
		if r := m.Want(200, "GET", "/api/v2/"+path+"?"+apitest.Filter("type:'DHCPv4Lease'"), ""); r.Text("count") != "0" {
			t.Errorf("%s: %s", path, r.Body)
		}
		m.Want(405, "POST", "/api/v2/"+path, "{}")
	}
}
