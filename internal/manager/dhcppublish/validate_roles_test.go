package dhcppublish_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
)

// TestRolesAreValidated checks that a deployment refuses a network with two roles, a role on an interface without an address of the family,
// and networks of a shared network with different roles, and warns of classes without clients and of too many options.
func TestRolesAreValidated(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	below := "/api/v2/configurations/" + p.configuration
	fails := func(want string) {
		t.Helper()
		if got := p.fails(); !strings.Contains(got, want) {
			t.Errorf("the message is %s, want %s", got, want)
		}
	}
	own := m.Want(200, "GET", "/api/v2/servers/"+p.server+"/interfaces", "").Text("data.0.id")
	role := func(at, kind, face string) string {
		t.Helper()
		return m.ID("/api/v2/"+at+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"`+kind+`","interfaces":[{"id":`+face+`}]}`)
	}
	other := m.ID(below+"/servers", `{"type":"Server","name":"dhcp2","profile":"DNS_DHCP_SERVER_20","interfaces":[{"managementAddress":"10.0.0.6"}]}`)
	faces := m.Want(200, "GET", "/api/v2/servers/"+other+"/interfaces", "").Text("data.0.id")
	first := role("networks/"+p.network, "PRIMARY", own)
	second := role("networks/"+p.network, "PRIMARY", faces)
	fails("IPv4Network 10.0.0.0/24 (office) has 2 DHCP roles")
	m.Want(204, "DELETE", "/api/v2/deploymentRoles/"+second, "")
	m.Want(204, "DELETE", "/api/v2/deploymentRoles/"+first, "")

	group := m.ID("/api/v2/tagGroups", `{"type":"TagGroup","name":"links"}`)
	tag := m.ID("/api/v2/tagGroups/"+group+"/tags", `{"type":"Tag","name":"quay"}`)
	m.Want(200, "PATCH", below, `{"sharedNetworkTagGroup":{"id":`+group+`}}`, apitest.MergePatch)
	block := m.ID(below+"/blocks", `{"type":"IPv4Block","name":"pier","range":"172.20.0.0/16"}`)
	beside := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","name":"pier","range":"172.20.0.0/24"}`)
	for _, id := range []string{p.network, beside} {
		m.Want(200, "PATCH", "/api/v2/networks/"+id, `{"sharedNetworkTag":{"id":`+tag+`}}`, apitest.MergePatch)
	}
	fails("IPv4Network 172.20.0.0/24 (pier) is in the shared network of 10.0.0.0/24 (office), and has no role with this server")
	m.ID("/api/v2/networks/"+beside+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`},{"id":`+faces+
		`,"deploymentRoleInterfaceType":"SECONDARY"}]}`)
	fails("are in one shared network and have different roles")
	m.Want(200, "PATCH", "/api/v2/networks/"+beside, `{"sharedNetworkTag":null}`, apitest.MergePatch)

	m.ID(below+"/clientClasses", `{"type":"DHCPv4ClientClass","name":"empty","option":"hardware","matchOffset":1,"matchLength":3}`)
	m.ID("/api/v2/networks/"+p.network+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"nis-domain","value":"`+strings.Repeat("x", 250)+`"}`)
	m.ID("/api/v2/networks/"+p.network+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"root-path","value":"`+strings.Repeat("y", 250)+`"}`)
	got := p.deploys()
	for _, want := range []string{"client class empty has no subclasses", "a client with messages of 576 octets gets at most"} {
		if !strings.Contains(got, want) {
			t.Errorf("the message is %s, want %s", got, want)
		}
	}
}

// TestInterfaceHasAddressOfFamily checks that a deployment of DHCPv6 refuses a role on an interface that has no IPv6 address.
func TestInterfaceHasAddressOfFamily(t *testing.T) {
	p, prefixes := prefixPlan(t)
	m := p.manager
	m.Want(200, "PATCH", "/api/v2/servers/"+p.server, `{"servicePoint":"dhcp6"}`, apitest.MergePatch)
	deploy := func(server string) string {
		return deploytest.Await(&m.Client, m.ID("/api/v2/servers/"+server+"/deployments", `{"type":"FullDeployment","service":"DHCPv6"}`), "FAILED")
	}
	option := m.Want(200, "GET", "/api/v2/ranges/"+prefixes+"/deploymentOptions", "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/deploymentOptions/"+option, `{"value":36}`, apitest.MergePatch)
	if got := deploy(p.server); !strings.Contains(got, "contains no whole prefix of the length 36, which it delegates") {
		t.Errorf("a range that is smaller than its prefixes: %s", got)
	}
	other := m.ID("/api/v2/configurations/"+p.configuration+"/servers", `{"type":"Server","name":"four","profile":"DNS_DHCP_SERVER_20",`+
		`"servicePoint":"four","interfaces":[{"managementAddress":"192.0.2.5"}]}`)
	faces := m.Want(200, "GET", "/api/v2/servers/"+other+"/interfaces", "").Text("data.0.id")
	m.ID("/api/v2/networks/"+p.network+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+faces+`}]}`)
	if got := deploy(other); !strings.Contains(got, "server four has no IPv6 address on the interface of the role of IPv6Network") {
		t.Errorf("an interface without an address: %s", got)
	}
}
