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

	"portolan/internal/testkit/freeport"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// pairServer is a DHCP server of a failover pair, at a service point.
type pairServer struct {
	*authority
	name, address, own string
}

// newPairServer creates a service point with a DHCP server.
func newPairServer(t *testing.T, m *manager, configuration, name, address, listenPair string) *pairServer {
	t.Helper()
	p := &fleetPoint{t: t, m: m, state: filepath.Join(t.TempDir(), "state")}
	var created struct{ FleetInstanceID, RegistrationKey string }
	if err := json.Unmarshal([]byte(p.fleet("create", "--json", name)), &created); err != nil {
		t.Fatal(err)
	}
	p.start(created.RegistrationKey)
	t.Cleanup(func() { _ = p.process.signal(syscall.SIGTERM) }) // the test may have ended it
	server := m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"`+name+`","profile":"DNS_DHCP_SERVER_20",`+
		`"servicePoint":"`+created.FleetInstanceID+`","interfaces":[{"type":"NetworkInterface","name":"`+name+`","managementAddress":"`+
		address+`"}]}`)
	var interfaces struct{ Data []struct{ ID int64 } }
	if _, text, err := m.call("GET", "/servers/"+server+"/interfaces", ""); err != nil || json.Unmarshal([]byte(text), &interfaces) != nil {
		t.Fatal(text, err)
	}
	at, file := freeport.Reserve(t).String(), filepath.Join(t.TempDir(), "dhcp.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"listen":[%q],"listenPair":%q}`, at, listenPair), 0o600); err != nil {
		t.Fatal(err)
	}
	if !until(func() bool { return strings.Contains(p.fleet("list"), name) }) {
		t.Fatal(p.process.text())
	}
	p.fleet("deploy", name, "dhcp-service", "--configuration", file)
	return &pairServer{authority: &authority{fleetPoint: p, server: server}, name: name, address: at, own: fmt.Sprint(interfaces.Data[0].ID)}
}

// TestFailoverOnTheWire checks a failover pair of two service points with the manager: they connect, one continues without the other,
// a\nuser declares it down, and both reconnect.
func TestFailoverOnTheWire(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16"}`)
	network := m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24"}`)
	m.id("/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.199","splitAroundStaticAddresses":true}`)
	m.id("/blocks/"+block+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"ping-check","value":false}`)
	port := freeport.Reserve(t).Port()
	one := newPairServer(t, m, configuration, "edge1", "127.0.0.1", fmt.Sprintf("127.0.0.1:%d", port))
	two := newPairServer(t, m, configuration, "edge2", "127.0.0.2", fmt.Sprintf("127.0.0.2:%d", port))
	m.id("/blocks/"+block+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+one.own+
		`,"deploymentRoleInterfaceType":"PRIMARY"},{"id":`+two.own+`,"deploymentRoleInterfaceType":"SECONDARY"}]}`)
	for _, server := range []*pairServer{one, two} {
		if state, message := server.deploy("/servers/"+server.server+"/deployments",
			`{"type":"FullDeployment","service":"DHCPv4"}`); state != "COMPLETED" {
			t.Fatalf("the deployment is %s: %s\n%s", state, message, server.process.text())
		}
	}
	state := func(server *pairServer, want string) {
		t.Helper()
		m.page("/servers/"+server.server+"/dhcpPartners", `"state":"`+want+`"`)
	}
	state(one, "NORMAL")
	state(two, "NORMAL")
	client := func(server *pairServer) dhcpClient {
		return dhcpClient{t, server.address, net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	}
	var ack *dhcpv4.DHCPv4
	if !until(func() bool {
		if ack = client(one).tryLease(1); ack == nil { // it is a client of the secondary
			ack = client(two).tryLease(1)
		}
		return ack != nil
	}) {
		t.Fatalf("no server answers\n%s\n%s", one.process.text(), two.process.text())
	}

	_ = two.process.signal(syscall.SIGTERM) // also ends its application
	state(one, "COMMUNICATIONS-INTERRUPTED")
	if got := client(one).ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(ack.YourIPAddr)); got == nil ||
		got.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("without the partner the renewal is %v", got)
	}
	flags := []string{"--url", "http://" + m.api, "--token", m.token}
	if got := m.portolan(append([]string{"dhcp", "failover", "show", "edge1"}, flags...)...); !strings.Contains(got,
		"COMMUNICATIONS-INTERRUPTED") {
		t.Errorf("the command shows %s", got)
	}
	down := append([]string{"dhcp", "failover", "partner-down", "edge1"}, flags...)
	if out, err := m.command(down...).CombinedOutput(); err == nil || !strings.Contains(string(out), "so it runs") {
		t.Errorf("without force the declaration is %v: %s", err, out)
	}
	if got := m.portolan(append(down, "--force")...); !strings.Contains(got, "Declared down: edge2, the partner of edge1") {
		t.Errorf("the declaration prints %s", got)
	}
	state(one, "PARTNER-DOWN")
	m.page("/servers/"+one.server+"/dhcpPartnerActions", `"state":"DECLARED"`)

	two.start("")
	state(one, "NORMAL")
	state(two, "NORMAL")
	m.page("/servers/"+one.server+"/dhcpPartnerActions", `"state":"DONE"`)
	if got := m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
}
