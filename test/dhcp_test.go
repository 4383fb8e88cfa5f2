package test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portolan/internal/testkit/freeport"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// dhcpClient is a client behind a relay in 10.0.0.0/24.
type dhcpClient struct {
	t       *testing.T
	address string
	mac     net.HardwareAddr
}

// ask sends a message and returns the reply; nil if there is none.
func (c dhcpClient) ask(kind dhcpv4.MessageType, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	c.t.Helper()
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(c.mac),
		dhcpv4.WithGatewayIP(net.IPv4(10, 0, 0, 1)), dhcpv4.WithOption(dhcpv4.OptHostName("lamp")),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionDomainName, dhcpv4.OptionBootfileName, dhcpv4.OptionDomainNameServer)}, change...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(c.t.Context(), "udp4", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err = conn.Write(m.ToBytes()); err == nil {
		err = conn.SetReadDeadline(time.Now().Add(time.Second))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	buffer := make([]byte, 2000)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return nil
		}
		if r, err := dhcpv4.FromBytes(buffer[:n]); err == nil && r.TransactionID == m.TransactionID {
			return r
		}
	}
}

// lease gets a lease. It returns nil if the client gets none: a new server may wait a minute for the leases that it has lost.
func (c dhcpClient) lease() *dhcpv4.DHCPv4 { return c.tryLease(90) }

// tryLease gets a lease with a number of tries for each message, one a second. It returns nil if the client gets none.
func (c dhcpClient) tryLease(maxTries int) *dhcpv4.DHCPv4 {
	c.t.Helper()
	offer := c.ask(dhcpv4.MessageTypeDiscover)
	for tries := 1; offer == nil && tries < maxTries; tries++ {
		offer = c.ask(dhcpv4.MessageTypeDiscover)
	}
	if offer == nil || offer.MessageType() != dhcpv4.MessageTypeOffer {
		return nil
	}
	for tries := 1; ; tries++ {
		reply := c.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier())))
		if reply != nil || tries == maxTries {
			return reply
		}
	}
}

// page reads a list, and returns its text if it contains all parts, or waits for that.
func (m *manager) page(path string, parts ...string) (text string) {
	m.t.Helper()
	if !until(func() bool {
		status, got, err := m.call("GET", path, "")
		text = got
		for _, part := range parts {
			if !strings.Contains(got, part) {
				return false
			}
		}
		return err == nil && status == http.StatusOK
	}) {
		m.t.Fatalf("%s never has %q: %s", path, parts, text)
	}
	return text
}

// TestDHCPOnTheWire checks that clients get what the manager knows: a range, a reservation that is live, options, and the leases come back.
// A lease becomes a reservation, another one is ended by an order, and the server serves without the manager.
func TestDHCPOnTheWire(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16"}`)
	network := m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24","name":"quay","dynamicUpdateEnabled":true}`)
	m.id("/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.110","splitAroundStaticAddresses":true}`)
	for _, option := range []string{`{"type":"DHCPv4ClientOption","name":"domain-name","value":"harbour.example"}`,
		`{"type":"DHCPv4ServiceOption","name":"default-lease-time","value":3600}`, `{"type":"DHCPv4ServiceOption","name":"ping-check","value":false}`,
		`{"type":"DHCPv4ServiceOption","name":"authoritative","value":true}`} {
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
	server := m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"dhcp1","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+
		created.FleetInstanceID+`","interfaces":[{"type":"NetworkInterface","name":"dhcp1","managementAddress":"10.0.0.5"}]}`)
	var interfaces struct{ Data []struct{ ID int64 } }
	if _, text, err := m.call("GET", "/servers/"+server+"/interfaces", ""); err != nil || json.Unmarshal([]byte(text), &interfaces) != nil {
		t.Fatal(text, err)
	}
	m.id("/blocks/"+block+"/deploymentRoles", fmt.Sprintf(`{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":%d}]}`,
		interfaces.Data[0].ID))
	a := &authority{fleetPoint: p, server: server}
	full := `{"type":"FullDeployment","service":"DHCPv4"}`
	if state, message := a.deploy("/servers/"+server+"/deployments", full); state != "FAILED" || !strings.Contains(message, "dhcp-service") {
		t.Errorf("without the application a deployment is %s: %s", state, message)
	}
	at, file := freeport.Reserve(t).String(), filepath.Join(t.TempDir(), "dhcp.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"listen":[%q]}`, at), 0o600); err != nil {
		t.Fatal(err)
	}
	p.fleet("deploy", "edge", "dhcp-service", "--configuration", file)
	p.becomes("HEALTHY")
	if state, message := a.deploy("/servers/"+server+"/deployments", full); state != "COMPLETED" {
		t.Fatalf("the deployment is %s: %s\n%s", state, message, p.process.text())
	}
	first := dhcpClient{t, at, net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	ack := first.lease()
	if ack == nil || ack.MessageType() != dhcpv4.MessageTypeAck || ack.DomainName() != "harbour.example" ||
		ack.IPAddressLeaseTime(0) != time.Hour {
		t.Fatalf("the client gets %v\n%s", ack, p.process.text())
	}
	address := ack.YourIPAddr.String()
	m.page("/leases?filter="+url.QueryEscape("macAddress:'02:00:00:00:00:01'"), `"address":"`+address+`"`, `"state":"DHCP_ALLOCATED"`,
		`"hostName":"lamp"`)

	// A reservation of the network and an option of it are live.
	before := time.Now()
	reserved := m.id("/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.20","state":"DHCP_RESERVED","macAddress":`+
		`{"address":"02:00:00:00:00:02"}}`)
	m.id("/addresses/"+reserved+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"boot-file-name","value":"lamp.img"}`)
	second := dhcpClient{t, at, net.HardwareAddr{2, 0, 0, 0, 0, 2}}
	if !until(func() bool {
		offer := second.ask(dhcpv4.MessageTypeDiscover)
		return offer != nil && offer.YourIPAddr.String() == "10.0.0.20" && offer.BootFileNameOption() == "lamp.img"
	}) {
		t.Errorf("the reservation is not on the wire\n%s", p.process.text())
	}
	t.Logf("a reservation and its option were on the wire after %v", time.Since(before).Round(time.Millisecond))

	// A lease becomes a reservation: the client keeps its address, now outside of the range's free addresses.
	actions := "/networks/" + network + "/leaseActions"
	m.id(actions, `{"address":"`+address+`","action":"RESERVE"}`)
	m.page("/networks/"+network+"/addresses?filter="+url.QueryEscape("state:'DHCP_RESERVED'"), `"address":"`+address+`"`)
	if again := first.lease(); again == nil || again.YourIPAddr.String() != address {
		t.Errorf("with its reservation the client gets %v", again)
	}

	// An operator ends the lease of another client: the client gets a NAK at its renewal, and the span says why.
	third := dhcpClient{t, at, net.HardwareAddr{2, 0, 0, 0, 0, 3}}
	ack = third.lease()
	if ack == nil {
		t.Fatalf("the third client gets nothing\n%s", p.process.text())
	}
	held := ack.YourIPAddr
	m.page("/leases?filter="+url.QueryEscape("macAddress:'02:00:00:00:00:03'"), `"state":"DHCP_ALLOCATED"`)
	order := m.id(actions, `{"address":"`+held.String()+`","action":"END_LEASE"}`)
	m.page("/leaseActions/"+order, `"state":"DONE"`)
	m.page("/leaseSpans?filter="+url.QueryEscape("macAddress:'02:00:00:00:00:03'"), `"endReason":"ENDED"`)
	renew := []dhcpv4.Modifier{dhcpv4.WithClientIP(held)}
	if got := third.ask(dhcpv4.MessageTypeRequest, renew...); got == nil || got.MessageType() != dhcpv4.MessageTypeNak {
		t.Errorf("after the end the client gets %v", got)
	}
	if got := m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}

	flags := []string{"--url", "http://" + m.api, "--token", m.token}
	for want, args := range map[string][]string{"lamp": {"dhcp", "leases", "02:00:00:00:00:01"}, "ENDED": {"dhcp", "history", held.String()},
		"offers 10.0.0.20 for 3600 s": {"dhcp", "explain", "networks/10.0.0.0/24", "02:00:00:00:00:02"},
		"block 10.0.0.0/16":           {"dhcp", "explain", "10.0.0.0/24", "02:00:00:00:00:02"}} {
		if got := m.portolan(append(args, flags...)...); !strings.Contains(got, want) {
			t.Errorf("%v lacks %q:\n%s", args, want, got)
		}
	}

	// The server serves without the manager, and reports the lease afterwards.
	_ = m.process.signal(syscall.SIGKILL)
	fourth := dhcpClient{t, at, net.HardwareAddr{2, 0, 0, 0, 0, 4}}
	if ack = fourth.lease(); ack == nil {
		t.Fatalf("without the manager the client gets nothing\n%s", p.process.text())
	}
	m.start()
	m.page("/leases?filter="+url.QueryEscape("macAddress:'02:00:00:00:00:04'"), `"address":"`+ack.YourIPAddr.String()+`"`)
}
