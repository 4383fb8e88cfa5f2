package server

import (
	"strings"

	"portolan/internal/testkit/apitest"
)

func init() {
	alsoMade = append(alsoMade, func(m *manager) {
		at := "/api/v2/configurations/" + m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
		view := m.Want(200, "GET", at+"/views", "").Text("data.0.id")
		network := m.Want(200, "GET", "/api/v2/networks?"+filter("range:'10.0.0.0/24'"), "").Text("data.0.id")
		one := m.ID(at+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
		two := m.ID(at+"/servers", apitest.ServerBody("ns2", "10.0.0.54"))
		three := m.ID(at+"/servers", apitest.ServerBody("ns3", "10.0.0.55"))
		m.ID(at+"/servers", `{"type":"HAServer","name":"pair","interfaces":[{"servicesIpv4Address":"10.0.0.60"}],"activeServer":{"id":`+two+
			`},"passiveServer":{"id":`+three+`}}`)
		m.ID(at+"/serverGroups", `{"name":"edge"}`)
		m.ID("/api/v2/servers/"+one+"/interfaces", `{"type":"PublishedInterface","name":"ns1.example.net","primaryAddress":"192.0.2.53"}`)
		own := m.Want(200, "GET", "/api/v2/servers/"+one+"/interfaces?"+filter("type:'NetworkInterface'"), "").Text("data.0.id")
		m.ID("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
		m.ID("/api/v2/networks/"+network+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
		tftp := m.ID(at+"/tftpGroups", `{"name":"boot"}`)
		m.ID("/api/v2/tftpGroups/"+tftp+"/deploymentRoles", `{"type":"TFTPDeploymentRole","server":{"id":`+one+`}}`)
		m.ID("/api/v2/servers/"+one+"/moves", `{"type":"DeploymentRoleMove","roleTypes":["DHCPDeploymentRole"],"destination":{"id":`+own+`}}`)
		profile := m.ID("/api/v2/vendorProfiles", `{"name":"phones","identifier":"phone","description":"phones"}`)
		vendor := m.ID("/api/v2/vendorProfiles/"+profile+"/deploymentOptionDefinitions",
			`{"type":"DHCPVendorOptionDefinition","name":"url","code":1,"displayName":"URL","description":"where","valueFormat":"<text>"}`)
		m.ID(at+"/deploymentOptionDefinitions",
			`{"type":"DHCPv4CustomClientOptionDefinition","name":"mine","code":222,"displayName":"Mine","description":"mine","valueFormat":["<integer_8>"]}`)
		options := "/api/v2/networks/" + network + "/deploymentOptions"
		for _, body := range []string{`{"type":"DHCPv4ClientOption","name":"router","value":["10.0.0.1"]}`,
			`{"type":"DHCPv4ServiceOption","name":"default-lease-time","value":3600}`,
			`{"type":"DHCPv4RawOption","name":"mine","value":"option x 1;"}`,
			`{"type":"DHCPVendorOption","definition":{"id":` + vendor + `},"value":"http://x/"}`,
			`{"type":"DNSOption","name":"allow-query","value":["any"]}`, `{"type":"DNSRawOption","name":"raw","value":"x 1;"}`,
			`{"type":"StartOfAuthority","value":[null,null,null,"auto",null,null,null,null]}`} {
			m.ID(options, body)
		}
		six := "/api/v2/networks/" + m.Want(200, "GET", "/api/v2/networks?"+filter("type:'IPv6Network'"), "").Text("data.0.id") +
			"/deploymentOptions"
		for _, body := range []string{`{"type":"DHCPv6ClientOption","name":"domain-search-list","value":["example.net"]}`,
			`{"type":"DHCPv6ServiceOption","name":"default-lease-time","value":3600}`, `{"type":"DHCPv6RawOption","name":"mine","value":"x 1;"}`} {
			m.ID(six, body)
		}
		policy := m.ID("/api/v2/signingPolicies", strings.Replace(apitest.PolicyBody, "NAME", "standard", 1))
		signed := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"signed.example"}`)
		m.ID("/api/v2/signingPolicies/"+policy+"/appliedResources", `{"id":`+signed+`}`)
	})
}
