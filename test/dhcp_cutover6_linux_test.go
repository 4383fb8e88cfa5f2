package test

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/peers"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

// client6 is a DHCPv6 client behind the relay of a network. It asks for an address and, if prefix is true, for a delegated prefix.
type client6 struct {
	l       *sourceLab
	network *sourceNetwork
	mac     net.HardwareAddr
	prefix  bool
}

// held6 are the leases of a client, with the options that it got.
type held6 struct {
	client          client6
	address, prefix string
	server          dhcpv6.DUID
	rest            string
}

// exchange sends a message with the leases of a client and returns the reply; nil if there is none.
func (c client6) exchange(kind dhcpv6.MessageType, of *held6, change ...dhcpv6.Modifier) *dhcpv6.Message {
	c.l.t.Helper()
	m, err := dhcpv6.NewMessage()
	if err != nil {
		c.l.t.Fatal(err)
	}
	m.MessageType = kind
	m.AddOption(dhcpv6.OptClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: c.mac}))
	m.AddOption(dhcpv6.OptElapsedTime(0))
	m.AddOption(dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionDomainSearchList))
	na, pd := &dhcpv6.OptIANA{IaId: [4]byte{0, 0, 0, 1}}, &dhcpv6.OptIAPD{IaId: [4]byte{0, 0, 0, 2}}
	if of != nil {
		na.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(of.address)})
		if of.prefix != "" {
			_, p, err := net.ParseCIDR(of.prefix)
			if err != nil {
				c.l.t.Fatal(err)
			}
			pd.Options.Add(&dhcpv6.OptIAPrefix{Prefix: p})
		}
	}
	if m.AddOption(na); c.prefix {
		m.AddOption(pd)
	}
	for _, one := range change {
		one(m)
	}
	relayed, err := dhcpv6.EncapsulateRelay(m, dhcpv6.MessageTypeRelayForward, c.network.relay.AsSlice(), net.ParseIP("fe80::1"))
	if err != nil {
		c.l.t.Fatal(err)
	}
	var reply *dhcpv6.Message
	if err := inside(c.l.client, func() error {
		conn, err := listenAsRelay("udp6", c.network.relay, 547)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.WriteTo(relayed.ToBytes(), &net.UDPAddr{IP: c.network.server.AsSlice(), Port: 547}); err != nil {
			return err
		}
		if err := conn.SetReadDeadline(time.Now().Add(noReply)); err != nil {
			return err
		}
		buffer := make([]byte, 4000)
		for reply == nil {
			size, err := conn.Read(buffer)
			if err != nil {
				return nil //nolint:nilerr // no reply
			}
			if r, err := dhcpv6.FromBytes(buffer[:size]); err == nil {
				if inner, err := r.GetInnerMessage(); err == nil && inner.TransactionID == m.TransactionID {
					reply = inner
				}
			}
		}
		return nil
	}); err != nil {
		c.l.t.Fatal(err)
	}
	return reply
}

// read returns the leases in a reply that are not over.
func (c client6) read(m *dhcpv6.Message) *held6 {
	h := &held6{client: c}
	if m == nil {
		return h
	}
	h.server = m.Options.ServerID()
	for _, one := range m.Options.IANA() {
		for _, a := range one.Options.Addresses() {
			if a.ValidLifetime > 0 {
				h.address = a.IPv6Addr.String()
				h.rest = fmt.Sprint(m.Options.DNS(), m.Options.DomainSearchList())
			}
		}
	}
	for _, one := range m.Options.IAPD() {
		for _, p := range one.Options.Prefixes() {
			if p.ValidLifetime > 0 {
				h.prefix = p.Prefix.String()
			}
		}
	}
	return h
}

// lease gets leases.
func (c client6) lease() *held6 {
	c.l.t.Helper()
	var offer *held6
	if !until(func() bool { // a server that the manager restores leases to answers no new clients until then
		offer = c.read(c.exchange(dhcpv6.MessageTypeSolicit, nil))
		return offer.address != ""
	}) {
		c.l.t.Fatalf("%v gets nothing in %v", c.mac, c.network.prefix)
	}
	h := c.read(c.exchange(dhcpv6.MessageTypeRequest, offer, dhcpv6.WithServerID(offer.server)))
	if h.address == "" || c.prefix && h.prefix == "" {
		c.l.t.Fatalf("%v gets %+v in %v", c.mac, h, c.network.prefix)
	}
	return h
}

// TestCutOver6 imports a configuration and the leases of ISC dhcpd and of Kea for DHCPv6. Each client keeps its address and its delegated
// prefix, new clients get other ones, and the manager knows all of them.
func TestCutOver6(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ kind, file, leases string }{
		{"dhcpd", "office6.conf", "dhcpd.leases"},
		{"kea", "campus6.json", "leases6.csv"},
	} {
		t.Run(one.file, func(t *testing.T) { cutOver6(t, one.kind, one.file, one.leases) })
	}
}

func cutOver6(t *testing.T, kind, file, leases string) {
	l := newSourceLab(t, kind+"six")
	s := newSourceManager(t, l)
	source := filepath.Join("testdata", "dhcp", file)
	imports := []string{"import", kind, source, "--configuration", "main", "--server", "dhcp1", "-y"}
	s.m.portolan(imports...)
	if out := s.m.portolan(imports...); !strings.Contains(out, "no changes") {
		t.Errorf("a second import changes:\n%s", out)
	}
	all := l.networks(s.m)
	if len(all) != 2 || all[0].server.String() != sourceServer6 {
		t.Fatalf("the networks are %+v", all)
	}
	if !until(func() bool {
		out, err := exec.Command(peers.Program(t, "ip"), "-n", l.server, "-6", "address").CombinedOutput()
		return err == nil && !strings.Contains(string(out), "tentative") && strings.Contains(string(out), "fe80:")
	}) {
		t.Fatal("the link has no address")
	}
	stop := l.old(source)
	var held []*held6
	taken := map[string]bool{}
	lease := func(i, number int) {
		t.Helper()
		router := all[i].prefix.Addr() == netip.MustParseAddr("2001:db8:1::")
		h := client6{l, all[i], net.HardwareAddr{2, 0, 0, 6, byte(i), byte(number)}, router}.lease()
		for _, one := range []string{h.address, h.prefix} {
			if one != "" && taken[one] {
				t.Errorf("two clients have %s", one)
			}
			taken[one] = true
		}
		held = append(held, h)
	}
	for i := range all {
		for number := range 6 {
			lease(i, number)
		}
	}
	printer := client6{l, all[0], net.HardwareAddr{2, 0, 0x5e, 0, 0x53, 1}, false}.lease()
	if held = append(held, printer); printer.address != "2001:db8:1::5" {
		t.Errorf("the old server leases %s to the printer", printer.address)
	}
	stop()
	known := len(held)
	out := s.m.portolan("import", "leases", filepath.Join(l.dir, leases), "--configuration", "main", "-y")
	if !strings.Contains(out, " 0 refused") {
		t.Errorf("the leases:\n%s", out)
	}
	s.serves("DHCPv6")
	for i := range all {
		for number := range 4 {
			lease(i, 100+number)
		}
	}
	for _, h := range held { // the server has another identity than the old one, so clients rebind
		again := h.client.read(h.client.exchange(dhcpv6.MessageTypeRebind, h))
		if again.address != h.address || again.prefix != h.prefix || again.rest != h.rest {
			t.Errorf("%v has %s %s (%s), and rebinds %s %s (%s)", h.client.mac, h.address, h.prefix, h.rest, again.address, again.prefix, again.rest)
			continue
		}
		renewed := h.client.read(h.client.exchange(dhcpv6.MessageTypeRenew, h, dhcpv6.WithServerID(again.server)))
		if renewed.address != h.address || renewed.prefix != h.prefix {
			t.Errorf("%v has %s %s, and renews %+v", h.client.mac, h.address, h.prefix, renewed)
		}
	}
	if len(taken) < known {
		t.Errorf("%d leases of %d clients", len(taken), known)
	}
	s.m.page("/leases?limit=100&total=true&filter=prefixLength:56", `"totalCount":10`, `"prefixLength":56`, `"dhcp1"`)
	delegated := strings.TrimSuffix(held[0].prefix, "/56")
	s.m.page("/leaseSpans?filter=address:'"+delegated+"'", `"address":"`+delegated+`"`, `"endDateTime":null`)
	s.m.page("/ranges?filter=range:contains('"+delegated+"')", `"leased":10,`)
	if got := s.m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
}
