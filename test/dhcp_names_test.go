package test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// TestNamesOfDHCPClients checks that the names of clients are updated at a name server of the manager, without a zone group: the zones
// accept signed updates. The manager shows the records as dynamic ones, and the addresses stay in the range. The name server uses port 53.
func TestNamesOfDHCPClients(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("port 53 requires root")
	}
	t.Parallel()
	m := serve(t, "")
	port := freeport.Reserve(t).Port()
	dnsAddress := fmt.Sprintf("127.53.%d.%d", port>>8, port&255)
	configuration := m.id("/configurations", `{"name":"main"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"default","liveDeployment":true}`)
	key := m.id("/configurations/"+configuration+"/signingKeys", `{"type":"TSIGKey","name":"dhcp","algorithm":"SHA256","length":256}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16"}`)
	network := m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24","name":"quay","dynamicUpdateEnabled":true}`)
	m.id("/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.110","splitAroundStaticAddresses":true}`)
	for _, name := range []string{"harbour.example", "0.0.10.in-addr.arpa"} {
		zone := m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"`+name+`","deploymentEnabled":true}`)
		m.enableUpdates(zone)
		m.id("/zones/"+zone+"/deploymentOptions", `{"type":"DNSOption","name":"allow-update","value":["key dhcp"]}`)
	}
	for _, option := range []string{`{"type":"DHCPv4ServiceOption","name":"ddns-updates","value":true}`,
		`{"type":"DHCPv4ServiceOption","name":"ddns-domainname","value":"harbour.example"}`,
		`{"type":"DHCPv4ServiceOption","name":"ping-check","value":false}`} {
		m.id("/blocks/"+block+"/deploymentOptions", option)
	}
	p := &fleetPoint{t: t, m: m, state: filepath.Join(t.TempDir(), "state")}
	var created struct{ FleetInstanceID, RegistrationKey string }
	if err := json.Unmarshal([]byte(p.fleet("create", "--json", "edge")), &created); err != nil {
		t.Fatal(err)
	}
	p.start(created.RegistrationKey)
	t.Cleanup(func() { // ends its applications
		if err := p.process.signal(syscall.SIGTERM); err != nil {
			t.Errorf("the agent ends with %v:\n%s", err, p.process.text())
		}
	})
	server := m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"buoy","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+
		created.FleetInstanceID+`","interfaces":[{"type":"NetworkInterface","name":"buoy.harbour.example","managementAddress":"`+dnsAddress+`"}]}`)
	var interfaces struct{ Data []struct{ ID int64 } }
	if _, text, err := m.call("GET", "/servers/"+server+"/interfaces", ""); err != nil || json.Unmarshal([]byte(text), &interfaces) != nil {
		t.Fatal(text, err)
	}
	own := interfaces.Data[0].ID
	m.id("/blocks/"+block+"/deploymentRoles", fmt.Sprintf(`{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":%d}]}`, own))
	m.id("/views/"+view+"/deploymentRoles", fmt.Sprintf(
		`{"type":"DNSDeploymentRole","roleType":"PRIMARY","view":{"id":%s},"interfaces":[{"id":%d}]}`, view, own))
	dhcpAddress := freeport.Reserve(t).String()
	for application, configuration := range map[string]string{"dhcp-service": fmt.Sprintf(`{"listen":[%q]}`, dhcpAddress),
		"dns-authoritative-service": fmt.Sprintf(`{"listen":[{"address":%q,"port":53}]}`, dnsAddress)} {
		file := filepath.Join(t.TempDir(), "configuration.json")
		if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
			t.Fatal(err)
		}
		p.fleet("deploy", "edge", application, "--configuration", file)
	}
	p.becomes("HEALTHY")
	a := &authority{fleetPoint: p, server: server, address: net.JoinHostPort(dnsAddress, "53")}
	deploy := func(service string) {
		t.Helper()
		if state, message := a.deploy("/servers/"+server+"/deployments", `{"type":"FullDeployment","service":"`+service+`"}`); !strings.HasPrefix(
			state, "COMPLETED") || strings.Contains(message, "PTR") {
			t.Fatalf("the deployment of %s is %s: %s\n%s", service, state, message, p.process.text())
		}
	}
	if state, message := a.deploy("/servers/"+server+"/deployments", `{"type":"FullDeployment","service":"DHCPv4"}`); state != "FAILED" ||
		!strings.Contains(message, "no zone contains harbour.example") {
		t.Errorf("before the zone is served, a deployment is %s: %s", state, message)
	}
	deploy("DNS")
	deploy("DHCPv4")
	lamp := dhcpClient{t, dhcpAddress, net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	ack := lamp.lease() // with the host name lamp
	if ack == nil {
		t.Fatalf("the client gets nothing\n%s", p.process.text())
	}
	address := ack.YourIPAddr.String()
	reverse, err := dns.ReverseAddr(address)
	if err != nil {
		t.Fatal(err)
	}
	a.answersWith("lamp.harbour.example.", dns.TypeA, "NOERROR "+address)
	a.answersWith(reverse, dns.TypePTR, "NOERROR lamp.harbour.example.")
	m.page("/resourceRecords?filter="+url.QueryEscape("absoluteName:'lamp.harbour.example'"), `"dynamic":true`, `"DHCID"`, address)
	if n := m.count("/networks/"+network+"/addresses", "address:'"+address+"'"); n != 0 {
		t.Errorf("the leased address is %d resources", n)
	}
	if again := lamp.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(ack.YourIPAddr)); again == nil ||
		again.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("the renewal is answered by %v", again)
	}

	// Another client with the name gets an address and no name, until the first one has gone. A deployment of DNS with another secret of
	// the key lies between.
	other := dhcpClient{t, dhcpAddress, net.HardwareAddr{2, 0, 0, 0, 0, 2}}
	second := other.lease()
	if second == nil {
		t.Fatalf("the second client gets nothing\n%s", p.process.text())
	}
	if status, text, err := m.call("PATCH", "/signingKeys/"+key, `{"state":"REGENERATE"}`); status != 200 || err != nil {
		t.Fatal(status, text, err)
	}
	deploy("DNS") // the DHCP server gets the new secret without a deployment
	if got := a.asks("lamp.harbour.example.", dns.TypeA); got != "NOERROR "+address {
		t.Errorf("with a second client the name is %s", got)
	}
	lamp.ask(dhcpv4.MessageTypeRelease, dhcpv4.WithClientIP(ack.YourIPAddr))
	a.answersWith("lamp.harbour.example.", dns.TypeA, "NOERROR "+second.YourIPAddr.String())
	a.answersWith(reverse, dns.TypePTR, "NXDOMAIN")
	other.ask(dhcpv4.MessageTypeRelease, dhcpv4.WithClientIP(second.YourIPAddr))
	a.answersWith("lamp.harbour.example.", dns.TypeA, "NXDOMAIN")
	if got := m.count("/resourceRecords", "absoluteName:'lamp.harbour.example'"); got != 0 {
		t.Errorf("%d records of the name are left", got)
	}
	if got := m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
}
