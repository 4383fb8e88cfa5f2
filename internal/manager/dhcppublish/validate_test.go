package dhcppublish_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcpdata"
)

// TestOptionsOfRangeReachReservations checks that options of a range apply to the reservations in it, also to those of excluded addresses.
func TestOptionsOfRangeReachReservations(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/" + p.network
	r := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.110","splitAroundStaticAddresses":true,"exclusionRanges":["10.0.0.105"]}`)
	m.ID("/api/v2/ranges/"+r+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"domain-name","value":"range.example"}`)
	for mac, address := range map[string]string{"00:00:5e:00:53:01": "10.0.0.108", "00:00:5e:00:53:02": "10.0.0.105",
		"00:00:5e:00:53:03": "10.0.0.120"} {
		m.ID(at+"/addresses", `{"type":"IPv4Address","address":"`+address+`","state":"DHCP_RESERVED","macAddress":{"address":"`+mac+`"}}`)
	}
	p.deploys()
	for mac, want := range map[string][3]string{"00:00:5e:00:53:01": {"10.0.0.108", r, "yes"}, "00:00:5e:00:53:02": {"10.0.0.105", r, "yes"},
		"00:00:5e:00:53:03": {"10.0.0.120", "", ""}, "00:00:5e:00:53:04": {"10.0.0.100", r, "yes"}} {
		e := m.Want(200, "GET", "/api/v2/dhcpExplanation?network="+p.network+"&macAddress="+mac, "")
		has := strings.Contains(string(e.Body), `"name":"domain-name"`)
		if e.Text("address") != want[0] || e.Text("range") != want[1] || has != (want[2] != "") {
			t.Errorf("%s gets %s of range %q, with the option %v, want %v", mac, e.Text("address"), e.Text("range"), has, want)
		}
	}
}

// TestDHCPValidationOfNearerObjects checks that lease times and permissions are compared at ranges, reserved addresses and classes as well.
// A deployment warns of ranges, gateways and clients that are not served.
func TestDHCPValidationOfNearerObjects(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/" + p.network
	below := "/api/v2/configurations/" + p.configuration
	service := func(path, name, value string) string {
		t.Helper()
		return m.ID("/api/v2/"+path+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"`+name+`","value":`+value+`}`)
	}
	fails := func(want string) {
		t.Helper()
		if got := p.fails(); !strings.Contains(got, want) {
			t.Errorf("the message is %s, want %s", got, want)
		}
	}
	remove := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+id, "")
		}
	}
	r := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.1-10.0.0.50","splitAroundStaticAddresses":true}`)
	for name, value := range map[string]string{"server-identifier": `"10.0.0.7"`, "declines": "false", "min-secs": "5", "ignore-client-uids": "true"} {
		one := service("ranges/"+r, name, value)
		fails("option " + name + " of IPv4DHCPRange 10.0.0.1-10.0.0.50: it has no effect at this level: set it at the network")
		remove(one)
	}
	network := service("networks/"+p.network, "max-lease-time", "3600")
	one := service("ranges/"+r, "min-lease-time", "90000")
	fails("IPv4DHCPRange 10.0.0.1-10.0.0.50: min-lease-time 90000 is greater than max-lease-time 3600")
	remove(one)
	class := m.ID(below+"/clientClasses", `{"type":"DHCPv4ClientClass","name":"phones","matchExpression":"if option vendor-class-identifier = \"phone\""}`)
	one = service("clientClasses/"+class, "min-lease-time", "90000")
	fails("DHCPv4ClientClass phones in IPv4Network 10.0.0.0/24 (office): min-lease-time 90000 is greater than max-lease-time 3600")
	remove(one, network)
	one = service("networks/"+p.network, "allow-dhcp-class-members", `["phones"]`)
	two := service("ranges/"+r, "deny-dhcp-class-members", `["phones"]`)
	fails("IPv4DHCPRange 10.0.0.1-10.0.0.50 serves no client")
	remove(one, two)
	vendors := m.ID(below+"/clientClasses", `{"type":"DHCPv4ClientClass","name":"vendors","option":"hardware","matchOffset":1,"matchLength":3}`)
	var values []string
	for _, value := range []string{`\"ABC\"`, "0x414243", "0x0008"} {
		values = append(values, m.ID("/api/v2/clientClasses/"+vendors+"/subclasses", `{"type":"DHCPv4Subclass","value":"`+value+`"}`))
	}
	fails("of client class vendors have the same value")
	m.Want(204, "DELETE", "/api/v2/subclasses/"+values[0], "")
	other := m.ID(below+"/blocks", `{"type":"IPv4Block","range":"172.20.0.0/16"}`)
	unserved := m.ID("/api/v2/blocks/"+other+"/networks", `{"type":"IPv4Network","range":"172.20.0.0/24"}`)
	m.ID("/api/v2/networks/"+unserved+"/ranges", `{"type":"IPv4DHCPRange","range":"172.20.0.100-172.20.0.110","splitAroundStaticAddresses":true}`)
	service("networks/"+p.network, "deny-unknown-mac-addresses", "true")
	// Together these options are too many.
	for at, option := range map[string]string{"networks/" + p.network: "nis-domain", "clientClasses/" + class: "root-path"} {
		m.ID("/api/v2/"+at+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"`+option+`","value":"`+strings.Repeat("x", 180)+`"}`)
	}
	got := p.deploys()
	for _, want := range []string{"subclass 0x0008 of client class vendors has 2 bytes",
		"no DHCP role is in effect: 172.20.0.0/24", "contains 10.0.0.1, the address of the gateway",
		"contains 10.0.0.5, the address of the server",
		"IPv4Network 10.0.0.0/24 (office): together with the options of DHCPv4ClientClass phones there are up to ",
		"deny-unknown-mac-addresses of IPv4Network 10.0.0.0/24 (office) leaves only clients"} {
		if !strings.Contains(got, want) {
			t.Errorf("the message is %s, want %s", got, want)
		}
	}
	p.has(dhcpdata.NetworkUnit(apitest.Number(t, p.network)), `"ranges":["10.0.0.2-10.0.0.4","10.0.0.6-10.0.0.50"],"whole":"10.0.0.1-10.0.0.50"`)
}

// TestRangeWithGateway checks that a range with the gateway and the server leases the other addresses of it.
func TestRangeWithGateway(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	m.ID("/api/v2/networks/"+p.network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.1-10.0.0.9"}`)
	p.deploys()
	p.has(dhcpdata.NetworkUnit(apitest.Number(t, p.network)), `"ranges":["10.0.0.2-10.0.0.4","10.0.0.6-10.0.0.9"]`)
}
