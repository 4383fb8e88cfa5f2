package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// knownDifferences are the differences of answers that docs/coming-from.md lists.
var knownDifferences = []string{
	"option 119: ", // a search list is sent without compression (RFC 3397 allows both)
	"option 3: ",   // clients that ask for classless routes get no router (RFC 3442)
	// A reservation of Kea without an address belongs to its subnet; here the options of a hardware address apply in all networks.
	"a known laptop in 192.0.2.0/25: option 12", "a known laptop in 203.0.113.0/25: option 12",
	"a known laptop in 203.0.113.128/25: option 12", "a known laptop in 192.0.2.128/25: option 12",
}

// cutOverCase is a configuration of an old server. left is a text of the dry run about a statement that is not imported. least is the
// number of clients that must have leases at least.
type cutOverCase struct {
	kind, file, leases, left string
	least                    int
}

// TestCutOver imports a configuration of ISC dhcpd and of Kea and compares the offers of the old server and of Portolan: address, lease
// time and options for clients of all classes. Then it imports the leases of the old server, deploys, and each client keeps its address.
// PORTOLAN_TEST_SOURCES is a directory with further configurations of DHCPv4: .conf of ISC dhcpd, .json of Kea, for an interface s0.
func TestCutOver(t *testing.T) {
	t.Parallel()
	cases := []cutOverCase{
		{"dhcpd", "testdata/dhcp/office.conf", "dhcpd.leases",
			"the statement omapi-port: a setting of the process of the old server, in line 7", 6},
		{"kea", "testdata/dhcp/campus4.json", "leases4.csv",
			"the setting lease-database of Dhcp4: a setting of the process of the old server, in line 4", 6},
	}
	if more := os.Getenv("PORTOLAN_TEST_SOURCES"); more != "" {
		files, err := filepath.Glob(filepath.Join(more, "*.conf"))
		also, wrong := filepath.Glob(filepath.Join(more, "*.json"))
		if files = append(files, also...); err != nil || wrong != nil || len(files) == 0 {
			t.Fatalf("%s has the files %v: %v, %v", more, files, err, wrong)
		}
		for _, file := range files {
			one := cutOverCase{kind: "dhcpd", file: file, leases: "dhcpd.leases"}
			if strings.HasSuffix(file, ".json") {
				one.kind, one.leases = "kea", "leases4.csv"
			}
			cases = append(cases, one)
		}
	}
	for _, one := range cases {
		t.Run(filepath.Base(one.file), func(t *testing.T) { one.run(t) })
	}
}

// run imports the configuration and its leases, and compares the answers.
func (one cutOverCase) run(t *testing.T) {
	l := newSourceLab(t, one.kind)
	s := newSourceManager(t, l)
	imports := []string{"import", one.kind, one.file, "--configuration", "main", "--server", "dhcp1", "-y"}
	code, out := s.m.wrong(append(imports, "-n")...)
	if code != 0 || !strings.Contains(out, one.left) {
		t.Errorf("the dry run ends with %d and does not name %q:\n%s", code, one.left, out)
	}
	if one.left == "" {
		t.Logf("the dry run prints\n%s", out)
	}
	s.m.portolan(imports...)
	if out := s.m.portolan(imports...); !strings.Contains(out, "no changes") {
		t.Errorf("a second import changes:\n%s", out)
	}
	if one.kind == "kea" || one.left == "" { // Kea does not probe addresses, and the clients of the test ask in all networks at once
		s.m.id("/configurations/"+s.configuration+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"ping-check","value":false}`)
	}
	all, ranges := l.networks(s.m), allRanges(l, s.m)
	stop := l.old(one.file)
	before := l.ask(all, ranges)
	held := map[string]*dhcpv4.DHCPv4{}
	for i, n := range all {
		for j := range 3 {
			c := sourceClient{name: fmt.Sprintf("client %d of %v", j, n.prefix), mac: net.HardwareAddr{2, 0, 0, 2, byte(i), byte(j)},
				options: []dhcpv4.Option{dhcpv4.OptClassIdentifier("phone 9")}}
			if strings.Contains(before["a phone in "+n.prefix.String()]["reply"], "OFFER") {
				held[c.mac.String()] = l.lease(n, c)
			}
		}
	}
	if len(held) < one.least {
		t.Fatalf("only %d clients have leases", len(held))
	}
	stop()
	out = s.m.portolan("import", "leases", filepath.Join(l.dir, one.leases), "--configuration", "main", "-y")
	if len(held) > 0 && !strings.Contains(out, fmt.Sprintf("%d created", len(held))) || !strings.Contains(out, " 0 refused") {
		t.Errorf("of %d leases are imported:\n%s", len(held), out)
	}
	s.serves("DHCPv4")
	taken := map[string]bool{}
	for _, ack := range held {
		taken[ack.YourIPAddr.String()] = true
	}
	for _, n := range all {
		fresh := sourceClient{name: "a new client", mac: net.HardwareAddr{2, 0, 0, 3, 0, n.relay.As4()[3]},
			options: []dhcpv4.Option{dhcpv4.OptClassIdentifier("phone 9")}}
		if offer := l.exchange(n, fresh, dhcpv4.MessageTypeDiscover); offer != nil && taken[offer.YourIPAddr.String()] {
			t.Errorf("%s gets %v, which is leased", fresh.name, offer.YourIPAddr)
		}
	}
	for mac, ack := range held {
		hardware, err := net.ParseMAC(mac)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(n *sourceNetwork) bool { return n.relay.String() == ack.GatewayIPAddr.String() })
		c := sourceClient{name: mac, mac: hardware, options: []dhcpv4.Option{dhcpv4.OptClassIdentifier("phone 9")}}
		again := l.exchange(all[i], c, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(ack.YourIPAddr))
		if again == nil || again.MessageType() != dhcpv4.MessageTypeAck || !again.YourIPAddr.Equal(ack.YourIPAddr) {
			t.Errorf("%s renews %v and gets %v", mac, ack.YourIPAddr, again)
		}
	}
	for _, difference := range differences(before, l.ask(all, ranges)) {
		if !slices.ContainsFunc(knownDifferences, func(known string) bool { return strings.Contains(difference, known) }) {
			t.Error(difference)
		}
	}
}
