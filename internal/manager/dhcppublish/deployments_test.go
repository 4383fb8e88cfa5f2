package dhcppublish_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/wire/dhcpdata"
)

// dhcpPlan is a configuration with a network that a DHCP server serves.
type dhcpPlan struct {
	*manager
	configuration, block, network, server, point string
	units                                        dhcpdata.Units
	revision                                     string
}

// dhcpServer creates a configuration with a DHCP server for 10.0.0.0/24.
func (m *manager) dhcpServer() *dhcpPlan {
	m.T.Helper()
	p := &dhcpPlan{manager: m, point: "dhcp"}
	p.configuration, _, _, p.block, p.network = m.Basics()
	p.server = m.ID("/api/v2/configurations/"+p.configuration+"/servers", `{"type":"Server","name":"dhcp1","profile":"DNS_DHCP_SERVER_20",`+
		`"servicePoint":"`+p.point+`","overrideConfigurationLevelDhcpValidation":true,"dhcpConfigurationValidationEnabled":true,`+
		`"interfaces":[{"managementAddress":"10.0.0.5"}]}`)
	own := m.Want(200, "GET", "/api/v2/servers/"+p.server+"/interfaces", "").Text("data.0.id")
	m.ID("/api/v2/blocks/"+p.block+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	return p
}

// deploys runs a full deployment until it waits for the service point.
func (p *dhcpPlan) deploys() (message string) {
	p.T.Helper()
	id := p.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"FullDeployment","service":"DHCPv4"}`)
	message = deploytest.AwaitPoint(&p.Client, id)
	p.fetch()
	return message
}

// confirms reports that the service point serves a revision, and waits until the deployment ends.
func (p *dhcpPlan) confirms(revision string) {
	p.T.Helper()
	p.points.Confirm(p.point, revision)
	apitest.Eventually(p.T, "the deployment has ended", func() bool {
		r := p.Want(200, "GET", "/api/v2/servers/"+p.server+"/deployments?orderBy=desc(id)", "")
		return strings.HasPrefix(r.Text("data.0.state"), "COMPLETED")
	})
}

// fails runs a full deployment that fails, and returns its message.
func (p *dhcpPlan) fails() string {
	p.T.Helper()
	return deploytest.Await(&p.Client, p.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"FullDeployment","service":"DHCPv4"}`), "FAILED")
}

// fetch fetches the changes of the content, as the service point does, and returns their size.
func (p *dhcpPlan) fetch() int {
	p.T.Helper()
	var stream bytes.Buffer
	if err := p.Store.View(p.T.Context(), func(tx *store.Tx) error {
		stream.Reset()
		return dhcppublish.Planner{}.Write(tx, p.point, p.revision, &stream)
	}); err != nil {
		p.T.Fatal(err)
	}
	size := stream.Len()
	last, units, err := dhcpdata.ReadAll(&stream, p.revision, p.units)
	if err != nil {
		p.T.Fatal(err)
	}
	p.revision, p.units = last.To, units
	return size
}

// items returns the items of a unit as text, sorted.
func (p *dhcpPlan) items(unit string) (all []string) {
	p.T.Helper()
	one := p.units[unit]
	if one == nil {
		return nil
	}
	for _, r := range one.Records {
		all = append(all, string(r))
	}
	slices.Sort(all)
	return all
}

// has fails the test unless the network's unit contains a text.
func (p *dhcpPlan) has(unit string, texts ...string) {
	p.T.Helper()
	all := strings.Join(p.items(unit), "\n")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			p.T.Errorf("%s lacks %s:\n%s", unit, text, all)
		}
	}
}

// TestDHCPDeployment checks that a full deployment compiles ranges, reservations and options. The explanation of a message names the source
// of each.
func TestDHCPDeployment(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/" + p.network
	m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.110","splitAroundStaticAddresses":true,"exclusionRanges":["10.0.0.105"]}`)
	m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.102","state":"STATIC"}`)
	reserved := m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.108","state":"DHCP_RESERVED","name":"lamp",`+
		`"macAddress":{"address":"00:00:5e:00:53:01"}}`)
	for path, body := range map[string]string{
		"configurations/" + p.configuration: `{"type":"DHCPv4ClientOption","name":"domain-name","value":"example.com"}`,
		"servers/" + p.server:               `{"type":"DHCPv4ClientOption","name":"dns-server","value":["10.0.0.53"]}`,
		"blocks/" + p.block:                 `{"type":"DHCPv4ServiceOption","name":"default-lease-time","value":600}`,
		"networks/" + p.network:             `{"type":"DHCPv4ClientOption","name":"domain-name","value":"office.example.com"}`,
		"addresses/" + reserved:             `{"type":"DHCPv4ClientOption","name":"boot-file-name","value":"lamp.img"}`,
	} {
		m.ID("/api/v2/"+path+"/deploymentOptions", body)
	}
	m.ID(at+"/deploymentOptions", `{"type":"DHCPv4RawOption","name":"raw","value":"option ntp-servers 10.0.0.7, 10.0.0.8; max-lease-time 7200; authoritative;"}`)
	message := p.deploys()
	if !strings.Contains(message, "1 network with 1 range and 1 reservation") {
		t.Errorf("the message is %s", message)
	}
	unit := dhcpdata.NetworkUnit(apitest.Number(t, p.network))
	p.has(unit, `"prefix":"10.0.0.0/24","gateway":"10.0.0.1","identifier":"10.0.0.5"`,
		`"ranges":["10.0.0.100-10.0.0.101","10.0.0.103-10.0.0.104","10.0.0.106-10.0.0.107","10.0.0.109-10.0.0.110"]`,
		`"address":"10.0.0.108","mac":"00005e005301","hostName":"lamp"`, `"name":"max-lease-time","value":7200`,
		`"name":"default-lease-time","value":600,"from":{"level":"block"`, `"name":"authoritative","value":true`,
		`"code":42,"name":"ntp-server","value":"0a0000070a000008"`, `"code":15,"name":"domain-name","value":"6f6666696365`,
		`"code":67,"name":"boot-file-name","value":"6c616d702e696d67","from":{"level":"address"`)
	p.has(dhcpdata.ServerUnit, `"code":6,"name":"dns-server","value":"0a000035","from":{"level":"server"`, `"addresses":["10.0.0.5"]`)
	for _, planned := range []string{"", "&planned=true"} {
		r := m.Want(200, "GET", "/api/v2/dhcpExplanation?network="+p.network+"&macAddress=00:00:5e:00:53:01"+planned, "")
		if r.Text("reply") != "OFFER" || r.Text("address") != "10.0.0.108" || r.Text("reservation") != reserved || r.Text("leaseTime") != "600" {
			t.Errorf("the explanation is %s", r.Body)
		}
		for _, want := range []string{`"name":"boot-file-name","value":"6c616d702e696d67","from":{"level":"address","id":` + reserved,
			`"name":"dns-server","value":"0a000035","from":{"level":"server","id":` + p.server} {
			if !strings.Contains(string(r.Body), want) {
				t.Errorf("the explanation lacks %s: %s", want, r.Body)
			}
		}
	}
	r := m.Want(200, "GET", "/api/v2/dhcpExplanation?network="+p.network+"&macAddress=00:00:5e:00:53:02", "")
	if r.Text("address") != "10.0.0.100" || r.Text("range") == "" {
		t.Errorf("another client: %s", r.Body)
	}
	m.Refused(400, "InvalidQueryParameterValue", "macAddress", "GET", "/api/v2/dhcpExplanation?network="+p.network+"&macAddress=x", "")
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/dhcpExplanation?network=5&macAddress=00:00:5e:00:53:02", "")
	p.explainsByRelay()
	m.Verify()
}

// explainsByRelay asks for the network that contains a relay, and as through a relay elsewhere.
func (p *dhcpPlan) explainsByRelay() {
	p.T.Helper()
	const at, client = "/api/v2/dhcpExplanation?", "&macAddress=00:00:5e:00:53:02"
	if r := p.Want(200, "GET", at+"relay=10.0.0.77"+client, ""); r.Text("network.id") != p.network || r.Text("address") != "10.0.0.100" ||
		!strings.Contains(string(r.Body), "the relay is 10.0.0.77") {
		p.T.Errorf("by its relay: %s", r.Body)
	}
	r := p.Want(200, "GET", at+"network="+p.network+"&relay=192.0.2.1"+client, "")
	if r.Text("reply") != "" || r.Text("reason") != string(dhcpdata.NoNetwork) {
		p.T.Errorf("through a relay elsewhere: %s", r.Body)
	}
	for query, field := range map[string]string{"relay=192.0.2.1": "relay", "relay=x": "relay", "relay=fe80::1%25eth0": "relay", "": "network",
		"network=" + p.network + "&relay=2001:db8::1": "relay"} {
		p.Refused(400, "InvalidQueryParameterValue", field, "GET", at+query+client, "")
	}
	_, header := p.User("nobody", "NO_ACCESS")
	p.Refused(400, "InvalidQueryParameterValue", "relay", "GET", at+"relay=10.0.0.77"+client, "", header)
	hidden := p.ID("/api/v2/blocks/"+p.block+"/networks", `{"type":"IPv4Network","range":"10.0.9.0/24"}`)
	p.ID("/api/v2/networks/"+hidden+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.9.100-10.0.9.110"}`)
	p.confirms(p.revision)
	p.deploys()
	elsewhere := at + "network=" + p.network + "&relay=10.0.9.1" + client
	if r := p.Want(200, "GET", elsewhere, ""); r.Text("network.id") != hidden || r.Text("address") != "10.0.9.100" {
		p.T.Errorf("through a relay in another network: %s", r.Body)
	}
	user, header := p.User("sees-one", "NO_ACCESS")
	p.Right(user, p.network, "VIEW", "")
	p.Want(200, "GET", at+"network="+p.network+client, "", header)
	p.Refused(400, "InvalidQueryParameterValue", "cannot see", "GET", elsewhere, "", header)
	p.Refused(400, "InvalidQueryParameterValue", "cannot see", "GET", at+"network="+p.network+"&options=118:0x0A000900"+client, "", header)
	other := p.ID("/api/v2/configurations", `{"name":"relayed"}`)
	block := p.ID("/api/v2/configurations/"+other+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	p.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24"}`)
	p.Refused(400, "InvalidQueryParameterValue", "network", "GET", at+"relay=10.0.0.77"+client, "")
}

// TestDHCPValidation checks that settings that cannot be served stop a deployment, and that its message names the objects.
func TestDHCPValidation(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/" + p.network
	created := m.ID(at+"/deploymentOptions", `{"type":"DHCPv4RawOption","name":"odd","value":"if option x = \"y\" { }"}`)
	if got := p.fails(); !strings.Contains(got, "raw option odd of IPv4Network 10.0.0.0/24 (office)") {
		t.Errorf("the message is %s", got)
	}
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+created, "")
	created = m.ID(at+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"min-lease-time","value":90000}`)
	also := m.ID(at+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"max-lease-time","value":3600}`)
	if got := p.fails(); !strings.Contains(got, "min-lease-time 90000 is greater than max-lease-time 3600") {
		t.Errorf("the message is %s", got)
	}
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+created, "")
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+also, "")
	for n, text := range []string{"10.0.0.20", "10.0.0.21"} {
		m.Want([]int{201, 201}[n], "POST", at+"/addresses", `{"type":"IPv4Address","address":"`+text+`","state":"DHCP_RESERVED","macAddress":`+
			`{"address":"00:00:5e:00:53:01"}}`)
	}
	if got := p.fails(); !strings.Contains(got, "10.0.0.20 and 10.0.0.21") {
		t.Errorf("the message is %s", got)
	}
	r := deploytest.Await(&m.Client, m.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"ValidationDeployment","service":"DHCPv4"}`), "FAILED")
	if !strings.Contains(r, "10.0.0.20 and 10.0.0.21") {
		t.Errorf("the validation says %s", r)
	}
	m.Want(200, "PATCH", "/api/v2/servers/"+p.server, `{"dhcpConfigurationValidationEnabled":false}`, apitest.MergePatch)
	m.Refused(400, "DhcpDeploymentValidationNotEnabled", "dhcpConfigurationValidationEnabled", "POST",
		"/api/v2/servers/"+p.server+"/deployments", `{"type":"ValidationDeployment","service":"DHCPv4"}`)
}

// TestDHCPLiveChanges checks that changes of a deployed network with dynamicUpdateEnabled, and of MAC pools with instantDeploymentEnabled,
// reach the content without a deployment, at the cost of the change.
func TestDHCPLiveChanges(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/" + p.network
	pool := m.ID("/api/v2/configurations/"+p.configuration+"/macPools", `{"type":"MACPool","name":"guests","instantDeploymentEnabled":true}`)
	for i := range 200 {
		m.ID(at+"/addresses", fmt.Sprintf(`{"type":"IPv4Address","address":"10.0.0.%d","state":"DHCP_RESERVED","macAddress":{"address":"00005e0054%02x"}}`,
			i+20, i))
	}
	p.deploys()
	unit, size := dhcpdata.NetworkUnit(apitest.Number(t, p.network)), 0
	follows := func(what string, has func() bool) {
		t.Helper()
		apitest.Eventually(t, what, func() bool {
			before := p.revision
			if n := p.fetch(); p.revision != before { // a stream without changes also has a header
				size += n
			}
			return has()
		})
	}
	contains := func(unit, text string) bool { return strings.Contains(strings.Join(p.items(unit), "\n"), text) }
	m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.10","state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:01"}}`)
	m.Want(200, "PATCH", at, `{"dynamicUpdateEnabled":true}`, apitest.MergePatch)
	follows("the network is live", func() bool { return contains(unit, `"10.0.0.10"`) })
	size = 0
	lamp := m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.11","state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:02"}}`)
	follows("a reservation is live", func() bool { return contains(unit, `"10.0.0.11"`) })
	m.ID("/api/v2/addresses/"+lamp+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"host-name","value":"lamp"}`)
	follows("an option of a reservation is live", func() bool { return contains(unit, `"name":"host-name"`) })
	m.Want(204, "DELETE", "/api/v2/addresses/"+lamp, "")
	follows("a deletion is live", func() bool { return !contains(unit, `"10.0.0.11"`) })
	m.ID("/api/v2/configurations/"+p.configuration+"/macAddresses", `{"address":"00:00:5e:00:53:09","macPool":{"id":`+pool+`}}`)
	follows("a member of a MAC pool is live", func() bool { return contains(dhcpdata.MACPoolUnit(apitest.Number(t, pool)), "00005e005309") })
	if size > 8<<10 {
		t.Errorf("the changes took %d octets", size)
	}
	p.leases(m.SourceOf(p.point), "10.0.0.15")
	m.Want(200, "PATCH", at, `{"dynamicUpdateEnabled":false}`, apitest.MergePatch)
	m.Want(201, "POST", at+"/leaseActions", `{"address":"10.0.0.15","action":"END_LEASE"}`)
	follows("an order is live", func() bool { return contains(unit, `"action":"endLease"`) })
	m.Verify()
}
