package dhcppublish_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestExplanationOfOptions checks that a question can contain options of the client, which select its classes.
func TestExplanationOfOptions(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	below := "/api/v2/configurations/" + p.configuration
	m.ID("/api/v2/networks/"+p.network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.150"}`)
	m.ID(below+"/clientClasses", `{"type":"DHCPv4ClientClass","name":"loaders","matchExpression":"if substring(option user-class, 0, 4) = \"iPXE\""}`)
	m.ID(below+"/clientClasses", `{"type":"DHCPv4ClientClass","name":"efi","matchExpression":"if option arch = 00:07"}`)
	at := "/api/v2/dhcpExplanation?network=" + p.network + "&planned=true&macAddress=00:00:5e:00:53:01"
	for options, want := range map[string]string{"": "[]", "77:iPXE": `["loaders"]`, "93:0x0007": `["efi"]`,
		"93:0x0007,%2077:iPXE%20efi": `["loaders","efi"]`, "93:0x0000": "[]"} {
		r := m.Want(200, "GET", at+"&options="+options, "")
		if got := strings.ReplaceAll(string(r.Body), " ", ""); !strings.Contains(got, `"classes":`+want) &&
			(want != `["loaders","efi"]` || !strings.Contains(got, `"classes":["efi","loaders"]`)) {
			t.Errorf("with the options %q it is %s, want the classes %s", options, r.Body, want)
		}
	}
	for options, naming := range map[string]string{"93": "CODE:VALUE", "0:a": "CODE:VALUE", "255:a": "CODE:VALUE", "x:a": "CODE:VALUE",
		"60:PXEClient": "parameter of its own", "77:a,77:b": "twice", "93:0x0": "octets"} {
		m.Refused(400, "InvalidQueryParameterValue", naming, "GET", at+"&options="+options, "")
	}
}

// TestExplanationOfFullRange checks that the explanation knows how many addresses of a range are leased: a new client of a range beyond
// adaptive-lease-time-threshold gets the minimum lease time.
func TestExplanationOfFullRange(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	m.ID("/api/v2/networks/"+p.network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.103"}`)
	p.option("networks/"+p.network, "adaptive-lease-time-threshold", "40")
	p.option("networks/"+p.network, "min-lease-time", "600")
	at := "/api/v2/dhcpExplanation?network=" + p.network + "&planned=true&macAddress=00:00:5e:00:53:99"
	source := m.SourceOf(p.point)
	for i, want := range []string{"86400", "86400", "600"} {
		if got := m.Want(200, "GET", at, ""); got.Text("leaseTime") != want {
			t.Errorf("with %d leases of 4 addresses: %s", i, got.Body)
		}
		p.leases(source, fmt.Sprintf("10.0.0.%d", 100+i))
	}
}
