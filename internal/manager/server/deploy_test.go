package server

import (
	"strings"
	"testing"
)

func init() {
	alsoMade = append(alsoMade, func(m *manager) {
		at := "/api/v2/configurations/" + m.want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").text("data.0.id")
		view := m.want(200, "GET", at+"/views", "").text("data.0.id")
		network := m.want(200, "GET", "/api/v2/networks?"+filter("range:'10.0.0.0/24'"), "").text("data.0.id")
		one := m.id(at+"/servers", serverBody("ns1", "10.0.0.53"))
		two := m.id(at+"/servers", serverBody("ns2", "10.0.0.54"))
		three := m.id(at+"/servers", serverBody("ns3", "10.0.0.55"))
		m.id(at+"/servers", `{"type":"HAServer","name":"pair","interfaces":[{"servicesIpv4Address":"10.0.0.60"}],"activeServer":{"id":`+two+
			`},"passiveServer":{"id":`+three+`}}`)
		m.id(at+"/serverGroups", `{"name":"edge"}`)
		m.id("/api/v2/servers/"+one+"/interfaces", `{"type":"PublishedInterface","name":"ns1.example.net","primaryAddress":"192.0.2.53"}`)
		own := m.want(200, "GET", "/api/v2/servers/"+one+"/interfaces?"+filter("type:'NetworkInterface'"), "").text("data.0.id")
		m.id("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
		m.id("/api/v2/networks/"+network+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
		tftp := m.id(at+"/tftpGroups", `{"name":"boot"}`)
		m.id("/api/v2/tftpGroups/"+tftp+"/deploymentRoles", `{"type":"TFTPDeploymentRole","server":{"id":`+one+`}}`)
		m.id("/api/v2/servers/"+one+"/moves", `{"type":"DeploymentRoleMove","roleTypes":["DHCPDeploymentRole"],"destination":{"id":`+own+`}}`)
		profile := m.id("/api/v2/vendorProfiles", `{"name":"phones","identifier":"phone","description":"phones"}`)
		vendor := m.id("/api/v2/vendorProfiles/"+profile+"/deploymentOptionDefinitions",
			`{"type":"DHCPVendorOptionDefinition","name":"url","code":1,"displayName":"URL","description":"where","valueFormat":"<text>"}`)
		m.id(at+"/deploymentOptionDefinitions",
			`{"type":"DHCPv4CustomClientOptionDefinition","name":"mine","code":222,"displayName":"Mine","description":"mine","valueFormat":["<integer_8>"]}`)
		options := "/api/v2/networks/" + network + "/deploymentOptions"
		for _, body := range []string{`{"type":"DHCPv4ClientOption","name":"router","value":["10.0.0.1"]}`,
			`{"type":"DHCPv4ServiceOption","name":"default-lease-time","value":3600}`,
			`{"type":"DHCPv4RawOption","name":"mine","value":"option x 1;"}`,
			`{"type":"DHCPVendorOption","definition":{"id":` + vendor + `},"value":"http://x/"}`,
			`{"type":"DNSOption","name":"allow-query","value":["any"]}`, `{"type":"DNSRawOption","name":"raw","value":"x 1;"}`,
			`{"type":"StartOfAuthority","value":[null,null,null,"auto",null,null,null,null]}`} {
			m.id(options, body)
		}
		six := "/api/v2/networks/" + m.want(200, "GET", "/api/v2/networks?"+filter("type:'IPv6Network'"), "").text("data.0.id") +
			"/deploymentOptions"
		for _, body := range []string{`{"type":"DHCPv6ClientOption","name":"domain-search-list","value":["example.net"]}`,
			`{"type":"DHCPv6ServiceOption","name":"default-lease-time","value":3600}`, `{"type":"DHCPv6RawOption","name":"mine","value":"x 1;"}`} {
			m.id(six, body)
		}
		policy := m.id("/api/v2/signingPolicies", strings.Replace(policyBody, "NAME", "standard", 1))
		signed := m.id("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"signed.example"}`)
		m.id("/api/v2/signingPolicies/"+policy+"/appliedResources", `{"id":`+signed+`}`)
	})
}

// serverBody is a new server that is managed.
func serverBody(name, address string) string {
	return `{"type":"Server","name":"` + name + `","profile":"DNS_DHCP_SERVER_60","connected":true,"interfaces":[{"managementAddress":"` + address + `"}]}`
}

// Servers come with an interface and services; their state is changed by a PATCH, and pairs are made of two.
func TestServers(t *testing.T) {
	m := startAlone(t)
	configuration, view, _, _, _ := m.basics()
	at := "/api/v2/configurations/" + configuration
	one := m.want(201, "POST", at+"/servers", strings.Replace(serverBody("ns1", "10.0.0.53"), `"connected"`,
		`"password":"top secret","snmp":{"version":"v3","usernames":["u"],"authenticationPassphrase":"quiet"},"connected"`, 1))
	id := one.text("id")
	if text := string(one.body); strings.Contains(text, "top secret") || strings.Contains(text, "quiet") || strings.Contains(text, "sealed") ||
		one.text("state") != "ENABLED" || one.text("haRole") != "NOT_AVAILABLE" || one.text("checkMxValidation") != "WARN" {
		t.Errorf("a new server is %s", text)
	}
	if inherited := string(one.body); !strings.Contains(inherited, `"_inheritedFields":["dhcpConfigurationValidationEnabled"`) {
		t.Errorf("what comes from above: %s", inherited)
	}
	m.want(200, "PATCH", "/api/v2/servers/"+id, `{"overrideConfigurationLevelDnsValidation":true,"checkMxValidation":"FAIL"}`, mergePatch)
	if r := m.want(200, "GET", "/api/v2/servers/"+id, ""); r.text("checkMxValidation") != "FAIL" || strings.Contains(string(r.body), `"checkMxValidation",`) {
		t.Errorf("with checks of its own: %s", r.body)
	}
	shown := m.want(200, "GET", "/api/v2/servers/"+id, "")
	if r := m.want(200, "PUT", "/api/v2/servers/"+id, string(shown.body)); !strings.Contains(string(r.body), `"monitoringEnabled"]`) {
		t.Errorf("written back: %s", r.body)
	}
	m.refused(404, "InlinedResourceNotFound", "servicePoint", "PATCH", "/api/v2/servers/"+id, `{"servicePoint":"nonsense"}`, mergePatch)
	m.want(200, "PATCH", "/api/v2/servers/"+id, `{"interfaces":[{"managementAddress":"10.0.0.99"}]}`, mergePatch)
	if r := m.want(200, "GET", "/api/v2/servers/"+id+"/interfaces", ""); r.text("data.0.servicesIpv4Address") != "10.0.0.99" {
		t.Errorf("at another address: %s", r.body)
	}
	m.want(200, "PATCH", "/api/v2/servers/"+id, `{"interfaces":[{"managementAddress":"10.0.0.53"}]}`, mergePatch)
	faces := m.want(200, "GET", "/api/v2/servers/"+id+"/interfaces", "")
	own := faces.text("data.0.id")
	if faces.text("count") != "1" || faces.text("data.0.servicesIpv4Address") != "10.0.0.53" || faces.text("data.0.server.id") != id {
		t.Errorf("its interfaces are %s", faces.body)
	}
	m.refused(403, "UpdateNotAllowed", "through its server", "PATCH", "/api/v2/interfaces/"+own, `{"name":"x"}`, mergePatch)
	m.refused(403, "DeleteNotAllowed", id, "DELETE", "/api/v2/interfaces/"+own, "")
	m.refused(400, "ConflictingResourceFieldValues", "secondaryAddress", "POST", "/api/v2/servers/"+id+"/interfaces",
		`{"type":"PublishedInterface","name":"x.example","primaryAddress":"192.0.2.1","secondaryAddress":"192.0.2.2"}`)
	// States.
	for _, c := range []struct {
		body, code string
	}{{`{"state":"RESET_CONTROL"}`, "ServerNotDisabled"}, {`{"state":"FAILOVER"}`, "UnsupportedResourceFieldValue"}, {`{"state":"X"}`, "InvalidEnumValue"}} {
		m.refused(400, c.code, "state", "PATCH", "/api/v2/servers/"+id, c.body, mergePatch)
	}
	m.want(200, "PATCH", "/api/v2/servers/"+id, `{"state":"DISABLED"}`, mergePatch)
	m.refused(400, "FieldHasPatchOnlyUpdate", "state", "PUT", "/api/v2/servers/"+id, string(shown.body))
	if r := m.want(200, "PATCH", "/api/v2/servers/"+id, `{"state":"RESET_CONTROL"}`, mergePatch); r.text("state") != "DISABLED" || r.text("connected") != "false" {
		t.Errorf("after a reset: %s", r.body)
	}
	services := m.want(200, "GET", "/api/v2/servers/"+id+"/services?fields=id,type", "")
	if services.text("count") != "14" {
		t.Errorf("its services are %s", services.body)
	}
	ntp := "/api/v2/servers/" + id + "/services/" + m.want(200, "GET", "/api/v2/servers/"+id+"/services?"+filter("type:'NTPService'"),
		"").text("data.0.id")
	m.refused(400, "ServerNotConnected", id, "PUT", ntp, `{"type":"NTPService","enabled":true,"servers":[{"server":"ntp.example"}]}`)
	m.want(200, "PATCH", "/api/v2/servers/"+id, `{"state":"ENABLED","connected":true}`, mergePatch)
	if r := m.want(200, "PUT", ntp, `{"type":"NTPService","enabled":true,"servers":[{"server":"ntp.example"},{"server":"127.127.1.0","stratum":10}]}`); r.text(
		"servers.1.stratum") != "10" || r.text("_links.self.href") != ntp {
		t.Errorf("a service is %s", r.body)
	}
	m.refused(400, "InvalidResourceFieldValue", "servers[0].stratum", "PUT", ntp, `{"type":"NTPService","enabled":true,"servers":[{"server":"ntp.example","stratum":10}]}`)
	m.refused(400, "MissingRequiredField", "servers", "PUT", ntp, `{"type":"NTPService","enabled":true}`)
	for _, query := range []string{"", "?limit=1&fields=id", "?" + filter("type:'NTPService'"), "?orderBy=asc(id)"} {
		if r := m.want(200, "GET", "/api/v2/services"+query, ""); r.count() != 0 { // those of the manager's machine, of release 9.6
			t.Errorf("%s: there are %s", query, r.body)
		}
	}
	m.refused(404, "WrongResourceCollection", "in services: it is below "+id, "PUT", "/api/v2/services/"+ntp[strings.LastIndex(ntp, "/")+1:], `{"type":"NTPService","enabled":true,"servers":[]}`)
	m.want(405, "DELETE", ntp, "")
	// A pair.
	two := m.id(at+"/servers", serverBody("ns2", "10.0.0.54"))
	role := m.id("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	m.refused(403, "ResourceInUse", "", "DELETE", "/api/v2/servers/"+id, "")
	pairBody := `{"type":"HAServer","name":"pair","interfaces":[{"servicesIpv4Address":"10.0.0.60"}],"activeServer":{"id":` + id +
		`},"passiveServer":{"id":` + two + `}}`
	m.refused(400, "DuplicateFieldValue", "passiveServer", "POST", at+"/servers", strings.Replace(pairBody, `{"id":`+two, `{"id":`+id, 1))
	pair := m.id(at+"/servers", pairBody)
	if r := m.want(200, "GET", "/api/v2/servers/"+pair+"/servers?fields=id,haRole&orderBy=asc(id)", ""); r.text("data.0.haRole") != "ACTIVE" ||
		r.text("data.1.haRole") != "PASSIVE" {
		t.Errorf("its nodes are %s", r.body)
	}
	if r := m.want(200, "GET", "/api/v2/servers/"+pair+"/deploymentRoles", ""); r.text("data.0.id") != role {
		t.Errorf("the roles of the pair are %s", r.body)
	}
	m.refused(400, "ServerIsNotStandAloneServer", "activeServer", "POST", at+"/servers", strings.Replace(pairBody, `"pair"`, `"other"`, 1))
	m.refused(403, "OperationNotPermitted", "pair", "POST", "/api/v2/views/"+view+"/deploymentRoles",
		`{"type":"DNSDeploymentRole","roleType":"SECONDARY","interfaces":[{"id":`+own+`}]}`)
	m.refused(403, "OperationNotPermitted", "profile", "PATCH", "/api/v2/servers/"+two, `{"profile":"LTM"}`, mergePatch)
	m.want(200, "PATCH", "/api/v2/servers/"+pair, `{"state":"DISABLE"}`, mergePatch)
	m.refused(400, "ServerNotActive", "state", "PATCH", "/api/v2/servers/"+pair, `{"state":"FAILOVER"}`, mergePatch)
	m.want(200, "PATCH", "/api/v2/servers/"+pair, `{"state":"ENABLED"}`, mergePatch)
	m.want(200, "PATCH", "/api/v2/servers/"+pair, `{"state":"FAILOVER"}`, mergePatch)
	if r := m.want(200, "GET", "/api/v2/servers/"+two, ""); r.text("haRole") != "ACTIVE" {
		t.Errorf("after the failover the second is %s", r.body)
	}
	m.refused(403, "ResourceInUse", "", "DELETE", "/api/v2/servers/"+two, "")
	m.want(204, "DELETE", "/api/v2/servers/"+pair, "")
	if r := m.want(200, "GET", "/api/v2/servers/"+two+"/deploymentRoles", ""); r.text("data.0.id") != role {
		t.Errorf("without the pair the roles are %s", r.body)
	}
	m.want(204, "DELETE", "/api/v2/deploymentRoles/"+role, "")
	m.want(204, "DELETE", "/api/v2/servers/"+two, "")
	group := m.id(at+"/serverGroups", `{"name":"edge"}`)
	m.want(201, "POST", "/api/v2/serverGroups/"+group+"/servers", `{"id":`+id+`}`)
	if r := m.want(200, "GET", "/api/v2/servers/"+id, ""); r.text("serverGroup.id") != group {
		t.Errorf("in a group the server is %s", r.body)
	}
	m.want(204, "DELETE", "/api/v2/serverGroups/"+group, "")
	option := m.id("/api/v2/servers/"+id+"/deploymentOptions", `{"type":"DNSOption","name":"recursion","value":true}`)
	m.refused(403, "ResourceInUse", "recursion", "DELETE", "/api/v2/servers/"+id, "")
	m.want(204, "DELETE", "/api/v2/deploymentOptions/"+option, "")
	m.want(204, "DELETE", "/api/v2/servers/"+id, "")
	m.verify()
}

// Roles say which interface serves what; the nearest of a server is in effect.
func TestDeploymentRoles(t *testing.T) {
	m := startAlone(t)
	configuration, view, zone, block, network := m.basics()
	at := "/api/v2/configurations/" + configuration
	face := func(server string) string {
		return m.want(200, "GET", "/api/v2/servers/"+server+"/interfaces", "").text("data.0.id")
	}
	one := m.id(at+"/servers", serverBody("ns1", "10.0.0.53"))
	two := m.id(at+"/servers", serverBody("ns2", "10.0.0.54"))
	others := m.id(at+"/servers", `{"type":"Server","name":"ns.isp.example","profile":"OTHER_DNS_SERVER","interfaces":[{"managementAddress":"192.0.2.1"}]}`)
	roles := "/api/v2/networks/" + network + "/deploymentRoles"
	dhcp := `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[`
	// The view is the configuration's only one, where there is no other.
	alone := m.want(201, "POST", roles, `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+face(one)+`}]}`)
	if alone.text("view.id") != view {
		t.Errorf("the role is for the view %s, want %s", alone.text("view.id"), view)
	}
	m.want(204, "DELETE", "/api/v2/deploymentRoles/"+alone.text("id"), "")
	m.id(at+"/views", `{"type":"View","name":"a second one"}`)
	for _, c := range [][3]string{
		{dhcp + `]}`, "400 EmptyFieldValue", "interfaces"},
		{dhcp + `{"id":` + face(one) + `,"deploymentRoleInterfaceType":"SECONDARY"}]}`, "400 MissingRequiredDeploymenetRoleInterface", "PRIMARY"},
		{dhcp + `{"id":` + face(one) + `},{"id":` + face(two) + `}]}`, "400 UnsupportedDeploymentRoleInterfaceType", ""},
		{dhcp + `{"id":` + face(one) + `,"deploymentRoleInterfaceType":"SERVICE"}]}`, "400 UnsupportedDeploymentRoleInterfaceType", "SERVICE"},
		{dhcp + `{"id":` + face(others) + `}]}`, "400 IncompatibleServerProfile", "ns.isp.example"},
		{dhcp + `{"id":` + network + `}]}`, "404 InlinedResourceNotFound", "interfaces"},
		{`{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":` + face(one) + `}]}`, "400 MissingRequiredField", "view"},
		{`{"type":"DNSDeploymentRole","roleType":"PRIMARY","view":{"id":` + view + `},"interfaces":[{"id":` + face(one) +
			`,"deploymentRoleInterfaceType":"ZONE_TRANSFER"}]}`, "400 MissingRequiredDeploymenetRoleInterface", "SERVICE"},
		{`{"type":"TFTPDeploymentRole","server":{"id":` + one + `}}`, "400 InvalidResourceType", "type"},
	} {
		status, code, _ := strings.Cut(c[1], " ")
		m.refused(map[string]int{"400": 400, "404": 404}[status], code, c[2], "POST", roles, c[0])
	}
	pair := m.id(roles, dhcp+`{"id":`+face(one)+`},{"id":`+face(two)+`,"deploymentRoleInterfaceType":"SECONDARY"}]}`)
	if r := m.want(200, "GET", "/api/v2/deploymentRoles/"+pair+"/interfaces?orderBy=asc(id)", ""); r.text("count") != "2" ||
		r.text("data.1.server.name") != "ns2" {
		t.Errorf("its interfaces are %s", r.body)
	}
	m.refused(409, "ResourceAlreadyExists", "interfaces", "POST", roles, dhcp+`{"id":`+face(one)+`}]}`)
	reverse := m.id(roles, `{"type":"DNSDeploymentRole","roleType":"PRIMARY","view":{"id":`+view+`},"interfaces":[{"id":`+face(one)+`}]}`)
	up := m.id("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+face(one)+`}]}`)
	second := m.id("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"SECONDARY","interfaces":[{"id":`+face(two)+`}]}`)
	none := m.id("/api/v2/zones/"+zone+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"NONE","interfaces":[{"id":`+face(two)+`}]}`)
	effective := m.want(200, "GET", "/api/v2/zones/"+zone+"/effectiveDeploymentRoles?fields=id&orderBy=asc(id)", "")
	if got := effective.text("data.0.id") + " " + effective.text("data.1.id"); got != up+" "+none || effective.text("count") != "2" {
		t.Errorf("in effect are %s, want %s and %s, not %s", effective.body, up, none, second)
	}
	if r := m.want(200, "GET", "/api/v2/servers/"+one+"/deploymentRoles", ""); r.text("count") != "3" {
		t.Errorf("the roles of a server are %s", r.body)
	}
	m.want(200, "GET", "/api/v2/servers/"+one+"/deploymentRoles/"+reverse, "")
	m.refused(405, "MethodNotAllowed", "", "POST", "/api/v2/servers/"+one+"/deploymentRoles", "{}")
	if r := m.want(200, "GET", "/api/v2/deploymentRoles?"+filter("serverInterface.id:"+face(one)+" and view.id:"+view),
		""); r.text("count") != "2" {
		t.Errorf("found by an interface: %s", r.body)
	}
	m.want(200, "PUT", "/api/v2/deploymentRoles/"+up, `{"type":"DNSDeploymentRole","roleType":"HIDDEN_PRIMARY"}`)
	if r := m.want(200, "GET", "/api/v2/deploymentRoles/"+up+"/interfaces", ""); r.text("count") != "1" {
		t.Errorf("after a PUT without interfaces they are %s", r.body)
	}
	// Roles move with their server's interface, where it may have them.
	m.refused(400, "IncompatibleServerProfile", "ns.isp.example", "POST", "/api/v2/servers/"+one+"/moves",
		`{"type":"DeploymentRoleMove","roleTypes":["DHCPDeploymentRole"],"destination":{"id":`+face(others)+`}}`)
	m.refused(400, "ConflictingResourceFieldValues", "interfaces", "POST", "/api/v2/servers/"+one+"/moves",
		`{"type":"DeploymentRoleMove","roleTypes":["DHCPDeploymentRole"],"destination":{"id":`+face(two)+`}}`)
	scoped := m.id(roles[:strings.LastIndex(roles, "/")]+"/deploymentOptions", `{"type":"DNSOption","name":"recursion","value":true,"serverScope":{"id":`+one+`}}`)
	m.refused(400, "MoveRolesWithOptionsOnServer", "recursion", "POST", "/api/v2/servers/"+one+"/moves",
		`{"type":"DeploymentRoleMove","roleTypes":["DNSDeploymentRole"],"destination":{"id":`+face(others)+`}}`)
	m.want(204, "DELETE", "/api/v2/deploymentOptions/"+scoped, "")
	moved := m.want(201, "POST", "/api/v2/servers/"+one+"/moves", `{"type":"DeploymentRoleMove","roleTypes":["DNSDeploymentRole"],"destination":{"id":`+
		face(others)+`}}`)
	if r := m.want(200, "GET", "/api/v2/servers/"+others+"/deploymentRoles", ""); r.text("count") != "2" ||
		moved.text("destination.id") != face(others) {
		t.Errorf("after the move: %s %s", r.body, moved.body)
	}
	if r := m.want(200, "GET", "/api/v2/servers/"+one+"/deploymentRoles", ""); r.text("count") != "1" {
		t.Errorf("what stays is %s", r.body)
	}
	m.want(204, "DELETE", "/api/v2/blocks/"+block, "")
	m.verify()
}

// Options are named by name, code or definition, have values of a shape, and come down the tree.
func TestDeploymentOptions(t *testing.T) {
	m := startAlone(t)
	configuration, view, zone, block, network := m.basics()
	at := "/api/v2/configurations/" + configuration
	options := "/api/v2/networks/" + network + "/deploymentOptions"
	named := m.want(201, "POST", options, `{"type":"DHCPv4ClientOption","code":6,"value":["10.0.0.5","11.0.0.4"]}`)
	if named.text("name") != "dns-server" || named.text("definition.type") != "DHCPv4ClientOptionDefinition" {
		t.Errorf("an option by its code is %s", named.body)
	}
	forward := m.want(201, "POST", options, `{"type":"DHCPv4ClientOption","name":"ip-forwarding","code":6,"value":true}`) // the name counts
	if forward.text("code") != "19" || forward.text("value") != "true" {
		t.Errorf("an option by its name is %s", forward.body)
	}
	for _, c := range [][2]string{
		{`{"type":"DHCPv4ClientOption","value":1}`, "MissingRequiredField name"},
		{`{"type":"DHCPv4ClientOption","name":"router"}`, "MissingRequiredField value"},
		{`{"type":"DHCPv4ClientOption","name":"no-such","value":1}`, "InvalidResourceFieldValue no-such"},
		{`{"type":"DHCPv4ClientOption","code":200,"value":1}`, "InvalidResourceFieldValue 200"},
		{`{"type":"DHCPv4ClientOption","name":"router","value":"10.0.0.1"}`, "InvalidResourceFieldValue list"},
		{`{"type":"DHCPv4ClientOption","name":"router","value":["10.0.0.1","x"]}`, "InvalidResourceFieldValue entry 1"},
		{`{"type":"DHCPv4ClientOption","name":"router","value":[]}`, "InvalidResourceFieldValue one entry"},
		{`{"type":"DHCPv4ClientOption","name":"path-mtu-plateau-table","value":[68]}`, "InvalidResourceFieldValue <number>"},
		{`{"type":"DHCPv4ClientOption","name":"default-ip-ttl","value":256}`, "InvalidResourceFieldValue 255"},
		{`{"type":"DHCPv4ClientOption","name":"policy-filter-masks","value":[["10.0.0.0"]]}`, "InvalidResourceFieldValue entry 0"},
		{`{"type":"DHCPv4ClientOption","name":"all-subnets-local","value":"yes"}`, "InvalidResourceFieldValue <boolean>"},
		{`{"type":"DHCPv4ServiceOption","name":"deny-mac-pool","value":["nobody"]}`, "InlinedResourceNotFound nobody"},
		{`{"type":"DNSOption","name":"allow-query","value":["10.0.0.0/8","nolist"]}`, "InlinedResourceNotFound nolist"},
		{`{"type":"DNSOption","name":"forwarding-policy","value":"never"}`, "InvalidResourceFieldValue first"},
		{`{"type":"DHCPv6ClientOption","name":"domain-search-list","value":["x"]}`, "UnsupportedDeploymentOptionScope IPv4Network"},
		{`{"type":"DHCPv4RawOption","name":"x"}`, "MissingRequiredField value"},
		{`{"type":"StartOfAuthority","value":[1,2,3]}`, "InvalidResourceFieldValue eight"},
		{`{"type":"StartOfAuthority","value":[3600,"ns.example","admin","auto",1,1,1,1]}`, "InvalidResourceFieldValue part 2"},
		{`{"type":"StartOfAuthority","value":[3600,"ns.example","a@b.example","never",1,1,1,1]}`, "InvalidResourceFieldValue serial"},
		{`{"type":"DHCPv4ClientOption","name":"router","value":["10.0.0.1"],"serverScope":{"id":` + network + `}}`, "InlinedResourceNotFound serverScope"},
	} {
		code, naming, _ := strings.Cut(c[1], " ")
		status := 400
		if code == "InlinedResourceNotFound" {
			status = 404
		}
		m.refused(status, code, naming, "POST", options, c[0])
	}
	m.refused(409, "ResourceAlreadyExists", "dns-server", "POST", options, `{"type":"DHCPv4ClientOption","name":"dns-server","value":["10.0.0.9"]}`)
	if r := m.want(201, "POST", options, `{"type":"DNSOption","name":"forwarding-policy","value":"ONLY"}`); r.text("value") != "only" {
		t.Errorf("words of an enumeration: %s", r.body)
	}
	soa := m.id("/api/v2/zones/"+zone+"/deploymentOptions",
		`{"type":"StartOfAuthority","value":[3600,"primary.com","admin@acme.com","auto",1200,180,1209600,3600]}`)
	// What comes down: the nearest of each definition and scope.
	server := m.id(at+"/servers", serverBody("ns1", "10.0.0.53"))
	high := m.id(at+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"domain-name","value":"example.com"}`)
	hidden := m.id(at+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"dns-server","value":["10.9.9.9"]}`)
	scoped := m.id("/api/v2/blocks/"+block+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"dns-server","value":["10.8.8.8"],"serverScope":{"id":`+server+`}}`)
	address := m.id("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	effective := m.want(200, "GET", "/api/v2/addresses/"+address+"/effectiveDeploymentOptions?limit=100", "")
	for id, want := range map[string]bool{high: true, hidden: false, scoped: true, named.text("id"): true, forward.text("id"): true,
		soa: false} {
		if got := strings.Contains(string(effective.body), `"id":`+id+","); got != want {
			t.Errorf("option %s in effect: %v, want %v: %s", id, got, want, effective.body)
		}
	}
	if strings.Contains(string(m.want(200, "GET", "/api/v2/addresses/"+address, "").body), "effective") {
		t.Error("an address links to what is not published")
	}
	m.want(405, "POST", "/api/v2/addresses/"+address+"/effectiveDeploymentOptions", "{}")
	m.id("/api/v2/views/"+view+"/deploymentOptions", `{"type":"DNSOption","name":"recursion","value":false}`)
	if r := m.want(200, "GET", "/api/v2/zones/"+zone+"/effectiveDeploymentOptions", ""); r.text("count") != "2" {
		t.Errorf("in effect at the zone: %s", r.body)
	}
	m.want(200, "PATCH", at, `{"dnsOptionInheritanceEnabled":false}`, mergePatch)
	if r := m.want(200, "GET", "/api/v2/zones/"+zone+"/effectiveDeploymentOptions", ""); r.text("count") != "1" || r.text("data.0.id") != soa {
		t.Errorf("in effect where nothing comes down: %s", r.body)
	}
	// What values name follows, and stays.
	list := m.id(at+"/accessControlLists", `{"name":"inner","matchElements":["10.0.0.0/8"]}`)
	query := m.id(options, `{"type":"DNSOption","name":"allow-query","value":["!inner","any"]}`)
	m.refused(403, "ResourceInUse", "allow-query", "DELETE", "/api/v2/accessControlLists/"+list, "")
	m.want(200, "PATCH", "/api/v2/accessControlLists/"+list, `{"name":"core"}`, mergePatch)
	if r := m.want(200, "GET", "/api/v2/deploymentOptions/"+query, ""); r.text("value.0") != "!core" {
		t.Errorf("after another name of the list the option is %s", r.body)
	}
	m.want(200, "PUT", "/api/v2/deploymentOptions/"+query, `{"type":"DNSOption","value":["none"]}`) // which option it is stays
	key := m.id(at+"/signingKeys", `{"type":"TSIGKey","name":"dyn","algorithm":"SHA256","length":256}`)
	making := m.last()
	updates := m.id(options, `{"type":"DNSOption","name":"update-policy","value":[["grant","dyn","zonesub","","ANY"],["grant","host/x@Y","ms-self","","A"]]}`)
	m.refused(403, "ResourceInUse", "update-policy", "DELETE", "/api/v2/signingKeys/"+key, "")
	m.want(200, "PATCH", "/api/v2/signingKeys/"+key, `{"name":"dyn2"}`, mergePatch)
	if r := m.want(200, "GET", "/api/v2/deploymentOptions/"+updates, ""); r.text("value.0.1") != "dyn2" || r.text("resource.id") != network {
		t.Errorf("after another name of the key the option is %s", r.body)
	}
	if r := m.undo(making); r.StatusCode != 409 {
		t.Errorf("undoing the making of a key that an option names: %d %s", r.StatusCode, r.body)
	}
	m.refused(400, "InvalidResourceFieldValue", "entry 0", "POST", options, `{"type":"DHCPv4ClientOption","code":121,"value":["banana"]}`)
	m.id(options, `{"type":"DHCPv4ClientOption","name":"rfc3442-classless-static-routes","value":["10.9.0.0/16:10.0.0.1"]}`)
	if r := m.want(200, "GET", "/api/v2/deploymentOptions?"+filter("resource.id:"+network+" and name:'update-policy'"),
		""); r.text("count") != "1" {
		t.Errorf("found by where it lies: %s", r.body)
	}
	m.want(204, "DELETE", "/api/v2/accessControlLists/"+list, "")
	m.refused(403, "ResourceInUse", "", "DELETE", "/api/v2/servers/"+server, "")
	elsewhere := m.id("/api/v2/configurations", `{"name":"elsewhere"}`)
	m.refused(400, "ResourceNotInConfiguration", "serverScope", "POST", "/api/v2/configurations/"+elsewhere+"/deploymentOptions",
		`{"type":"DHCPv4ClientOption","name":"router","value":["10.0.0.1"],"serverScope":{"id":`+server+`}}`)
	m.want(204, "DELETE", "/api/v2/configurations/"+configuration, "")
	m.verify()
}

// Definitions of one's own, and of vendors.
func TestOptionDefinitions(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.basics()
	definitions := "/api/v2/configurations/" + configuration + "/deploymentOptionDefinitions"
	body := `{"type":"DHCPv4CustomClientOptionDefinition","name":"mine","code":222,"displayName":"Mine","description":"mine","valueFormat":["<integer_8>"]}`
	mine := m.id(definitions, body)
	for _, c := range [][3]string{{`"mine","code":222`, `"other","code":222`, "409 ResourceAlreadyExists"}, {`"mine","code":222`, `"mine","code":223`, "409 ResourceAlreadyExists"},
		{`222`, `3`, "409 ResourceAlreadyExists"}, {`"mine"`, `"router"`, "409 ResourceAlreadyExists"}, {`222`, `300`, "400 ValueOutsideRange"},
		{`["<integer_8>"]`, `"<colour>"`, "400 InvalidResourceFieldValue"}, {`["<integer_8>"]`, `{}`, "400 InvalidResourceFieldValue"}, {`"mine"`, `"a b"`, "400 InvalidResourceFieldValue"}} {
		text := strings.Replace(body, c[0], c[1], 1)
		if c[0] != `"mine","code":222` && c[0] != `"mine"` {
			text = strings.Replace(text, `"mine"`, `"fresh"`, 1)
		}
		if c[2] == "400 InvalidResourceFieldValue" {
			text = strings.Replace(text, "222", "224", 1)
		}
		status, code, _ := strings.Cut(c[2], " ")
		m.refused(map[string]int{"400": 400, "409": 409}[status], code, "", "POST", definitions, text)
	}
	other := m.id("/api/v2/configurations", `{"name":"elsewhere"}`) // codes are each configuration's own
	m.id("/api/v2/configurations/"+other+"/deploymentOptionDefinitions", body)
	m.id("/api/v2/configurations/"+other+"/deploymentOptions", `{"type":"DHCPv4ClientOption","code":222,"value":[1]}`)
	options := "/api/v2/networks/" + network + "/deploymentOptions"
	option := m.want(201, "POST", options, `{"type":"DHCPv4ClientOption","code":222,"value":[1,-5]}`)
	if option.text("definition.id") != mine || option.text("name") != "mine" {
		t.Errorf("an option of one's own is %s", option.body)
	}
	m.refused(400, "InvalidResourceFieldValue", "127", "POST", options, `{"type":"DHCPv4ClientOption","code":222,"value":[128]}`)
	m.refused(403, "ResourceInUse", "", "DELETE", "/api/v2/deploymentOptionDefinitions/"+mine, "")
	if r := m.want(200, "GET", "/api/v2/deploymentOptionDefinitions?limit=1&total=true&"+filter("type:'DNSOptionDefinition'"),
		""); r.text("totalCount") < "1" {
		t.Errorf("definitions of DNS options: %s", r.body)
	}
	builtIn := m.want(200, "GET", "/api/v2/deploymentOptionDefinitions?"+filter("name:'router'"), "").text("data.0.id")
	m.refused(405, "MethodNotAllowed", "", "POST", "/api/v2/deploymentOptionDefinitions", "{}")
	m.refused(403, "UpdateNotAllowed", "router", "PATCH", "/api/v2/deploymentOptionDefinitions/"+builtIn, `{"name":"x"}`, mergePatch)
	m.refused(403, "DeleteNotAllowed", "router", "DELETE", "/api/v2/deploymentOptionDefinitions/"+builtIn, "")
	profile := m.id("/api/v2/vendorProfiles", `{"name":"phones","identifier":"phone","description":"d"}`)
	m.refused(409, "ResourceAlreadyExists", "identifier", "POST", "/api/v2/vendorProfiles", `{"name":"others","identifier":"phone","description":"d"}`)
	vendor := m.id("/api/v2/vendorProfiles/"+profile+"/deploymentOptionDefinitions",
		`{"type":"DHCPVendorOptionDefinition","name":"url","code":1,"displayName":"URL","description":"where","valueFormat":"<url>"}`)
	m.refused(400, "MissingRequiredField", "definition", "POST", options, `{"type":"DHCPVendorOption","value":"http://x/"}`)
	if r := m.want(201, "POST", options, `{"type":"DHCPVendorOption","definition":{"id":`+vendor+`},"value":"http://x/"}`); r.text("code") != "1" {
		t.Errorf("a vendor's option is %s", r.body)
	}
	m.refused(403, "ResourceInUse", "", "DELETE", "/api/v2/vendorProfiles/"+profile, "")
	m.verify()
}
