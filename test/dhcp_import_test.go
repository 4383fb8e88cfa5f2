package test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portolan/internal/testkit/freeport"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// iscLeases returns a lease file of ISC dhcpd: leases of the range 10.0.0.100 to 10.0.0.103, and entries that cannot be imported.
func iscLeases(now time.Time) string {
	at := func(d time.Duration) string { return now.Add(d).UTC().Format("2006/01/02 15:04:05") }
	entry := func(address string, start, end time.Duration, rest string) string {
		return fmt.Sprintf("lease %s {\n  starts 1 %s;\n  ends 1 %s;\n  %s\n}\n", address, at(start), at(end), rest)
	}
	active := "binding state active;\n  hardware ethernet "
	return "authoring-byte-order little-endian;\n" +
		entry("10.0.0.100", -3*time.Hour, -2*time.Hour, active+"02:00:00:00:00:99;") +
		entry("10.0.0.100", -time.Hour, 11*time.Hour, active+`02:00:00:00:00:01; uid "\001\002\000\000\000\000\001"; client-hostname "lamp";`) +
		entry("10.0.0.101", -time.Hour, 11*time.Hour, "binding state abandoned;") +
		entry("10.0.0.102", -time.Hour, 11*time.Hour, "binding state free; hardware ethernet 02:00:00:00:00:77;") +
		entry("10.0.0.50", -time.Hour, 11*time.Hour, active+"02:00:00:00:00:50;") +
		entry("10.0.0.9", -time.Hour, 11*time.Hour, active+"02:00:00:00:00:08;") +
		entry("10.7.0.9", -time.Hour, 11*time.Hour, active+"02:00:00:00:00:09;") +
		"lease 10.0.0.103 {\n  starts 1 2026/"
}

// TestLeasesAreImported checks that a lease of ISC dhcpd reaches the server by import and deployment, and that its client can renew it. The
// address is not offered to another client. A later import, with the leases that the old server gave meanwhile, reaches the server without
// a deployment.
func TestLeasesAreImported(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16"}`)
	network := m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24","name":"quay"}`)
	m.id("/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.103","splitAroundStaticAddresses":true}`)
	m.id("/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.9","name":"printer","state":"DHCP_RESERVED","macAddress":`+
		`{"address":"02:00:00:00:00:0a"}}`)
	// The full range offers the abandoned address after a probe that takes longer than the client waits.
	for _, option := range []string{`{"type":"DHCPv4ServiceOption","name":"default-lease-time","value":3600}`,
		`{"type":"DHCPv4ServiceOption","name":"ping-timeout","value":10}`,
		`{"type":"DHCPv4ServiceOption","name":"ping-check","value":false}`, `{"type":"DHCPv4ServiceOption","name":"authoritative","value":true}`} {
		m.id("/blocks/"+block+"/deploymentOptions", option)
	}
	now := time.Now()
	file := filepath.Join(t.TempDir(), "dhcpd.leases")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(iscLeases(now))
	m.setEnvironment()
	imports := func(more ...string) (code int, out string) {
		t.Helper()
		return m.wrong(append([]string{"import", "leases", file, "--configuration", "main"}, more...)...)
	}
	code, out := imports("-n")
	if code != 3 || !strings.Contains(out, "2 would be created, 0 updated, 1 unchanged, 4 refused") {
		t.Fatalf("the dry run ends with %d:\n%s", code, out)
	}
	code, out = imports()
	for _, want := range []string{"2 created, 0 updated, 1 unchanged, 4 refused", "10.0.0.50 is in no DHCP range of network",
		"10.7.0.9 is in no network", "10.0.0.9 is reserved for 02-00-00-00-00-0A by address", "(printer)", "line 42: InvalidFileDataValue"} {
		if !strings.Contains(out, want) || code != 3 {
			t.Errorf("the import ends with %d, without %q:\n%s", code, want, out)
		}
	}
	m.page("/networks/"+network+"/leases", `"hostName":"lamp"`, `"DHCP_ABANDONED"`, `"server":null`)
	p := &fleetPoint{t: t, m: m, state: filepath.Join(t.TempDir(), "state")}
	var created struct{ FleetInstanceID, RegistrationKey string }
	if err := json.Unmarshal([]byte(p.fleet("create", "--json", "edge")), &created); err != nil {
		t.Fatal(err)
	}
	p.start(created.RegistrationKey)
	t.Cleanup(func() {
		if err := p.process.signal(syscall.SIGTERM); err != nil {
			t.Errorf("the agent ends with %v:\n%s", err, p.process.text())
		}
	})
	server := m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"dhcp1","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+
		created.FleetInstanceID+`","interfaces":[{"type":"NetworkInterface","name":"dhcp1","managementAddress":"10.0.0.5"}]}`)
	var interfaces struct{ Data []struct{ ID int64 } }
	if _, text, err := m.call("GET", "/servers/"+server+"/interfaces", ""); err != nil || json.Unmarshal([]byte(text), &interfaces) != nil {
		t.Fatal(text, err)
	}
	m.id("/blocks/"+block+"/deploymentRoles", fmt.Sprintf(`{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":%d}]}`,
		interfaces.Data[0].ID))
	at, settings := freeport.Reserve(t).String(), filepath.Join(t.TempDir(), "dhcp.json")
	if err := os.WriteFile(settings, fmt.Appendf(nil, `{"listen":[%q]}`, at), 0o600); err != nil {
		t.Fatal(err)
	}
	p.fleet("deploy", "edge", "dhcp-service", "--configuration", settings)
	p.becomes("HEALTHY")
	a := &authority{fleetPoint: p, server: server}
	if state, message := a.deploy("/servers/"+server+"/deployments", `{"type":"FullDeployment","service":"DHCPv4"}`); state != "COMPLETED" {
		t.Fatalf("the deployment is %s: %s\n%s", state, message, p.process.text())
	}
	m.page("/networks/"+network+"/leases?filter=state:'DHCP_ALLOCATED'", `"dhcp1"`) // the server has confirmed it
	// New clients get the two free addresses and no other ones.
	for n := range byte(3) {
		client := dhcpClient{t, at, net.HardwareAddr{2, 0, 0, 0, 1, n}}
		if n == 2 {
			if offer := client.ask(dhcpv4.MessageTypeDiscover); offer != nil {
				t.Fatalf("a third new client gets %v", offer)
			}
			break
		}
		ack := client.lease()
		if ack == nil || ack.MessageType() != dhcpv4.MessageTypeAck {
			t.Fatalf("new client %d gets %v", n, ack)
		}
		if got := ack.YourIPAddr.String(); got == "10.0.0.100" || got == "10.0.0.101" {
			t.Errorf("a new client gets %s", ack.YourIPAddr)
		}
	}
	// The client of the old server renews at the new one: it knows neither its identifier nor that the server has changed.
	lamp := dhcpClient{t, at, net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	id := dhcpv4.WithOption(dhcpv4.OptClientIdentifier([]byte{1, 2, 0, 0, 0, 0, 1}))
	renews := func(address string) *dhcpv4.DHCPv4 {
		t.Helper()
		return lamp.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.ParseIP(address)), id)
	}
	if ack := renews("10.0.0.100"); ack == nil || ack.MessageType() != dhcpv4.MessageTypeAck || ack.YourIPAddr.String() != "10.0.0.100" {
		t.Fatalf("the renewal is answered by %v\n%s", ack, p.process.text())
	}
	// The abandoned address was leased at the old server meanwhile, by a client that this server does not know.
	write(strings.ReplaceAll(iscLeases(now), "binding state abandoned;", "binding state active; hardware ethernet 02:00:00:00:00:33;"))
	_, out = imports()
	if !strings.Contains(out, "0 created, 1 updated, 2 unchanged, 4 refused") {
		t.Errorf("the second import:\n%s", out)
	}
	m.page("/networks/"+network+"/leases?filter=address:'10.0.0.101'", `"DHCP_ALLOCATED"`, `"dhcp1"`, "02-00-00-00-00-33")
	lamp = dhcpClient{t, at, net.HardwareAddr{2, 0, 0, 0, 0, 0x33}}
	id = func(*dhcpv4.DHCPv4) {}
	if ack := renews("10.0.0.101"); ack == nil || ack.MessageType() != dhcpv4.MessageTypeAck {
		t.Fatalf("the renewal of the second client is answered by %v", ack)
	}
	// A client of a network that no server serves is shown at its network.
	other := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.7.0.0/16"}`)
	m.id("/blocks/"+other+"/networks", `{"type":"IPv4Network","range":"10.7.0.0/24"}`)
	stranger := dhcpClient{t, at, net.HardwareAddr{2, 0, 0, 0, 0, 0x44}}
	if offer := stranger.ask(dhcpv4.MessageTypeDiscover, dhcpv4.WithGatewayIP(net.IPv4(10, 7, 0, 1))); offer != nil {
		t.Errorf("a client of no network gets %v", offer)
	}
	m.page("/servers/"+server+"/refusedClients", "no-network")
	m.ends(0, "02-00-00-00-00-44", "dhcp", "refused", "networks/10.7.0.0/24")
	m.ends(0, "no server serves 10.7.0.0/24", "dhcp", "refused", "networks/10.7.0.0/24")
}
