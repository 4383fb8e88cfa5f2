package test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"portolan/internal/testkit/peers"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// sourceClient is a client with the options that it sends.
type sourceClient struct {
	name    string
	mac     net.HardwareAddr
	options []dhcpv4.Option
}

// sourceLab are two namespaces with one link: the servers run in one of them, and the clients, as relays, in the other one.
type sourceLab struct {
	t              *testing.T
	server, client string
	dir            string
	// partner is the namespace of the other server of a pair.
	partner string
}

func newSourceLab(t *testing.T, name string) *sourceLab {
	t.Helper()
	id := fmt.Sprintf("ptl-%s-%d", name, os.Getpid())
	l := &sourceLab{t: t, server: id + "s", client: id + "c", dir: t.TempDir()}
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("no network of our own: it takes root")
		}
		t.Skip("no network of our own: it takes root")
	}
	if err := os.Chmod(l.dir, 0o755); err != nil { //nolint:gosec // the servers give up their rights
		t.Fatal(err)
	}
	for _, namespace := range []string{l.server, l.client} {
		l.ip("netns", "add", namespace)
		t.Cleanup(func() { l.ip("netns", "del", namespace) })
		l.ip("-n", namespace, "link", "set", "lo", "up")
	}
	l.ip("link", "add", "s0", "netns", l.server, "type", "veth", "peer", "name", "c0", "netns", l.client)
	l.ip("-n", l.server, "link", "set", "s0", "up")
	l.ip("-n", l.client, "link", "set", "c0", "up")
	return l
}

func (l *sourceLab) ip(args ...string) {
	l.t.Helper()
	if out, err := exec.Command(peers.Program(l.t, "ip"), args...).CombinedOutput(); err != nil {
		l.t.Fatalf("ip %v: %s", args, out)
	}
}

// sourceNetwork is a network of the source, with the addresses of the relay and of the server in it.
type sourceNetwork struct {
	prefix        netip.Prefix
	relay, server netip.Addr
	partner       netip.Addr // the other server of a pair
	reserved      []sourceClient
}

// networks returns the imported networks, and gives both sides an address in each of them.
func (l *sourceLab) networks(m *manager) (all []*sourceNetwork) {
	l.t.Helper()
	var list struct {
		Data []struct {
			ID    int64
			Range string
		}
	}
	l.get(m, "/networks?limit=1000&fields=id,range", &list)
	first, second := map[int]netip.Addr{}, map[int]netip.Addr{}
	for _, one := range list.Data {
		n := &sourceNetwork{prefix: netip.MustParsePrefix(one.Range)}
		used := l.ranges(m, one.ID)
		if slices.Contains(used, [2]netip.Addr{n.prefix.Addr(), lastOf(n.prefix)}) { // its prefixes are delegated
			continue
		}
		var addresses struct {
			Data []struct {
				Address, State   string
				MACAddress       *struct{ Address string }
				ClientIdentifier *struct {
					UID struct{ ClientIdentifier string }
				}
			}
		}
		l.get(m, fmt.Sprintf("/networks/%d/addresses?limit=1000", one.ID), &addresses)
		taken := map[string]bool{}
		for _, a := range addresses.Data {
			taken[a.Address] = true
			if a.State != "DHCP_RESERVED" || a.MACAddress == nil || !n.prefix.Addr().Is4() {
				continue
			}
			mac, err := net.ParseMAC(a.MACAddress.Address)
			if err != nil {
				l.t.Fatal(err)
			}
			n.reserved = append(n.reserved, sourceClient{name: "reserved " + a.Address, mac: mac})
		}
		free := func(from netip.Addr) netip.Addr {
			for a := from; ; a = a.Prev() {
				if !taken[a.String()] && !slices.ContainsFunc(used, func(r [2]netip.Addr) bool { return !a.Less(r[0]) && !r[1].Less(a) }) {
					return a
				}
			}
		}
		n.relay = free(lastOf(n.prefix).Prev())
		family := 4
		if n.prefix.Addr().Is6() {
			family = 6
		}
		n.server = first[family]
		n.partner = second[family]
		isFirst := !n.server.IsValid()
		if isFirst { // dhcpd allows one network at an interface
			n.server = free(n.relay.Prev())
			first[family] = n.server
			if l.partner != "" {
				n.partner = free(n.server.Prev())
				second[family] = n.partner
			}
		}
		for namespace, own := range map[string]netip.Addr{l.server: n.server, l.partner: n.partner} {
			switch {
			case namespace == "":
			case isFirst:
				l.address(namespace, "s0", own, n.prefix.Bits())
			default:
				l.ip("-n", namespace, "route", "add", n.prefix.String(), "dev", "s0")
			}
		}
		l.address(l.client, "c0", n.relay, n.prefix.Bits())
		all = append(all, n)
	}
	return all
}

// address adds an address to an interface.
func (l *sourceLab) address(namespace, device string, a netip.Addr, bits int) {
	l.t.Helper()
	args := []string{"-n", namespace, "address", "add", fmt.Sprintf("%v/%d", a, bits), "dev", device}
	if a.Is6() {
		args = append(args, "nodad")
	}
	l.ip(args...)
}

// lastOf returns the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func (l *sourceLab) get(m *manager, path string, into any) {
	l.t.Helper()
	status, text, err := m.call("GET", path, "")
	if err == nil {
		err = json.Unmarshal([]byte(text), into)
	}
	if err != nil || status != 200 {
		l.t.Fatalf("%s: %d %v %s", path, status, err, text)
	}
}

// ranges returns the DHCP ranges of a network.
func (l *sourceLab) ranges(m *manager, network int64) (all [][2]netip.Addr) {
	l.t.Helper()
	var list struct{ Data []struct{ Range string } }
	l.get(m, fmt.Sprintf("/networks/%d/ranges?limit=1000", network), &list)
	for _, one := range list.Data {
		low, high, _ := strings.Cut(one.Range, "-")
		all = append(all, [2]netip.Addr{netip.MustParseAddr(low), netip.MustParseAddr(high)})
	}
	return all
}

// old starts the server of the source. The result stops it.
func (l *sourceLab) old(source string) (stop func()) {
	l.t.Helper()
	file, err := os.ReadFile(source)
	if err != nil {
		l.t.Fatal(err)
	}
	at := filepath.Join(l.dir, filepath.Base(source))
	if err := os.WriteFile(at, bytes.ReplaceAll(file, []byte("/var/lib/kea"), []byte(l.dir)), 0o600); err != nil {
		l.t.Fatal(err)
	}
	leases := filepath.Join(l.dir, "dhcpd.leases")
	if err := os.WriteFile(leases, nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
	six := strings.Contains(source, "6.")
	var c *exec.Cmd
	if strings.HasSuffix(source, ".conf") {
		c = exec.Command("ip", "netns", "exec", l.server, peers.Program(l.t, "dhcpd"), map[bool]string{true: "-6", false: "-4"}[six], "-f", "-d",
			"-cf", at, "-lf", leases, "--no-pid", "s0")
	} else {
		program := map[bool]string{true: "kea-dhcp6", false: "kea-dhcp4"}[six]
		c = exec.Command("ip", "netns", "exec", l.server, peers.Program(l.t, program), "-c", at)
	}
	c.Env = append(os.Environ(), "KEA_PIDFILE_DIR="+l.dir, "KEA_LOCKFILE_DIR=none")
	out, err := os.Create(filepath.Join(l.dir, "old.log"))
	if err != nil {
		l.t.Fatal(err)
	}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		l.t.Fatal(err)
	}
	ended := false
	stop = func() {
		if !ended {
			ended = true
			_ = c.Process.Signal(syscall.SIGTERM) // it runs until then
			_ = c.Wait()
		}
	}
	l.t.Cleanup(func() {
		stop()
		if text, err := os.ReadFile(out.Name()); l.t.Failed() && err == nil {
			l.t.Logf("%s", text[max(0, len(text)-3000):])
		}
	})
	l.listens(map[bool]string{true: ":547 ", false: ":67 "}[six])
	return stop
}

// listens waits until a program listens at a port of the servers' namespace.
func (l *sourceLab) listens(port string) {
	l.t.Helper()
	if !until(func() bool {
		out, err := exec.Command("ip", "netns", "exec", l.server, peers.Program(l.t, "ss"), "-lnu").Output()
		return err == nil && strings.Contains(string(out), port)
	}) {
		text, _ := os.ReadFile(filepath.Join(l.dir, "old.log"))
		l.t.Fatalf("no program listens at %s\n%s", port, text)
	}
}

// requested are the options that all clients ask for.
var requested = []dhcpv4.OptionCode{dhcpv4.OptionSubnetMask, dhcpv4.OptionTimeOffset, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer,
	dhcpv4.OptionLogServer, dhcpv4.OptionHostName, dhcpv4.OptionDomainName, dhcpv4.OptionBroadcastAddress, dhcpv4.OptionNTPServers,
	dhcpv4.OptionVendorSpecificInformation, dhcpv4.OptionNetBIOSOverTCPIPNameServer, dhcpv4.OptionInterfaceMTU,
	dhcpv4.OptionIPAddressLeaseTime, dhcpv4.OptionTFTPServerName, dhcpv4.OptionBootfileName, dhcpv4.OptionDNSDomainSearchList,
	dhcpv4.OptionClasslessStaticRoute, dhcpv4.OptionTFTPServerIPAddress, dhcpv4.GenericOptionCode(224), dhcpv4.GenericOptionCode(225),
	dhcpv4.GenericOptionCode(226)}

// noReply is the time after which a client counts as not answered.
const noReply = 5 * time.Second

// exchange sends a message as the relay of a network, and returns the reply; nil if there is none.
func (l *sourceLab) exchange(n *sourceNetwork, c sourceClient, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	l.t.Helper()
	m, err := c.message(n, kind, change...)
	var replies map[dhcpv4.TransactionID]*dhcpv4.DHCPv4
	if err == nil {
		replies, err = l.send(n, []*dhcpv4.DHCPv4{m})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return replies[m.TransactionID]
}

// message returns a message of the client through the relay of a network.
func (c sourceClient) message(n *sourceNetwork, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) (*dhcpv4.DHCPv4, error) {
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(c.mac), dhcpv4.WithGatewayIP(
		n.relay.AsSlice()), dhcpv4.WithRequestedOptions(requested...)}, change...)...)
	if err != nil {
		return nil, err
	}
	for _, option := range c.options {
		m.UpdateOption(option)
	}
	m.HopCount = 1
	return m, nil
}

// listenAsRelay returns a socket at the address of a relay. It waits while a process that another test has forked holds the socket before
// it: a child has all files of this process until it runs its own program.
func listenAsRelay(network string, address netip.Addr, port int) (conn *net.UDPConn, err error) {
	until(func() bool {
		conn, err = net.ListenUDP(network, &net.UDPAddr{IP: address.AsSlice(), Port: port})
		return !errors.Is(err, syscall.EADDRINUSE)
	})
	return conn, err
}

// send sends messages as the relay of a network, and returns the replies.
func (l *sourceLab) send(n *sourceNetwork, all []*dhcpv4.DHCPv4) (replies map[dhcpv4.TransactionID]*dhcpv4.DHCPv4, err error) {
	replies = map[dhcpv4.TransactionID]*dhcpv4.DHCPv4{}
	return replies, inside(l.client, func() error {
		conn, err := listenAsRelay("udp4", n.relay, 67)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		for _, m := range all {
			for _, server := range []netip.Addr{n.server, n.partner} {
				if !server.IsValid() {
					continue
				}
				if _, err := conn.WriteTo(m.ToBytes(), &net.UDPAddr{IP: server.AsSlice(), Port: 67}); err != nil {
					return err
				}
			}
		}
		buffer := make([]byte, 2000)
		for len(replies) < len(all) {
			if err := conn.SetReadDeadline(time.Now().Add(noReply)); err != nil {
				return err
			}
			size, err := conn.Read(buffer)
			if err != nil {
				return nil //nolint:nilerr // no reply
			}
			if r, err := dhcpv4.FromBytes(buffer[:size]); err == nil {
				replies[r.TransactionID] = r
			}
		}
		return nil
	})
}

// lease returns the ACK for a client, which sends each message again until it is answered (RFC 2131 section 4.1).
func (l *sourceLab) lease(n *sourceNetwork, c sourceClient) *dhcpv4.DHCPv4 {
	l.t.Helper()
	var offer, ack *dhcpv4.DHCPv4
	if !until(func() bool { offer = l.exchange(n, c, dhcpv4.MessageTypeDiscover); return offer != nil }) {
		l.t.Fatalf("%s gets no offer in %v", c.name, n.prefix)
	}
	if !until(func() bool {
		ack = l.exchange(n, c, dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier())))
		return ack != nil
	}) || ack.MessageType() != dhcpv4.MessageTypeAck {
		l.t.Fatalf("%s gets %v in %v", c.name, ack, n.prefix)
	}
	return ack
}

// described returns the parts of a reply that clients use: those that identify the server are omitted, and an address of a range is the
// range.
func described(r *dhcpv4.DHCPv4, ranges [][2]netip.Addr) map[string]string {
	if r == nil {
		return map[string]string{"reply": "none"}
	}
	a, _ := netip.AddrFromSlice(r.YourIPAddr.To4())
	all := map[string]string{"reply": r.MessageType().String(), "address": a.String(), "siaddr": r.ServerIPAddr.String(),
		"file": r.BootFileName, "sname": r.ServerHostName}
	for _, one := range ranges {
		if !a.Less(one[0]) && !one[1].Less(a) {
			all["address"] = fmt.Sprint(one)
		}
	}
	for code, value := range r.Options {
		switch code {
		case 53, 54, 58, 59, 61, 82: // type, server, times, echoes
		default:
			all[fmt.Sprintf("option %d", code)] = hex.EncodeToString(value)
		}
	}
	return all
}

// ask returns the descriptions of the offers to all clients of all networks.
func (l *sourceLab) ask(all []*sourceNetwork, ranges [][2]netip.Addr) map[string]map[string]string {
	l.t.Helper()
	var lock sync.Mutex
	var wait sync.WaitGroup
	answers := map[string]map[string]string{}
	for i, n := range all {
		names := map[dhcpv4.TransactionID]string{}
		var messages []*dhcpv4.DHCPv4
		for _, c := range clientsOf(i, n) {
			m, err := c.message(n, dhcpv4.MessageTypeDiscover)
			if err != nil {
				l.t.Fatal(err)
			}
			names[m.TransactionID] = fmt.Sprintf("%s in %v", c.name, n.prefix)
			messages = append(messages, m)
		}
		wait.Go(func() {
			replies, err := l.send(n, messages)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				l.t.Errorf("ask in %v: %v", n.prefix, err)
			}
			for id, name := range names {
				answers[name] = described(replies[id], ranges)
			}
		})
	}
	wait.Wait()
	return answers
}

// clientsOf returns the clients of a network: those that all networks have, and those with a reservation.
func clientsOf(number int, n *sourceNetwork) []sourceClient {
	mac := func(client int) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 1, byte(number), byte(client)} }
	pxe := func(arch byte) []dhcpv4.Option {
		return []dhcpv4.Option{dhcpv4.OptClassIdentifier(fmt.Sprintf("PXEClient:Arch:%05d:UNDI:003000", arch)),
			dhcpv4.OptGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, arch})}
	}
	clients := append([]sourceClient{{"a client", mac(1), nil}, {"a client that asks for a long lease", mac(2), []dhcpv4.Option{
		dhcpv4.OptIPAddressLeaseTime(1000000 * time.Second)}}, {"a BIOS", mac(3), pxe(0)}, {"an EFI", mac(4), pxe(7)}}, n.reserved...)
	for i, c := range sourceClients {
		if c.mac == nil {
			c.mac = mac(10 + i)
		}
		clients = append(clients, c)
	}
	return clients
}

// differences returns the differences of two lists of answers, sorted.
func differences(before, after map[string]map[string]string) (all []string) {
	for client, one := range before {
		parts := map[string]bool{}
		for part := range one {
			parts[part] = true
		}
		for part := range after[client] {
			parts[part] = true
		}
		for part := range parts {
			if was, is := one[part], after[client][part]; was != is {
				all = append(all, fmt.Sprintf("%s: %s: %q before, %q now", client, part, was, is))
			}
		}
	}
	slices.Sort(all)
	return all
}

// sourceManager is a manager with a service point whose DHCP server runs in a namespace.
type sourceManager struct {
	*authority
	configuration string
	point         string
}

// newSourceManager starts a manager with the configuration main, and an agent.
func newSourceManager(t *testing.T, l *sourceLab) *sourceManager {
	t.Helper()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	m.setEnvironment()
	return newSourcePoint(t, m, configuration, "dhcp1", "edge", `"managementAddress":"192.0.2.254","servicesIpv6Address":"`+
		sourceServer6+`"`, l.server)
}

// sourceServer6 is the IPv6 address of the server of newSourceManager, in the first network of the sources of DHCPv6.
const sourceServer6 = "2001:db8:1:0:ffff:ffff:ffff:fffd"

// newSourcePoint starts an agent whose DHCP server runs in a namespace, and creates the server. addresses are members of its interface.
func newSourcePoint(t *testing.T, m *manager, configuration, name, point, addresses, namespace string) *sourceManager {
	t.Helper()
	p := &fleetPoint{t: t, m: m, state: filepath.Join(t.TempDir(), "state"),
		args: []string{"--network-namespace", "dhcp-service=" + namespace, "--network-namespace", "tftp-service=" + namespace}}
	var created struct{ FleetInstanceID, RegistrationKey string }
	if err := json.Unmarshal([]byte(p.fleet("create", "--json", point)), &created); err != nil {
		t.Fatal(err)
	}
	p.start(created.RegistrationKey)
	t.Cleanup(func() {
		if err := p.process.signal(syscall.SIGTERM); err != nil {
			t.Errorf("the agent ends with %v:\n%s", err, p.process.text())
		}
	})
	server := m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"`+name+`","profile":"DNS_DHCP_SERVER_20",`+
		`"servicePoint":"`+created.FleetInstanceID+`","interfaces":[{"type":"NetworkInterface","name":"`+name+`",`+addresses+`}]}`)
	return &sourceManager{&authority{fleetPoint: p, server: server}, configuration, point}
}

// serves deploys the application and the content of a service.
func (s *sourceManager) serves(service string) {
	s.t.Helper()
	settings := filepath.Join(s.t.TempDir(), "dhcp.json")
	if err := os.WriteFile(settings, []byte(`{"interfaces":["s0"]}`), 0o600); err != nil { // with DHCPv6 it has no IPv4 address
		s.t.Fatal(err)
	}
	s.fleet("deploy", s.point, "dhcp-service", "--configuration", settings)
	if !until(func() bool { return strings.Contains(s.fleet("applications", s.point), "HEALTHY") }) {
		s.t.Fatalf("the application is not healthy:\n%s", s.process.text())
	}
	if state, message := s.deploy("/servers/"+s.server+"/deployments", `{"type":"FullDeployment","service":"`+service+`"}`); state != "COMPLETED" {
		s.t.Fatalf("the deployment is %s: %s\n%s", state, message, s.process.text())
	}
}

// allRanges returns the DHCP ranges of all networks.
func allRanges(l *sourceLab, m *manager) (all [][2]netip.Addr) {
	l.t.Helper()
	var list struct{ Data []struct{ ID int64 } }
	l.get(m, "/networks?limit=1000&fields=id", &list)
	for _, one := range list.Data {
		all = append(all, l.ranges(m, one.ID)...)
	}
	return all
}

// sourceClients are clients that the classes and reservations of the sources know.
var sourceClients = []sourceClient{
	{"a phone", nil, []dhcpv4.Option{dhcpv4.OptClassIdentifier("phone 7")}},
	{"a phone by its hardware address", net.HardwareAddr{2, 0, 0x5e, 0, 0x53, 0xa1}, nil},
	{"a camera", net.HardwareAddr{2, 0, 0x5e, 0, 0x53, 0xc1}, nil},
	{"a camera with options of its own", net.HardwareAddr{2, 0, 0x5e, 0, 0x53, 0xc2}, nil},
	{"a laptop", net.HardwareAddr{2, 0, 0x5e, 0, 0x53, 0x10}, nil},
	{"a known laptop", net.HardwareAddr{2, 0, 0x5e, 0, 0x53, 3}, nil},
	{"a client identifier", nil, []dhcpv4.Option{dhcpv4.OptClientIdentifier([]byte{1, 2, 0, 0x5e, 0, 0x53, 2})}},
}
