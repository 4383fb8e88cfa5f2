package server

import (
	"strings"
	"testing"
)

func init() {
	alsoMade = append(alsoMade, func(m *manager) {
		at := "/api/v2/configurations/" + m.want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").text("data.0.id")
		class := m.id(at+"/clientClasses", `{"name":"phones","option":"vendor-class-identifier","matchOffset":0,"matchLength":5}`)
		m.id("/api/v2/clientClasses/"+class+"/subclasses", `{"value":"snom1"}`)
		m.id(at+"/macPools", `{"type":"MACPool","name":"guests"}`)
		group := m.id(at+"/zoneGroups", `{"name":"updates"}`)
		m.id("/api/v2/zoneGroups/"+group+"/zoneDeclarations",
			`{"type":"DHCPForwardZone","zone":{"absoluteName":"elsewhere.example"},"primaryDnsServerAddress":"10.0.0.53"}`)
		m.id("/api/v2/zoneGroups/"+group+"/zoneDeclarations",
			`{"type":"DHCPReverseZone","prefix":{"range":"10.9.0.0/16"},"primaryDnsServerAddress":"10.0.0.53"}`)
	})
}

// Classes compare a part of what clients send, or have an expression; subclasses are values of that part.
func TestClientClasses(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, _ := m.basics()
	classes := "/api/v2/configurations/" + configuration + "/clientClasses"
	phones := m.id(classes, `{"name":"phones","option":"hardware","matchOffset":1,"matchLength":3}`)
	for body, naming := range map[string]string{
		`{"name":"x","option":"hardware"}`:                                                        "together",
		`{"name":"x","option":"hardware","matchOffset":0,"matchLength":3}`:                        "matchOffset",
		`{"name":"x","option":"hardware","matchOffset":4,"matchLength":4}`:                        "1 to 3",
		`{"name":"x","option":"color","matchOffset":1,"matchLength":3}`:                           "color",
		`{"name":"x","option":"hardware","matchOffset":1,"matchLength":3,"matchExpression":"if"}`: "stands in",
		`{"name":"x","matchExpression":"substring(hardware, 1, 3"}`:                               "bracket",
		`{"name":"x","matchExpression":"if option x = \"y"}`:                                      "does not end",
		`{"name":"x","matchExpression":"x; } evil { "}`:                                           "statements",
		`{"name":"x","matchExpression":"\"\\\\\" } evil { \""}`:                                   "statements",
		`{"name":"x","matchExpression":"substring(x,0,1) # the rest"}`:                            "comments",
	} {
		m.refused(400, "InvalidMatchCriteria", naming, "POST", classes, body)
	}
	m.refused(400, "InvalidResourceFieldValue", "name", "POST", classes, `{"name":"a b"}`)
	subclasses := "/api/v2/clientClasses/" + phones + "/subclasses"
	sub := m.want(201, "POST", subclasses, `{"value":"0x00085D"}`)
	if sub.text("name") != "0x00085D" {
		t.Errorf("a subclass is %s", sub.body)
	}
	m.refused(409, "ResourceAlreadyExists", "0x00085D", "POST", subclasses, `{"value":"0x00085D"}`)
	m.refused(400, "InvalidResourceFieldValue", "4 bytes", "POST", subclasses, `{"value":"0x00085D01"}`)
	m.refused(400, "InvalidResourceFieldValue", "value", "POST", subclasses, `{"value":"0x0"}`)
	m.refused(400, "InvalidResourceFieldValue", "no byte", "POST", subclasses, `{"value":"0x"}`)
	m.refused(400, "InvalidMatchCriteria", "matchLength", "PATCH", "/api/v2/clientClasses/"+phones, `{"matchLength":2}`, mergePatch)
	m.refused(403, "ResourceInUse", "subclasses", "PATCH", "/api/v2/clientClasses/"+phones,
		`{"option":null,"matchOffset":null,"matchLength":null,"matchExpression":"if known"}`, mergePatch)
	decided := m.id(classes, `{"name":"decided","matchExpression":"if substring(option vendor-class-identifier, 0, 9) = \"PXEClient\""}`)
	m.refused(409, "ResourceConflictsWithOther", "no subclasses", "POST", "/api/v2/clientClasses/"+decided+"/subclasses", `{"value":"a"}`)
	m.want(204, "DELETE", "/api/v2/clientClasses/"+phones, "")
	m.want(404, "GET", "/api/v2/subclasses/"+sub.text("id"), "")
	m.verify()
}

// A hardware address is in one pool at most; every configuration has one whose members get no address.
func TestMACPools(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.basics()
	at := "/api/v2/configurations/" + configuration
	pools := m.want(200, "GET", at+"/macPools", "")
	deny := pools.text("data.0.id")
	if pools.text("count") != "1" || pools.text("data.0.type") != "DenyMACPool" || pools.text("data.0.name") != "DENY" {
		t.Errorf("the pools are %s", pools.body)
	}
	m.refused(400, "InvalidResourceType", "type", "POST", at+"/macPools", `{"type":"DenyMACPool","name":"x"}`)
	m.refused(403, "DeleteNotAllowed", "DENY", "DELETE", "/api/v2/macPools/"+deny, "")
	m.refused(403, "UpdateNotAllowed", "DENY", "PATCH", "/api/v2/macPools/"+deny, `{"name":"x"}`, mergePatch)
	guests := m.id(at+"/macPools", `{"type":"MACPool","name":"guests"}`)
	mac := m.id(at+"/macAddresses", `{"address":"00:00:5e:00:53:01","macPool":{"id":`+guests+`}}`)
	if r := m.want(200, "GET", "/api/v2/macPools/"+guests+"/macAddresses", ""); r.text("data.0.id") != mac || r.text("count") != "1" {
		t.Errorf("its members are %s", r.body)
	}
	m.want(201, "POST", "/api/v2/macPools/"+deny+"/macAddresses", `{"id":`+mac+`}`)
	if r := m.want(200, "GET", "/api/v2/macAddresses/"+mac, ""); r.text("macPool.id") != deny {
		t.Errorf("the address is %s", r.body)
	}
	if r := m.want(200, "GET", "/api/v2/macAddresses?"+filter("macPool.name:'DENY'"), ""); r.text("count") != "1" {
		t.Errorf("found by its pool: %s", r.body)
	}
	m.refused(409, "ResourceAlreadyExists", mac, "POST", "/api/v2/macPools/"+deny+"/macAddresses", `{"id":`+mac+`}`)
	m.want(204, "DELETE", "/api/v2/macPools/"+deny+"/macAddresses/"+mac, "")
	m.want(200, "PATCH", "/api/v2/macAddresses/"+mac, `{"macPool":{"id":`+guests+`}}`, mergePatch)
	m.want(204, "DELETE", "/api/v2/macPools/"+guests, "")
	if r := m.want(200, "GET", "/api/v2/macAddresses/"+mac, ""); r.text("macPool.id") != "" {
		t.Errorf("without its pool the address is %s", r.body)
	}
	m.refused(404, "InlinedResourceNotFound", "macPool", "PATCH", "/api/v2/macAddresses/"+mac, `{"macPool":{"id":`+configuration+`}}`, mergePatch)
	m.verify()
}

// Declarations say where updates go, and how they are signed.
func TestZoneGroups(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, _, network := m.basics()
	at := "/api/v2/configurations/" + configuration
	group := m.id(at+"/zoneGroups", `{"name":"updates"}`)
	all := "/api/v2/zoneGroups/" + group + "/zoneDeclarations"
	key := m.id(at+"/signingKeys", `{"type":"TSIGKey","name":"k","algorithm":"SHA256","length":256}`)
	realm := m.id(at+"/realms", `{"name":"EXAMPLE.NET","domain":"example.net"}`)
	forward := `{"type":"DHCPForwardZone","primaryDnsServerAddress":"10.0.0.53","zone":{"id":` + zone + `}`
	made := m.want(201, "POST", all, forward+`,"dynamicUpdateSigningKeyType":"TSIG","dynamicUpdateSigningKey":{"id":`+key+`}}`)
	if made.text("name") != "example.com" || made.text("zone.id") != zone || made.text("zoneAbsoluteName") != "" {
		t.Errorf("a declaration is %s", made.body)
	}
	elsewhere := m.want(201, "POST", all, `{"type":"DHCPForwardZone","primaryDnsServerAddress":"10.0.0.53","zone":{"absoluteName":"corp.example"}}`)
	if elsewhere.text("name") != "corp.example" || elsewhere.text("zone.id") != "" || elsewhere.text("zoneAbsoluteName") != "corp.example" {
		t.Errorf("that of another's zone is %s", elsewhere.body)
	}
	if r := m.want(200, "PUT", "/api/v2/zoneDeclarations/"+elsewhere.text("id"), string(elsewhere.body)); r.text("name") != "corp.example" {
		t.Errorf("written back: %s", r.body)
	}
	reverse := m.want(201, "POST", all, `{"type":"DHCPReverseZone","primaryDnsServerAddress":"10.0.0.53","prefix":{"id":`+network+`}}`)
	if reverse.text("name") != "0.0.10.in-addr.arpa" {
		t.Errorf("a reverse declaration is %s", reverse.body)
	}
	m.refused(400, "MissingRequiredField", "dynamicUpdateSigningKey", "POST", all, forward+`,"dynamicUpdateSigningKeyType":"TSIG"}`)
	m.refused(400, "ConflictingResourceFieldValues", "dynamicUpdateSigningKey", "POST", all, forward+`,"dynamicUpdateSigningKey":{"id":`+key+`}}`)
	m.refused(400, "NoKeyDistributionCentersInRealm", "", "POST", all,
		forward+`,"dynamicUpdateSigningKeyType":"GSS_TSIG","dynamicUpdateSigningKeyRealm":{"id":`+realm+`}}`)
	m.refused(404, "InlinedResourceNotFound", "zone", "POST", all, strings.Replace(forward, zone, network, 1)+`}`)
	m.refused(400, "InvalidIpAddressValue", "primaryDnsServerAddress", "POST", all, strings.Replace(forward, "10.0.0.53", "ns", 1)+`}`)
	m.refused(403, "ResourceInUse", "", "DELETE", "/api/v2/signingKeys/"+key, "")
	if r := m.want(201, "POST", all, `{"type":"DHCPReverseZone","primaryDnsServerAddress":"10.0.0.53","prefix":{"range":"10.0.0.0/24"}}`); r.text(
		"prefix.id") != network {
		t.Errorf("a prefix by its range: %s", r.body)
	}
	m.want(200, "PATCH", "/api/v2/zones/"+zone, `{"name":"instance"}`, mergePatch)
	if r := m.want(200, "GET", "/api/v2/zoneDeclarations/"+made.text("id"), ""); r.text("name") != "instance.com" {
		t.Errorf("after another name of the zone: %s", r.body)
	}
	server := m.id(at+"/servers", `{"type":"Server","name":"dhcp1","profile":"DNS_DHCP_SERVER_60","interfaces":[{"managementAddress":"10.0.0.53"}]}`)
	m.want(201, "POST", "/api/v2/zoneGroups/"+group+"/servers", `{"id":`+server+`}`)
	if r := m.want(200, "GET", "/api/v2/zoneGroups/"+group+"/servers", ""); r.text("data.0.id") != server {
		t.Errorf("its servers are %s", r.body)
	}
	m.want(204, "DELETE", "/api/v2/zoneGroups/"+group+"/servers/"+server, "")
	m.want(200, "GET", "/api/v2/servers/"+server, "")
	m.verify()
}

// Leases are listed, and there are none.
func TestLeases(t *testing.T) {
	m := startAlone(t)
	_, _, _, block, network := m.basics()
	for _, path := range []string{"leases", "blocks/" + block + "/leases", "networks/" + network + "/leases"} {
		if r := m.want(200, "GET", "/api/v2/"+path+"?"+filter("type:'DHCPv4Lease'"), ""); r.text("count") != "0" {
			t.Errorf("%s: %s", path, r.body)
		}
		m.want(405, "POST", "/api/v2/"+path, "{}")
	}
}
