package dhcpdata

import (
	"net/netip"
	"testing"

	"portolan/internal/base/dhcpmsg"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// FuzzDecide checks that no message makes the decision panic, and that an address is leased only out of a range or to the client that it is
// reserved for, never the gateway, and never one that another client holds.
func FuzzDecide(f *testing.F) {
	c := classes(service("dynamic-bootp", true), option(0, AtNetwork, 121, "\x00\x0a\x00\x00\x01"), vendor("Acme", 1, "p")).compile(f)
	for _, kind := range []dhcpv4.MessageType{1, 3, 4, 7, 8} {
		m, err := dhcpv4.New(dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(mac(1)), dhcpv4.WithGatewayIP([]byte{10, 0, 0, 1}),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress([]byte{10, 0, 0, 11})), dhcpv4.WithOption(dhcpv4.OptClassIdentifier("Acme")))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.ToBytes(), uint8(0))
	}
	f.Fuzz(func(t *testing.T, packet []byte, state uint8) {
		m, err := dhcpmsg.Parse(packet)
		if err != nil {
			return
		}
		facts := &Facts{Type: m.Type, HardwareType: m.HardwareType, Hardware: m.Hardware, Secs: m.Secs, Options: m.Options, Packet: packet,
			Interface: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}, Unicast: state&1 != 0, Explain: state&2 != 0}
		if !m.Client.IsUnspecified() {
			facts.Client = m.Client
		}
		if !m.Relay.IsUnspecified() {
			facts.Relay = m.Relay
		}
		held, l := leased(77, "10.0.0.11", []State{Free, Offered, Leased, Abandoned}[state>>2&3])
		d := Decide(c, facts, memory{held: l}, now)
		if d.Reply != Offer && d.Reply != Ack && d.Reply != BOOTP || !d.Address.IsValid() {
			return
		}
		if d.LeaseTime == 0 {
			t.Errorf("%s without a lease time", d.Address)
		}
		if d.Address == held && l.State != Free && l.State != Abandoned && d.Client != l.Client {
			t.Errorf("%s is given to %q and held by %q", d.Address, d.Client, l.Client)
		}
		inRange := addr("10.0.0.10").Compare(d.Address) <= 0 && d.Address.Compare(addr("10.0.0.14")) <= 0 ||
			addr("10.3.0.10").Compare(d.Address) <= 0 && d.Address.Compare(addr("10.3.0.19")) <= 0
		isReserved := d.Address == addr("10.0.0.12") || d.Address == addr("10.0.0.20")
		if d.Reservation == 0 && (!inRange || isReserved) || d.Reservation != 0 && !isReserved {
			t.Errorf("%s is given, with the reservation %d", d.Address, d.Reservation)
		}
	})
}
