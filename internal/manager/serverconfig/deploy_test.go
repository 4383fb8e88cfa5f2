package serverconfig_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestServers checks that a server is created with an interface and services, changes its state by a PATCH, and forms a pair with another
// one.
func TestServers(t *testing.T) {
	m := start(t)
	configuration, view, _, _, _ := m.Basics()
	at := "/api/v2/configurations/" + configuration
	one := m.Want(201, "POST", at+"/servers", strings.Replace(apitest.ServerBody("ns1", "10.0.0.53"), `"connected"`,
		`"password":"top secret","snmp":{"version":"v3","usernames":["u"],"authenticationPassphrase":"quiet"},"connected"`, 1))
	id := one.Text("id")
	if text := string(one.Body); strings.Contains(text, "top secret") || strings.Contains(text, "quiet") || strings.Contains(text, "sealed") ||
		one.Text("state") != "ENABLED" || one.Text("haRole") != "NOT_AVAILABLE" || one.Text("checkMxValidation") != "WARN" {
		t.Errorf("a new server is %s", text)
	}
	if inherited := string(one.Body); !strings.Contains(inherited, `"_inheritedFields":["dhcpConfigurationValidationEnabled"`) {
		t.Errorf("what comes from above: %s", inherited)
	}
	m.Want(200, "PATCH", "/api/v2/servers/"+id, `{"overrideConfigurationLevelDnsValidation":true,"checkMxValidation":"FAIL"}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/servers/"+id, ""); r.Text("checkMxValidation") != "FAIL" || strings.Contains(string(r.Body), `"checkMxValidation",`) {
		t.Errorf("with checks of its own: %s", r.Body)
	}
	shown := m.Want(200, "GET", "/api/v2/servers/"+id, "")
	if r := m.Want(200, "PUT", "/api/v2/servers/"+id, string(shown.Body)); !strings.Contains(string(r.Body), `"monitoringEnabled"]`) {
		t.Errorf("written back: %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/servers/"+id, `{"interfaces":[{"managementAddress":"10.0.0.99"}]}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/servers/"+id+"/interfaces", ""); r.Text("data.0.servicesIpv4Address") != "10.0.0.99" {
		t.Errorf("at another address: %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/servers/"+id, `{"interfaces":[{"managementAddress":"10.0.0.53"}]}`, apitest.MergePatch)
	faces := m.Want(200, "GET", "/api/v2/servers/"+id+"/interfaces", "")
	own := faces.Text("data.0.id")
	if faces.Text("count") != "1" || faces.Text("data.0.servicesIpv4Address") != "10.0.0.53" || faces.Text("data.0.server.id") != id {
		t.Errorf("its interfaces are %s", faces.Body)
	}
	m.Refused(403, "UpdateNotAllowed", "through its server", "PATCH", "/api/v2/interfaces/"+own, `{"name":"x"}`, apitest.MergePatch)
	m.Refused(403, "DeleteNotAllowed", id, "DELETE", "/api/v2/interfaces/"+own, "")
	m.Refused(400, "ConflictingResourceFieldValues", "secondaryAddress", "POST", "/api/v2/servers/"+id+"/interfaces",
		`{"type":"PublishedInterface","name":"x.example","primaryAddress":"192.0.2.1","secondaryAddress":"192.0.2.2"}`)
	// States.
	for _, c := range []struct {
		body, code string
	}{{`{"state":"RESET_CONTROL"}`, "ServerNotDisabled"}, {`{"state":"FAILOVER"}`, "UnsupportedResourceFieldValue"}, {`{"state":"X"}`, "InvalidEnumValue"}} {
		m.Refused(400, c.code, "state", "PATCH", "/api/v2/servers/"+id, c.body, apitest.MergePatch)
	}
	m.Want(200, "PATCH", "/api/v2/servers/"+id, `{"state":"DISABLED"}`, apitest.MergePatch)
	m.Refused(400, "FieldHasPatchOnlyUpdate", "state", "PUT", "/api/v2/servers/"+id, string(shown.Body))
	if r := m.Want(200, "PATCH", "/api/v2/servers/"+id, `{"state":"RESET_CONTROL"}`, apitest.MergePatch); r.Text("state") != "DISABLED" || r.Text("connected") != "false" {
		t.Errorf("after a reset: %s", r.Body)
	}
	services := m.Want(200, "GET", "/api/v2/servers/"+id+"/services?fields=id,type", "")
	if services.Text("count") != "14" {
		t.Errorf("its services are %s", services.Body)
	}
	ntp := "/api/v2/servers/" + id + "/services/" + m.Want(200, "GET", "/api/v2/servers/"+id+"/services?"+apitest.Filter("type:'NTPService'"),
		"").Text("data.0.id")
	m.Refused(400, "ServerNotConnected", id, "PUT", ntp, `{"type":"NTPService","enabled":true,"servers":[{"server":"ntp.example"}]}`)
	m.Want(200, "PATCH", "/api/v2/servers/"+id, `{"state":"ENABLED","connected":true}`, apitest.MergePatch)
	if r := m.Want(200, "PUT", ntp, `{"type":"NTPService","enabled":true,"servers":[{"server":"ntp.example"},{"server":"127.127.1.0","stratum":10}]}`); r.Text(
		"servers.1.stratum") != "10" || r.Text("_links.self.href") != ntp {
		t.Errorf("a service is %s", r.Body)
	}
	m.Refused(400, "InvalidResourceFieldValue", "servers[0].stratum", "PUT", ntp, `{"type":"NTPService","enabled":true,"servers":[{"server":"ntp.example","stratum":10}]}`)
	m.Refused(400, "MissingRequiredField", "servers", "PUT", ntp, `{"type":"NTPService","enabled":true}`)
	for _, query := range []string{"", "?limit=1&fields=id", "?" + apitest.Filter("type:'NTPService'"), "?orderBy=asc(id)"} {
		if r := m.Want(200, "GET", "/api/v2/services"+query, ""); r.Count() != 0 { // those of the manager's machine, of release 9.6
			t.Errorf("%s: there are %s", query, r.Body)
		}
	}
	m.Refused(404, "WrongResourceCollection", "in services: it is below "+id, "PUT", "/api/v2/services/"+ntp[strings.LastIndex(ntp, "/")+1:], `{"type":"NTPService","enabled":true,"servers":[]}`)
	m.Want(405, "DELETE", ntp, "")
	// A pair.
	two := m.ID(at+"/servers", apitest.ServerBody("ns2", "10.0.0.54"))
	role := m.ID("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	m.Refused(403, "ResourceInUse", "", "DELETE", "/api/v2/servers/"+id, "")
	pairBody := `{"type":"HAServer","name":"pair","interfaces":[{"servicesIpv4Address":"10.0.0.60"}],"activeServer":{"id":` + id +
		`},"passiveServer":{"id":` + two + `}}`
	m.Refused(400, "DuplicateFieldValue", "passiveServer", "POST", at+"/servers", strings.Replace(pairBody, `{"id":`+two, `{"id":`+id, 1))
	pair := m.ID(at+"/servers", pairBody)
	if r := m.Want(200, "GET", "/api/v2/servers/"+pair+"/servers?fields=id,haRole&orderBy=asc(id)", ""); r.Text("data.0.haRole") != "ACTIVE" ||
		r.Text("data.1.haRole") != "PASSIVE" {
		t.Errorf("its nodes are %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/servers/"+pair+"/deploymentRoles", ""); r.Text("data.0.id") != role {
		t.Errorf("the roles of the pair are %s", r.Body)
	}
	m.Refused(400, "ServerIsNotStandAloneServer", "activeServer", "POST", at+"/servers", strings.Replace(pairBody, `"pair"`, `"other"`, 1))
	m.Refused(403, "OperationNotPermitted", "pair", "POST", "/api/v2/views/"+view+"/deploymentRoles",
		`{"type":"DNSDeploymentRole","roleType":"SECONDARY","interfaces":[{"id":`+own+`}]}`)
	m.Refused(403, "OperationNotPermitted", "profile", "PATCH", "/api/v2/servers/"+two, `{"profile":"LTM"}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/servers/"+pair, `{"state":"DISABLE"}`, apitest.MergePatch)
	m.Refused(400, "ServerNotActive", "state", "PATCH", "/api/v2/servers/"+pair, `{"state":"FAILOVER"}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/servers/"+pair, `{"state":"ENABLED"}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/servers/"+pair, `{"state":"FAILOVER"}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/servers/"+two, ""); r.Text("haRole") != "ACTIVE" {
		t.Errorf("after the failover the second is %s", r.Body)
	}
	m.Refused(403, "ResourceInUse", "", "DELETE", "/api/v2/servers/"+two, "")
	m.Want(204, "DELETE", "/api/v2/servers/"+pair, "")
	if r := m.Want(200, "GET", "/api/v2/servers/"+two+"/deploymentRoles", ""); r.Text("data.0.id") != role {
		t.Errorf("without the pair the roles are %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/deploymentRoles/"+role, "")
	m.Want(204, "DELETE", "/api/v2/servers/"+two, "")
	group := m.ID(at+"/serverGroups", `{"name":"edge"}`)
	m.Want(201, "POST", "/api/v2/serverGroups/"+group+"/servers", `{"id":`+id+`}`)
	if r := m.Want(200, "GET", "/api/v2/servers/"+id, ""); r.Text("serverGroup.id") != group {
		t.Errorf("in a group the server is %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/serverGroups/"+group, "")
	option := m.ID("/api/v2/servers/"+id+"/deploymentOptions", `{"type":"DNSOption","name":"recursion","value":true}`)
	m.Refused(403, "ResourceInUse", "recursion", "DELETE", "/api/v2/servers/"+id, "")
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+option, "")
	m.Want(204, "DELETE", "/api/v2/servers/"+id, "")
	m.Verify()
}

// TestDeploymentRoles checks that roles state which interface serves a resource. The role nearest to the resource is effective for each
// server.
func TestDeploymentRoles(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	at := "/api/v2/configurations/" + configuration
	face := func(server string) string {
		return m.Want(200, "GET", "/api/v2/servers/"+server+"/interfaces", "").Text("data.0.id")
	}
	one := m.ID(at+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
	two := m.ID(at+"/servers", apitest.ServerBody("ns2", "10.0.0.54"))
	others := m.ID(at+"/servers", `{"type":"Server","name":"ns.isp.example","profile":"OTHER_DNS_SERVER","interfaces":[{"managementAddress":"192.0.2.1"}]}`)
	roles := "/api/v2/networks/" + network + "/deploymentRoles"
	dhcp := `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[`
	// The default view is the only view of the configuration.
	alone := m.Want(201, "POST", roles, `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+face(one)+`}]}`)
	if alone.Text("view.id") != view {
		t.Errorf("the role is for the view %s, want %s", alone.Text("view.id"), view)
	}
	m.Want(204, "DELETE", "/api/v2/deploymentRoles/"+alone.Text("id"), "")
	m.ID(at+"/views", `{"type":"View","name":"a second one"}`)
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
		m.Refused(map[string]int{"400": 400, "404": 404}[status], code, c[2], "POST", roles, c[0])
	}
	pair := m.ID(roles, dhcp+`{"id":`+face(one)+`},{"id":`+face(two)+`,"deploymentRoleInterfaceType":"SECONDARY"}]}`)
	if r := m.Want(200, "GET", "/api/v2/deploymentRoles/"+pair+"/interfaces?orderBy=asc(id)", ""); r.Text("count") != "2" ||
		r.Text("data.1.server.name") != "ns2" {
		t.Errorf("its interfaces are %s", r.Body)
	}
	m.Refused(409, "ResourceAlreadyExists", "interfaces", "POST", roles, dhcp+`{"id":`+face(one)+`}]}`)
	reverse := m.ID(roles, `{"type":"DNSDeploymentRole","roleType":"PRIMARY","view":{"id":`+view+`},"interfaces":[{"id":`+face(one)+`}]}`)
	up := m.ID("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+face(one)+`}]}`)
	second := m.ID("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"SECONDARY","interfaces":[{"id":`+face(two)+`}]}`)
	none := m.ID("/api/v2/zones/"+zone+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"NONE","interfaces":[{"id":`+face(two)+`}]}`)
	effective := m.Want(200, "GET", "/api/v2/zones/"+zone+"/effectiveDeploymentRoles?fields=id&orderBy=asc(id)", "")
	if got := effective.Text("data.0.id") + " " + effective.Text("data.1.id"); got != up+" "+none || effective.Text("count") != "2" {
		t.Errorf("in effect are %s, want %s and %s, not %s", effective.Body, up, none, second)
	}
	if r := m.Want(200, "GET", "/api/v2/servers/"+one+"/deploymentRoles", ""); r.Text("count") != "3" {
		t.Errorf("the roles of a server are %s", r.Body)
	}
	m.Want(200, "GET", "/api/v2/servers/"+one+"/deploymentRoles/"+reverse, "")
	m.Refused(405, "MethodNotAllowed", "", "POST", "/api/v2/servers/"+one+"/deploymentRoles", "{}")
	if r := m.Want(200, "GET", "/api/v2/deploymentRoles?"+apitest.Filter("serverInterface.id:"+face(one)+" and view.id:"+view),
		""); r.Text("count") != "2" {
		t.Errorf("found by an interface: %s", r.Body)
	}
	m.Want(200, "PUT", "/api/v2/deploymentRoles/"+up, `{"type":"DNSDeploymentRole","roleType":"HIDDEN_PRIMARY"}`)
	if r := m.Want(200, "GET", "/api/v2/deploymentRoles/"+up+"/interfaces", ""); r.Text("count") != "1" {
		t.Errorf("after a PUT without interfaces they are %s", r.Body)
	}
	// Roles move with their server's interface, where it may have them.
	m.Refused(400, "IncompatibleServerProfile", "ns.isp.example", "POST", "/api/v2/servers/"+one+"/moves",
		`{"type":"DeploymentRoleMove","roleTypes":["DHCPDeploymentRole"],"destination":{"id":`+face(others)+`}}`)
	m.Refused(400, "ConflictingResourceFieldValues", "interfaces", "POST", "/api/v2/servers/"+one+"/moves",
		`{"type":"DeploymentRoleMove","roleTypes":["DHCPDeploymentRole"],"destination":{"id":`+face(two)+`}}`)
	scoped := m.ID(roles[:strings.LastIndex(roles, "/")]+"/deploymentOptions", `{"type":"DNSOption","name":"recursion","value":true,"serverScope":{"id":`+one+`}}`)
	m.Refused(400, "MoveRolesWithOptionsOnServer", "recursion", "POST", "/api/v2/servers/"+one+"/moves",
		`{"type":"DeploymentRoleMove","roleTypes":["DNSDeploymentRole"],"destination":{"id":`+face(others)+`}}`)
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+scoped, "")
	moved := m.Want(201, "POST", "/api/v2/servers/"+one+"/moves", `{"type":"DeploymentRoleMove","roleTypes":["DNSDeploymentRole"],"destination":{"id":`+
		face(others)+`}}`)
	if r := m.Want(200, "GET", "/api/v2/servers/"+others+"/deploymentRoles", ""); r.Text("count") != "2" ||
		moved.Text("destination.id") != face(others) {
		t.Errorf("after the move: %s %s", r.Body, moved.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/servers/"+one+"/deploymentRoles", ""); r.Text("count") != "1" {
		t.Errorf("what stays is %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/blocks/"+block, "")
	m.Verify()
}

// TestDeploymentOptions checks that options are named by name, code or definition, that their values have the defined format, and that they
// are inherited.
func TestDeploymentOptions(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	at := "/api/v2/configurations/" + configuration
	options := "/api/v2/networks/" + network + "/deploymentOptions"
	named := m.Want(201, "POST", options, `{"type":"DHCPv4ClientOption","code":6,"value":["10.0.0.5","11.0.0.4"]}`)
	if named.Text("name") != "dns-server" || named.Text("definition.type") != "DHCPv4ClientOptionDefinition" {
		t.Errorf("an option by its code is %s", named.Body)
	}
	forward := m.Want(201, "POST", options, `{"type":"DHCPv4ClientOption","name":"ip-forwarding","code":6,"value":true}`) // the name counts
	if forward.Text("code") != "19" || forward.Text("value") != "true" {
		t.Errorf("an option by its name is %s", forward.Body)
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
		m.Refused(status, code, naming, "POST", options, c[0])
	}
	m.Refused(409, "ResourceAlreadyExists", "dns-server", "POST", options, `{"type":"DHCPv4ClientOption","name":"dns-server","value":["10.0.0.9"]}`)
	if r := m.Want(201, "POST", options, `{"type":"DNSOption","name":"forwarding-policy","value":"ONLY"}`); r.Text("value") != "only" {
		t.Errorf("words of an enumeration: %s", r.Body)
	}
	soa := m.ID("/api/v2/zones/"+zone+"/deploymentOptions",
		`{"type":"StartOfAuthority","value":[3600,"primary.com","admin@acme.com","auto",1200,180,1209600,3600]}`)
	// Effective options are the nearest ones of each definition and scope.
	server := m.ID(at+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
	high := m.ID(at+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"domain-name","value":"example.com"}`)
	hidden := m.ID(at+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"dns-server","value":["10.9.9.9"]}`)
	scoped := m.ID("/api/v2/blocks/"+block+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"dns-server","value":["10.8.8.8"],"serverScope":{"id":`+server+`}}`)
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	effective := m.Want(200, "GET", "/api/v2/addresses/"+address+"/effectiveDeploymentOptions?limit=100", "")
	for id, want := range map[string]bool{high: true, hidden: false, scoped: true, named.Text("id"): true, forward.Text("id"): true,
		soa: false} {
		if got := strings.Contains(string(effective.Body), `"id":`+id+","); got != want {
			t.Errorf("option %s in effect: %v, want %v: %s", id, got, want, effective.Body)
		}
	}
	if strings.Contains(string(m.Want(200, "GET", "/api/v2/addresses/"+address, "").Body), "effective") {
		t.Error("an address links to what is not published")
	}
	m.Want(405, "POST", "/api/v2/addresses/"+address+"/effectiveDeploymentOptions", "{}")
	m.ID("/api/v2/views/"+view+"/deploymentOptions", `{"type":"DNSOption","name":"recursion","value":false}`)
	if r := m.Want(200, "GET", "/api/v2/zones/"+zone+"/effectiveDeploymentOptions", ""); r.Text("count") != "2" {
		t.Errorf("in effect at the zone: %s", r.Body)
	}
	m.Want(200, "PATCH", at, `{"dnsOptionInheritanceEnabled":false}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/zones/"+zone+"/effectiveDeploymentOptions", ""); r.Text("count") != "1" || r.Text("data.0.id") != soa {
		t.Errorf("in effect where nothing comes down: %s", r.Body)
	}
	// Values follow a renamed list, which cannot be deleted.
	list := m.ID(at+"/accessControlLists", `{"name":"inner","matchElements":["10.0.0.0/8"]}`)
	query := m.ID(options, `{"type":"DNSOption","name":"allow-query","value":["!inner","any"]}`)
	m.Refused(403, "ResourceInUse", "allow-query", "DELETE", "/api/v2/accessControlLists/"+list, "")
	m.Want(200, "PATCH", "/api/v2/accessControlLists/"+list, `{"name":"core"}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/deploymentOptions/"+query, ""); r.Text("value.0") != "!core" {
		t.Errorf("after another name of the list the option is %s", r.Body)
	}
	m.Want(200, "PUT", "/api/v2/deploymentOptions/"+query, `{"type":"DNSOption","value":["none"]}`) // which option it is stays
	key := m.ID(at+"/signingKeys", `{"type":"TSIGKey","name":"dyn","algorithm":"SHA256","length":256}`)
	making := m.LastTransaction()
	updates := m.ID(options, `{"type":"DNSOption","name":"update-policy","value":[["grant","dyn","zonesub","","ANY"],["grant","host/x@Y","ms-self","","A"]]}`)
	m.Refused(403, "ResourceInUse", "update-policy", "DELETE", "/api/v2/signingKeys/"+key, "")
	m.Want(200, "PATCH", "/api/v2/signingKeys/"+key, `{"name":"dyn2"}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/deploymentOptions/"+updates, ""); r.Text("value.0.1") != "dyn2" || r.Text("resource.id") != network {
		t.Errorf("after another name of the key the option is %s", r.Body)
	}
	if r := m.Undo(making); r.StatusCode != 409 {
		t.Errorf("undoing the making of a key that an option names: %d %s", r.StatusCode, r.Body)
	}
	m.Refused(400, "InvalidResourceFieldValue", "entry 0", "POST", options, `{"type":"DHCPv4ClientOption","code":121,"value":["banana"]}`)
	m.ID(options, `{"type":"DHCPv4ClientOption","name":"rfc3442-classless-static-routes","value":["10.9.0.0/16:10.0.0.1"]}`)
	if r := m.Want(200, "GET", "/api/v2/deploymentOptions?"+apitest.Filter("resource.id:"+network+" and name:'update-policy'"),
		""); r.Text("count") != "1" {
		t.Errorf("found by where it lies: %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/accessControlLists/"+list, "")
	m.Refused(403, "ResourceInUse", "", "DELETE", "/api/v2/servers/"+server, "")
	elsewhere := m.ID("/api/v2/configurations", `{"name":"elsewhere"}`)
	m.Refused(400, "ResourceNotInConfiguration", "serverScope", "POST", "/api/v2/configurations/"+elsewhere+"/deploymentOptions",
		`{"type":"DHCPv4ClientOption","name":"router","value":["10.0.0.1"],"serverScope":{"id":`+server+`}}`)
	m.Want(204, "DELETE", "/api/v2/configurations/"+configuration, "")
	m.Verify()
}

// TestOptionDefinitions creates user-defined and vendor option definitions.
func TestOptionDefinitions(t *testing.T) {
	m := start(t)
	configuration, _, _, _, network := m.Basics()
	definitions := "/api/v2/configurations/" + configuration + "/deploymentOptionDefinitions"
	body := `{"type":"DHCPv4CustomClientOptionDefinition","name":"mine","code":222,"displayName":"Mine","description":"mine","valueFormat":["<integer_8>"]}`
	mine := m.ID(definitions, body)
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
		m.Refused(map[string]int{"400": 400, "409": 409}[status], code, "", "POST", definitions, text)
	}
	other := m.ID("/api/v2/configurations", `{"name":"elsewhere"}`) // codes are each configuration's own
	m.ID("/api/v2/configurations/"+other+"/deploymentOptionDefinitions", body)
	m.ID("/api/v2/configurations/"+other+"/deploymentOptions", `{"type":"DHCPv4ClientOption","code":222,"value":[1]}`)
	options := "/api/v2/networks/" + network + "/deploymentOptions"
	option := m.Want(201, "POST", options, `{"type":"DHCPv4ClientOption","code":222,"value":[1,-5]}`)
	if option.Text("definition.id") != mine || option.Text("name") != "mine" {
		t.Errorf("an option of one's own is %s", option.Body)
	}
	m.Refused(400, "InvalidResourceFieldValue", "127", "POST", options, `{"type":"DHCPv4ClientOption","code":222,"value":[128]}`)
	m.Refused(403, "ResourceInUse", "", "DELETE", "/api/v2/deploymentOptionDefinitions/"+mine, "")
	if r := m.Want(200, "GET", "/api/v2/deploymentOptionDefinitions?limit=1&total=true&"+apitest.Filter("type:'DNSOptionDefinition'"),
		""); r.Text("totalCount") < "1" {
		t.Errorf("definitions of DNS options: %s", r.Body)
	}
	builtIn := m.Want(200, "GET", "/api/v2/deploymentOptionDefinitions?"+apitest.Filter("name:'router'"), "").Text("data.0.id")
	m.Refused(405, "MethodNotAllowed", "", "POST", "/api/v2/deploymentOptionDefinitions", "{}")
	m.Refused(403, "UpdateNotAllowed", "router", "PATCH", "/api/v2/deploymentOptionDefinitions/"+builtIn, `{"name":"x"}`, apitest.MergePatch)
	m.Refused(403, "DeleteNotAllowed", "router", "DELETE", "/api/v2/deploymentOptionDefinitions/"+builtIn, "")
	profile := m.ID("/api/v2/vendorProfiles", `{"name":"phones","identifier":"phone","description":"d"}`)
	m.Refused(409, "ResourceAlreadyExists", "identifier", "POST", "/api/v2/vendorProfiles", `{"name":"others","identifier":"phone","description":"d"}`)
	vendor := m.ID("/api/v2/vendorProfiles/"+profile+"/deploymentOptionDefinitions",
		`{"type":"DHCPVendorOptionDefinition","name":"url","code":1,"displayName":"URL","description":"where","valueFormat":"<url>"}`)
	m.Refused(400, "MissingRequiredField", "definition", "POST", options, `{"type":"DHCPVendorOption","value":"http://x/"}`)
	if r := m.Want(201, "POST", options, `{"type":"DHCPVendorOption","definition":{"id":`+vendor+`},"value":"http://x/"}`); r.Text("code") != "1" {
		t.Errorf("a vendor's option is %s", r.Body)
	}
	m.Refused(403, "ResourceInUse", "", "DELETE", "/api/v2/vendorProfiles/"+profile, "")
	m.Verify()
}
