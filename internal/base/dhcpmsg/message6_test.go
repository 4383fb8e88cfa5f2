package dhcpmsg

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

// solicit returns a SOLICIT of another library, and the same message relayed by a number of relays.
func solicit(t testing.TB, relays int) []byte {
	t.Helper()
	duid := &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	m, err := dhcpv6.NewMessage(dhcpv6.WithClientID(duid), dhcpv6.WithIAID([4]byte{0, 0, 0, 7}),
		dhcpv6.WithRequestedOptions(dhcpv6.OptionDNSRecursiveNameServer))
	if err != nil {
		t.Fatal(err)
	}
	m.MessageType = dhcpv6.MessageTypeSolicit
	packet := dhcpv6.DHCPv6(m)
	for i := range relays {
		r, err := dhcpv6.EncapsulateRelay(packet, dhcpv6.MessageTypeRelayForward, net.ParseIP("2001:db8::1"), net.ParseIP("fe80::2"))
		if err != nil {
			t.Fatal(err)
		}
		r.AddOption(dhcpv6.OptInterfaceID([]byte{byte(i)}))
		packet = r
	}
	return packet.ToBytes()
}

// TestMessage6 reads messages of another library through 0 to 8 relays, and lets that library read the replies.
func TestMessage6(t *testing.T) {
	for relays := range 9 {
		packet := solicit(t, relays)
		m, err := Parse6(packet)
		if err != nil {
			t.Fatal(relays, err)
		}
		if m.Type != Solicit6 || len(m.Relays) != relays || m.Options.Count(OptIANA6) != 1 {
			t.Errorf("%d relays: %+v", relays, m)
		}
		if kind, hardware := m.LinkLayer6(); kind != 1 || !bytes.Equal(hardware, []byte{2, 0, 0, 0, 0, 1}) {
			t.Errorf("hardware %d %x", kind, hardware)
		}
		duid, _ := m.Options.Find(OptClientID6)
		reply := Write6(m, Advertise6, Options6{{OptClientID6, duid}, {OptPreference6, []byte{7}}})
		got, err := dhcpv6.FromBytes(reply)
		if err != nil {
			t.Fatal(err)
		}
		for i := relays - 1; i >= 0; i-- {
			r, ok := got.(*dhcpv6.RelayMessage)
			if !ok || r.MessageType != dhcpv6.MessageTypeRelayReply || !bytes.Equal(r.Options.InterfaceID(), []byte{byte(i)}) ||
				!r.LinkAddr.Equal(net.ParseIP("2001:db8::1")) || !r.PeerAddr.Equal(net.ParseIP("fe80::2")) || int(r.HopCount) != i {
				t.Fatalf("relay %d of %d: %v", i, relays, got)
			}
			got = r.Options.RelayMessage()
		}
		inner, ok := got.(*dhcpv6.Message)
		if !ok || inner.MessageType != dhcpv6.MessageTypeAdvertise || !bytes.Equal(inner.TransactionID[:], m.Transaction[:]) ||
			inner.Options.ClientID() == nil {
			t.Errorf("%d relays: %v", relays, got)
		}
	}
}

// TestRelay6 checks the port of relays (RFC 8357), and the hardware address that the relay next to the client reports (RFC 6939).
func TestRelay6(t *testing.T) {
	m, err := Parse6(solicit(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	if m.RelayPort6(1234) != 547 {
		t.Error("the port of a relay that asks for none")
	}
	m.Relays[0].Options = append(m.Relays[0].Options, Option6{OptRelayPort6, []byte{0, 0}})
	m.Relays[1].Options = append(m.Relays[1].Options, Option6{OptLinkLayer6, []byte{0, 6, 1, 2, 3}})
	if kind, hardware := m.LinkLayer6(); kind != 6 || !bytes.Equal(hardware, []byte{1, 2, 3}) || m.RelayPort6(1234) != 1234 {
		t.Errorf("%d %x %d", kind, hardware, m.RelayPort6(1234))
	}
	if reply := Write6(m, Reply6, nil); !bytes.Contains(reply, []byte{0, byte(OptRelayPort6), 0, 2, 0, 0}) {
		t.Errorf("the port option is not returned: %x", reply)
	}
	m.Relays[1].Options = Options6{{OptLinkLayer6, []byte{0}}} // truncated: the DUID is used
	if kind, _ := m.LinkLayer6(); kind != 1 {
		t.Error("a truncated link-layer option")
	}
}

// TestBad6 checks that each malformed message is rejected with its reason.
func TestBad6(t *testing.T) {
	plain := solicit(t, 0)
	with := func(options ...[]byte) []byte {
		return slices.Concat(append([][]byte{{Solicit6, 1, 2, 3}}, options...)...)
	}
	duid := func(n int) []byte { return AppendOption6(nil, OptClientID6, bytes.Repeat([]byte{1}, n)) }
	relay := func(hops byte, inner []byte) []byte {
		head := append([]byte{RelayForward6, hops}, make([]byte, 32)...)
		return AppendOption6(head, OptRelayMessage6, inner)
	}
	for name, c := range map[string]struct {
		packet []byte
		want   error
	}{
		"empty":           {nil, ErrShort},
		"three octets":    {plain[:3], ErrShort},
		"truncated":       {plain[:len(plain)-1], ErrTruncated},
		"half an option":  {with([]byte{0, 1}), ErrTruncated},
		"nine relays":     {solicit(t, 9), ErrRelays},
		"forty relays":    {solicit(t, 40), ErrRelays},
		"hop count lie":   {relay(33, plain), ErrRelays},
		"empty relay":     {relay(0, nil), ErrShort},
		"short relay":     {relay(0, plain)[:30], ErrShort},
		"no message":      {append([]byte{RelayForward6, 0}, make([]byte, 32)...), ErrNoInner},
		"two messages":    {AppendOption6(relay(0, plain), OptRelayMessage6, plain), ErrTwice},
		"advertise":       {[]byte{Advertise6, 1, 2, 3}, ErrType},
		"reply":           {[]byte{Reply6, 1, 2, 3}, ErrType},
		"reconfigure":     {[]byte{Reconfigure6, 1, 2, 3}, ErrType},
		"relay reply":     {[]byte{RelayReply6, 1, 2, 3}, ErrType},
		"type 0":          {[]byte{0, 1, 2, 3}, ErrType},
		"type 255":        {[]byte{255, 1, 2, 3}, ErrType},
		"DUID of 0":       {with(duid(0)), ErrDUID},
		"DUID of 1":       {with(duid(1)), ErrDUID},
		"DUID of 129":     {with(duid(129)), nil},
		"DUID of 130":     {with(duid(130)), nil},
		"DUID of 131":     {with(duid(131)), ErrDUID},
		"two client ids":  {with(duid(9), duid(9)), ErrTwice},
		"two server ids":  {with(duid(9), AppendOption6(nil, 2, []byte("abc")), AppendOption6(nil, 2, []byte("abc"))), ErrTwice},
		"too many":        {with(bytes.Repeat([]byte{1, 0, 0, 0}, maxOptions6+1)), ErrMany},
		"just the header": {with(), nil},
	} {
		if _, err := Parse6(c.packet); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// FuzzParse6 checks that no packet makes the parser panic, that messages are read as another library reads them, unless that refuses the
// content of an option, and that it reads the same options in replies.
func FuzzParse6(f *testing.F) {
	for n := range 3 {
		f.Add(solicit(f, n))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		m, err := Parse6(packet)
		other, failure := dhcpv6.FromBytes(packet)
		if failure == nil && (errors.Is(err, ErrShort) || errors.Is(err, ErrTruncated)) {
			t.Fatalf("%v, but another library reads %s", err, other.Summary())
		}
		if err != nil {
			return
		}
		m.LinkLayer6()
		for _, r := range m.Relays {
			if strings.Contains(r.Link.String(), "%") || r.Link == (netip.Addr{}) {
				t.Error(r.Link)
			}
		}
		if failure == nil {
			compareMessages6(t, m, other)
		}
		if reply, failure := dhcpv6.FromBytes(Write6(m, Reply6, m.Options)); failure == nil {
			compareMessages6(t, &Message6{Type: Reply6, Transaction: m.Transaction, Options: m.Options, Relays: m.Relays}, reply)
		}
	})
}

// compareMessages6 compares a message with that of another library: the addresses of its relays, its type and transaction, and its options
// in order.
func compareMessages6(t *testing.T, m *Message6, other dhcpv6.DHCPv6) {
	t.Helper()
	for _, r := range m.Relays {
		is, ok := other.(*dhcpv6.RelayMessage)
		if !ok {
			t.Fatalf("another library has read fewer relays than %d", len(m.Relays))
		}
		if link, peer := r.Link.As16(), r.Peer.As16(); is.HopCount != r.Hops || !is.LinkAddr.Equal(link[:]) || !is.PeerAddr.Equal(peer[:]) {
			t.Errorf("relay %d %s %s, and %s by another library", r.Hops, r.Link, r.Peer, is.Summary())
		}
		other = is.Options.RelayMessage()
	}
	is, ok := other.(*dhcpv6.Message)
	if !ok || uint8(is.MessageType) != m.Type || [3]byte(is.TransactionID) != m.Transaction {
		t.Fatalf("message %d %x, and %v by another library", m.Type, m.Transaction, other)
	}
	if len(is.Options.Options) != len(m.Options) {
		t.Fatalf("%d options, and %d by another library", len(m.Options), len(is.Options.Options))
	}
	for i, o := range is.Options.Options {
		if uint16(o.Code()) != m.Options[i].Code {
			t.Errorf("option %d at %d, and %d by another library", m.Options[i].Code, i, o.Code())
		}
		if one, ok := o.(*dhcpv6.OptionGeneric); ok && !bytes.Equal(one.OptionData, m.Options[i].Data) {
			t.Errorf("option %d is %x, and %x by another library", m.Options[i].Code, m.Options[i].Data, one.OptionData)
		}
	}
}
