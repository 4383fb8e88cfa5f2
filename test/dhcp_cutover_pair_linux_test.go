package test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// firstOfPair and secondOfPair are the addresses of both servers in the first network of the sources of pairs.
const firstOfPair, secondOfPair = "198.51.100.253", "198.51.100.252"

// newPairLab creates the namespaces of two servers and of the clients, with one link for all of them.
func newPairLab(t *testing.T, name string) *sourceLab {
	t.Helper()
	l := newSourceLab(t, name)
	l.partner = strings.TrimSuffix(l.server, "s") + "p"
	l.ip("netns", "add", l.partner)
	t.Cleanup(func() { l.ip("netns", "del", l.partner) })
	l.ip("-n", l.partner, "link", "set", "lo", "up")
	l.ip("-n", l.client, "link", "set", "c0", "name", "p0")
	l.ip("link", "add", "s0", "netns", l.partner, "type", "veth", "peer", "name", "p1", "netns", l.client)
	l.ip("-n", l.partner, "link", "set", "s0", "up")
	l.ip("-n", l.client, "link", "add", "c0", "type", "bridge")
	l.ip("-n", l.client, "link", "set", "c0", "up")
	for _, port := range []string{"p0", "p1"} {
		l.ip("-n", l.client, "link", "set", port, "master", "c0")
		l.ip("-n", l.client, "link", "set", port, "up")
	}
	return l
}

// partnerLab returns the lab of the other server of a pair, with a directory of its own.
func (l *sourceLab) partnerLab() *sourceLab {
	other := *l
	other.server, other.dir = l.partner, l.t.TempDir()
	if err := os.Chmod(other.dir, 0o755); err != nil { //nolint:gosec // the servers give up their rights
		l.t.Fatal(err)
	}
	return &other
}

// logs waits until the old server has logged a text.
func (l *sourceLab) logs(text string) {
	l.t.Helper()
	if !until(func() bool {
		out, err := os.ReadFile(filepath.Join(l.dir, "old.log"))
		return err == nil && strings.Contains(string(out), text)
	}) {
		l.t.Fatalf("the old server never logs %q", text)
	}
}

// sourcesOfPair writes the files of both servers of a pair. The one of the partner differs by its role.
func sourcesOfPair(t *testing.T, source string) (both [2]string) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	first := string(text)
	if hooks, err := filepath.Glob("/usr/lib/*/kea/hooks"); err == nil && len(hooks) == 1 {
		first = strings.ReplaceAll(first, "/usr/lib/kea/hooks", hooks[0])
	}
	second := strings.ReplaceAll(first, `"this-server-name": "dhcp1"`, `"this-server-name": "dhcp2"`)
	if strings.HasSuffix(source, ".conf") {
		second = strings.NewReplacer("  primary;", "  secondary;", firstOfPair, secondOfPair, secondOfPair, firstOfPair, "  mclt 600;\n", "",
			"  split 128;\n", "").Replace(first)
	}
	for i, one := range []string{first, second} {
		both[i] = filepath.Join(t.TempDir(), filepath.Base(source))
		if err := os.WriteFile(both[i], []byte(one), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return both
}

// only returns the network with one of its servers.
func (n *sourceNetwork) only(server netip.Addr) *sourceNetwork {
	one := *n
	one.server, one.partner = server, netip.Addr{}
	return &one
}

// pairLease is the lease of a client of a pair.
type pairLease struct {
	client  sourceClient
	network *sourceNetwork
	ack     *dhcpv4.DHCPv4
}

// renews checks that a server renews a lease. The client repeats its request, as clients do: the partner of the server that granted the
// lease knows it a moment later.
func (l *sourceLab) renews(one pairLease, server netip.Addr) {
	l.t.Helper()
	var ack *dhcpv4.DHCPv4
	if !until(func() bool {
		ack = l.exchange(one.network.only(server), one.client, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(one.ack.YourIPAddr))
		return ack != nil
	}) || ack.MessageType() != dhcpv4.MessageTypeAck || !ack.YourIPAddr.Equal(one.ack.YourIPAddr) {
		l.t.Errorf("%s renews %v at %v and gets %v", one.client.name, one.ack.YourIPAddr, server, ack)
	}
}

// TestCutOverOfPairs replaces a failover pair of ISC dhcpd and one of Kea by a pair of Portolan. Each client keeps its address, each server
// knows the leases of the other one, and one of them continues alone.
func TestCutOverOfPairs(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ kind, file, leases, normal string }{
		{"dhcpd", "pair.conf", "dhcpd.leases", "Both servers normal"},
		{"kea", "pair4.json", "leases4.csv", "from READY to LOAD-BALANCING state"},
	} {
		t.Run(one.file, func(t *testing.T) { cutOverPair(t, one.kind, one.file, one.leases, one.normal) })
	}
}

// loseLeases deletes the folder with the leases of the DHCP server, as after a replacement of its disk. The agent does not run.
func (s *sourceManager) loseLeases() {
	s.t.Helper()
	all, err := filepath.Glob(filepath.Join(s.state, "data", "*", "leases"))
	if err != nil || len(all) != 1 {
		s.t.Fatalf("the folders with leases are %v, %v", all, err)
	}
	if err := os.RemoveAll(all[0]); err != nil {
		s.t.Fatal(err)
	}
}

func cutOverPair(t *testing.T, kind, file, leases, normal string) {
	l := newPairLab(t, "pair"+kind)
	other := l.partnerLab()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	m.setEnvironment()
	servers := []*sourceManager{newSourcePoint(t, m, configuration, "dhcp1", "dhcp1", `"managementAddress":"`+firstOfPair+`"`, l.server),
		newSourcePoint(t, m, configuration, "dhcp2", "dhcp2", `"managementAddress":"`+secondOfPair+`"`, l.partner)}
	sources := sourcesOfPair(t, filepath.Join("testdata", "dhcp", file))
	imports := []string{"import", kind, sources[0], "--configuration", "main", "--server", "dhcp1", "--partner", "dhcp2", "-y"}
	code, out := m.wrong(append(imports, "-n")...)
	if code != 0 || strings.Contains(out, "the failover pair") || strings.Contains(out, "HA_dhcp") {
		t.Errorf("the dry run ends with %d:\n%s", code, out)
	}
	m.portolan(imports...)
	if out := m.portolan(imports...); !strings.Contains(out, "no changes") {
		t.Errorf("a second import changes:\n%s", out)
	}
	if kind == "kea" { // it does not probe addresses
		m.id("/configurations/"+configuration+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"ping-check","value":false}`)
	}
	all := l.networks(m)
	if len(all) != 2 || all[0].server.String() != firstOfPair || all[0].partner.String() != secondOfPair {
		t.Fatalf("the networks are %+v", all)
	}
	stops := []func(){l.old(sources[0]), other.old(sources[1])}
	for _, lab := range []*sourceLab{l, other} {
		lab.logs(normal)
	}
	var held []pairLease
	taken := map[string]string{}
	lease := func(number, i int) {
		t.Helper()
		n := all[i]
		c := sourceClient{name: fmt.Sprintf("client %d of %v", number, n.prefix), mac: net.HardwareAddr{2, 0, 0, 2, byte(i), byte(number)},
			options: []dhcpv4.Option{dhcpv4.OptClassIdentifier("phone 9")}}
		ack := l.lease(n, c)
		if holder := taken[ack.YourIPAddr.String()]; holder != "" {
			t.Errorf("%s and %s have %v", holder, c.name, ack.YourIPAddr)
		}
		taken[ack.YourIPAddr.String()] = c.name
		held = append(held, pairLease{c, n, ack})
	}
	for i := range all {
		for number := range 8 {
			lease(number, i)
		}
	}
	by := map[string]int{}
	for _, one := range held {
		by[one.ack.ServerIdentifier().String()]++
	}
	if len(by) != 2 {
		t.Errorf("the old servers have leased %v", by)
	}
	for _, stop := range stops {
		stop()
	}
	known := len(held)
	for _, lab := range []*sourceLab{l, other} {
		out := m.portolan("import", "leases", filepath.Join(lab.dir, leases), "--configuration", "main", "-y")
		if !strings.Contains(out, " 0 refused") {
			t.Errorf("the leases of %s:\n%s", lab.server, out)
		}
	}
	for _, s := range servers {
		s.serves("DHCPv4")
	}
	state := func(s *sourceManager, want string) {
		t.Helper()
		m.page("/servers/"+s.server+"/dhcpPartners", `"state":"`+want+`"`)
	}
	for _, s := range servers {
		state(s, "NORMAL")
	}
	for i := range all { // new clients get other addresses
		for number := range 4 {
			lease(100+number, i)
		}
	}
	for _, one := range held[:known] { // the server that granted the lease, and the other one
		l.renews(one, netip.MustParseAddr(one.ack.ServerIdentifier().String()))
	}
	first, second := netip.MustParseAddr(firstOfPair), netip.MustParseAddr(secondOfPair)
	for i, one := range held {
		l.renews(one, []netip.Addr{first, second}[i%2])
	}
	m.page("/leases?limit=1&total=true", fmt.Sprintf(`"totalCount":%d`, len(held)))

	_ = servers[1].process.signal(syscall.SIGTERM) // also ends its application
	state(servers[0], "COMMUNICATIONS-INTERRUPTED")
	for _, one := range held {
		l.renews(one, first)
	}
	m.portolan("dhcp", "failover", "partner-down", "dhcp1", "--force")
	state(servers[0], "PARTNER-DOWN")
	for i := range all {
		lease(200, i)
	}
	servers[1].start("")
	for _, s := range servers {
		state(s, "NORMAL")
	}
	for _, one := range held {
		l.renews(one, second)
	}

	// Both service points lose the disks of their DHCP servers. The manager restores the leases, before a new client gets an address.
	m.page("/leases?limit=1&total=true", fmt.Sprintf(`"totalCount":%d`, len(held)))
	for _, s := range servers {
		_ = s.process.signal(syscall.SIGTERM) // also ends its application
	}
	for _, s := range servers {
		s.loseLeases()
	}
	for _, s := range servers {
		s.start("")
	}
	for i, n := range all {
		c := sourceClient{name: fmt.Sprintf("a new client of %v", n.prefix), mac: net.HardwareAddr{2, 0, 0, 2, byte(i), 210},
			options: []dhcpv4.Option{dhcpv4.OptClassIdentifier("phone 9")}}
		var offer *dhcpv4.DHCPv4
		if !until(func() bool { offer = l.exchange(n, c, dhcpv4.MessageTypeDiscover); return offer != nil }) {
			t.Fatalf("%s gets no offer after the loss of both disks", c.name)
		}
		if holder := taken[offer.YourIPAddr.String()]; holder != "" {
			t.Errorf("%s is offered %v of %s", c.name, offer.YourIPAddr, holder)
		}
	}
	for i, one := range held {
		l.renews(one, []netip.Addr{first, second}[i%2])
	}
	for _, s := range servers {
		state(s, "NORMAL")
	}
	for i := range all {
		lease(220, i)
	}
	m.page("/leases?limit=1&total=true", fmt.Sprintf(`"totalCount":%d`, len(held)))
	if got := m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
}
