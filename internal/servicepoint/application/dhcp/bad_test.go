package dhcp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"portolan/internal/wire/dhcpdata"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// raw is a message of DHCPv4 in octets: a header, the cookie, and options as they are given.
type raw struct {
	header [236]byte
	cookie []byte
	rest   []byte
}

// newRaw returns a message of a type of the client n through the relay 10.0.0.1, without an END option.
func newRaw(kind byte, n int) *raw {
	p := &raw{cookie: []byte{99, 130, 83, 99}, rest: []byte{53, 1, kind}}
	p.header[0], p.header[1], p.header[2] = 1, 1, 6
	binary.BigEndian.PutUint32(p.header[4:], uint32(1000+n))
	copy(p.header[24:], []byte{10, 0, 0, 1})
	copy(p.header[28:], []byte{2, 7, 0, 0, byte(n >> 8), byte(n)})
	return p
}

func (p *raw) at(offset int, octets ...byte) *raw { copy(p.header[offset:], octets); return p }

// option appends an option.
func (p *raw) option(code byte, value ...byte) *raw {
	p.rest = append(append(p.rest, code, byte(len(value))), value...)
	return p
}

// append appends octets after the options.
func (p *raw) append(octets ...byte) *raw { p.rest = append(p.rest, octets...); return p }

func (p *raw) octets() []byte { return slices.Concat(p.header[:], p.cookie, p.rest) }

// end returns the message with an END option.
func (p *raw) end() []byte { return append(p.octets(), 255) }

// badUnits is units with a network of the loopback interface, for clients without a relay.
func badUnits(t *testing.T) dhcpdata.Units {
	u := units(t, noPing, option("dhcp-cache-threshold", 0))
	u[dhcpdata.NetworkUnit(11)] = unit(t, dhcpdata.NetworkUnit(11), dhcpdata.Network{ID: 11, Prefix: netip.MustParsePrefix("127.0.0.0/8")},
		dhcpdata.Pool{ID: 12, Ranges: []dhcpdata.Interval{{First: netip.MustParseAddr("127.0.5.0"), Last: netip.MustParseAddr("127.0.5.255")}}},
		noPing)
	return u
}

// TestEachBadInput sends each malformed or unusual message over a socket. It has no reply and is counted by its reason, or it has the right
// reply.
func TestEachBadInput(t *testing.T) {
	s, address := start(t, t.TempDir(), badUnits(t))
	holder := dial(t, address, 1)
	held := netip.MustParseAddr(holder.lease()).As4()
	const discover, request, decline, release, inform = 1, 3, 4, 7, 8
	direct := func(p *raw) *raw { return p.at(24, 0, 0, 0, 0) }
	many := func(n int, octets ...byte) []byte { return bytes.Repeat(octets, n) }
	rows := []struct {
		name string
		make func(p *raw) []byte
		kind byte
		// want is the type of the reply, or the reason for none.
		want string
	}{
		{"op 2", func(p *raw) []byte { return p.at(0, 2).end() }, discover, "not-a-request"},
		{"htype 0", func(p *raw) []byte { return p.at(1, 0).end() }, discover, "OFFER"},
		{"hlen 0", func(p *raw) []byte { return p.at(2, 0).end() }, discover, "bad-message"},
		{"hlen 0 with an identifier", func(p *raw) []byte { return p.at(2, 0).option(61, 0, 1, 2).end() }, discover, "OFFER"},
		{"hlen 16", func(p *raw) []byte { return p.at(2, 16).end() }, discover, "OFFER"},
		{"hlen 17", func(p *raw) []byte { return p.at(2, 17).end() }, discover, "hardware-length"},
		{"hlen 255", func(p *raw) []byte { return p.at(2, 255).end() }, discover, "hardware-length"},
		{"no cookie", func(p *raw) []byte { p.cookie = make([]byte, 4); return p.end() }, discover, "bootp-off"},
		{"another cookie", func(p *raw) []byte { p.cookie = []byte("CMU\x00"); return p.end() }, discover, "magic-cookie"},
		{"a header alone", func(p *raw) []byte { return p.header[:] }, discover, "bootp-off"},
		{"half a header", func(p *raw) []byte { return p.header[:100] }, discover, "short"},
		{"no octets", func(*raw) []byte { return nil }, discover, "short"},
		{"no option 53", func(p *raw) []byte { p.rest = nil; return p.option(12, 'a').end() }, discover, "bootp-off"},
		{"two options 53", func(p *raw) []byte { return p.option(53, 1).end() }, discover, "message-type"},
		{"an empty option 53", func(p *raw) []byte { p.rest = nil; return p.option(53).end() }, discover, "message-type"},
		{"message type 0", func(p *raw) []byte { return p.end() }, 0, "message-type"},
		{"message type 200", func(p *raw) []byte { return p.end() }, 200, "bad-message"},
		{"an OFFER", func(p *raw) []byte { return p.end() }, 2, "bad-message"},
		{"an ACK", func(p *raw) []byte { return p.end() }, 5, "bad-message"},
		{"an option over the end", func(p *raw) []byte { return p.append(12, 200, 'a').octets() }, discover, "truncated-option"},
		{"an option without its length", func(p *raw) []byte { return p.append(12).octets() }, discover, "truncated-option"},
		{"no END", func(p *raw) []byte { return p.octets() }, discover, "no-end-option"},
		{"END, then octets", func(p *raw) []byte { return append(p.end(), 12, 200, 3) }, discover, "OFFER"},
		{"1,000 PADs", func(p *raw) []byte { return p.append(make([]byte, 1000)...).end() }, discover, "OFFER"},
		{"option 52 to itself", func(p *raw) []byte { return p.option(52, 3).at(108, 52, 1, 3, 255).at(44, 52, 1, 3, 255).end() }, discover,
			"OFFER"},
		{"option 52 over truncated options", func(p *raw) []byte { return p.option(52, 2).at(44, many(64, 12)...).end() }, discover,
			"truncated-option"},
		{"parts of 82 among parts of 12", func(p *raw) []byte {
			for i := range byte(10) {
				p.option(12, 'a'+i).option(82, 1, 0)
			}
			return p.end()
		}, discover, "OFFER"},
		{"option 57 of 0", func(p *raw) []byte { return p.option(57, 0, 0).end() }, discover, "OFFER"},
		{"option 57 of 65535", func(p *raw) []byte { return p.option(57, 255, 255).end() }, discover, "OFFER"},
		{"option 57 of 1 octet", func(p *raw) []byte { return p.option(57, 255).end() }, discover, "OFFER"},
		{"option 55 with 255 times one code", func(p *raw) []byte { return p.option(55, many(255, 3)...).end() }, discover, "OFFER"},
		{"option 55 with all codes", func(p *raw) []byte {
			all := make([]byte, 255)
			for i := range all {
				all[i] = byte(i)
			}
			return p.option(55, all...).end()
		}, discover, "OFFER"},
		{"an empty option 55", func(p *raw) []byte { return p.option(55).end() }, discover, "OFFER"},
		{"an empty option 61", func(p *raw) []byte { return p.option(61).end() }, discover, "OFFER"},
		{"option 61 of 1 octet", func(p *raw) []byte { return p.option(61, 9).end() }, discover, "OFFER"},
		{"option 61 of 255 octets", func(p *raw) []byte { return p.option(61, many(255, 9)...).end() }, discover, "OFFER"},
		{"option 61 of 3,000 octets", func(p *raw) []byte {
			for range 12 {
				p.option(61, many(250, 8)...)
			}
			return p.end()
		}, discover, "OFFER"},
		{"option 61 that starts with 0", func(p *raw) []byte { return p.option(61, 0, 7, 7).end() }, discover, "OFFER"},
		{"option 50 of 0.0.0.0", func(p *raw) []byte { return p.option(50, 0, 0, 0, 0).end() }, discover, "OFFER"},
		{"option 50 of 3 octets", func(p *raw) []byte { return p.option(50, 10, 0, 0).end() }, discover, "bad-message"},
		{"option 50, broadcast", func(p *raw) []byte { return p.option(50, 255, 255, 255, 255).end() }, discover, "OFFER"},
		{"option 50, broadcast of the network", func(p *raw) []byte { return p.option(50, 10, 0, 255, 255).end() }, discover, "OFFER"},
		{"option 50, the server", func(p *raw) []byte { return p.option(50, 127, 0, 0, 1).end() }, discover, "OFFER"},
		{"option 50, the gateway", func(p *raw) []byte { return p.option(50, 10, 0, 0, 1).end() }, discover, "OFFER"},
		{"option 50, another client's", func(p *raw) []byte { return p.option(50, held[:]...).end() }, discover, "OFFER"},
		{"option 51 of 0", func(p *raw) []byte { return p.option(51, 0, 0, 0, 0).end() }, discover, "OFFER"},
		{"option 51 of 3 octets", func(p *raw) []byte { return p.option(51, 0, 0, 9).end() }, discover, "OFFER"},
		{"ciaddr in a DISCOVER", func(p *raw) []byte { return p.at(12, 10, 0, 1, 77).end() }, discover, "OFFER"},
		{"ciaddr multicast", func(p *raw) []byte { return p.at(12, 224, 0, 0, 1).end() }, discover, "bad-message"},
		{"ciaddr broadcast", func(p *raw) []byte { return p.at(12, 255, 255, 255, 255).end() }, inform, "bad-message"},
		{"ciaddr, broadcast of the interface", func(p *raw) []byte { return direct(p).at(12, 127, 255, 255, 255).end() }, inform, "bad-message"},
		{"giaddr 0.0.0.1", func(p *raw) []byte { return p.at(24, 0, 0, 0, 1).end() }, discover, "no-network"},
		{"giaddr multicast", func(p *raw) []byte { return p.at(24, 239, 1, 1, 1).end() }, discover, "bad-message"},
		{"giaddr broadcast", func(p *raw) []byte { return p.at(24, 255, 255, 255, 255).end() }, discover, "bad-message"},
		{"giaddr not served", func(p *raw) []byte { return p.at(24, 192, 0, 2, 1).end() }, discover, "no-network"},
		{"hops 16", func(p *raw) []byte { return p.at(3, 16).end() }, discover, "OFFER"},
		{"hops 17", func(p *raw) []byte { return p.at(3, 17).end() }, discover, "hops"},
		{"hops 255", func(p *raw) []byte { return p.at(3, 255).end() }, discover, "hops"},
		{"secs swapped", func(p *raw) []byte { return p.at(8, 3, 0).end() }, discover, "OFFER"},
		{"xid 0", func(p *raw) []byte { return p.at(4, 0, 0, 0, 0).end() }, discover, "OFFER"},
		{"chaddr multicast", func(p *raw) []byte { return p.at(28, 1, 0, 94, 0, 0, 1).end() }, discover, "bad-message"},
		{"chaddr zero", func(p *raw) []byte { return p.at(28, 0, 0, 0, 0, 0, 0).end() }, discover, "bad-message"},
		{"chaddr of a server", func(p *raw) []byte { return p.at(28, 2, 0, 0, 0, 0, 0).end() }, discover, "OFFER"},
		{"82 with 82", func(p *raw) []byte { return p.option(82, 82, 4, 82, 2, 1, 0).end() }, discover, "OFFER"},
		{"82 with a sub-option over the end", func(p *raw) []byte { return p.option(82, 1, 200, 'a').end() }, discover, "OFFER"},
		{"82 with a link selection of 3 octets", func(p *raw) []byte { return p.option(82, 5, 3, 10, 0, 0).end() }, discover, "OFFER"},
		{"82 with a virtual subnet", func(p *raw) []byte { return p.option(82, 151, 2, 0, 'a').end() }, discover, "unknown-vss"},
		{"82 twice", func(p *raw) []byte { return p.option(82, 1, 1, 'a').option(82, 2, 1, 'b').end() }, discover, "OFFER"},
		{"an empty 82", func(p *raw) []byte { return p.option(82).end() }, discover, "OFFER"},
		{"82 of a client without a relay", func(p *raw) []byte { return direct(p).option(82, 1, 1, 'a').end() }, discover, "OFFER"},
		{"81 with reserved bits", func(p *raw) []byte { return p.option(81, 0xf5, 0, 0, 1, 'a', 0).end() }, discover, "OFFER"},
		{"81 with 255 labels", func(p *raw) []byte { return p.option(81, append([]byte{4, 0, 0}, many(126, 1, 'a')...)...).end() }, discover,
			"OFFER"},
		{"81 with binary octets", func(p *raw) []byte { return p.option(81, 0, 0, 0, 0, 200, 1, 255).end() }, discover, "OFFER"},
		{"81 compressed", func(p *raw) []byte { return p.option(81, 4, 0, 0, 0xc0, 3).end() }, discover, "OFFER"},
		{"81 of 2 octets", func(p *raw) []byte { return p.option(81, 4, 0).end() }, discover, "OFFER"},
		{"12 with NUL", func(p *raw) []byte { return p.option(12, 'a', 0, 'b').end() }, discover, "OFFER"},
		{"12 with dots", func(p *raw) []byte { return p.option(12, many(200, '.')...).end() }, discover, "OFFER"},
		{"12 with a label of 64 octets", func(p *raw) []byte { return p.option(12, many(64, 'a')...).end() }, discover, "OFFER"},
		{"12 with UTF-8", func(p *raw) []byte { return p.option(12, []byte("büro-é\xff")...).end() }, discover, "OFFER"},
		{"an empty 12", func(p *raw) []byte { return p.option(12).end() }, discover, "OFFER"},
		{"118 of 3 octets", func(p *raw) []byte { return p.option(118, 10, 0, 0).end() }, discover, "OFFER"},
		{"a multicast server identifier", func(p *raw) []byte { return p.option(50, 10, 0, 1, 9).option(54, 224, 0, 0, 1).end() }, request,
			"bad-message"},
		{"a server identifier of 5 octets", func(p *raw) []byte { return p.option(50, 10, 0, 1, 9).option(54, 1, 2, 3, 4, 5).end() }, request,
			"bad-message"},
		{"REQUEST without 50 and ciaddr", func(p *raw) []byte { return p.end() }, request, "bad-message"},
		{"REQUEST for the gateway", func(p *raw) []byte { return p.option(50, 10, 0, 0, 1).option(54, 127, 0, 0, 1).end() }, request, "NAK"},
		{"REQUEST for another client's", func(p *raw) []byte { return p.option(50, held[:]...).option(54, 127, 0, 0, 1).end() }, request, "NAK"},
		{"REQUEST for a reserved address", func(p *raw) []byte { return p.option(50, 10, 0, 0, 20).option(54, 127, 0, 0, 1).end() }, request,
			"NAK"},
		{"RELEASE of another client's", func(p *raw) []byte { return p.at(12, held[:]...).option(54, 127, 0, 0, 1).end() }, release,
			"not-holder"},
		{"RELEASE of no address", func(p *raw) []byte { return p.option(54, 127, 0, 0, 1).end() }, release, "not-holder"},
		{"RELEASE, unicast from elsewhere", func(p *raw) []byte { return direct(p).at(12, held[:]...).option(54, 127, 0, 0, 1).end() }, release,
			"not-holder"},
		{"DECLINE of another client's", func(p *raw) []byte { return p.option(50, held[:]...).option(54, 127, 0, 0, 1).end() }, decline,
			"not-holder"},
		{"DECLINE of no address", func(p *raw) []byte { return p.option(54, 127, 0, 0, 1).end() }, decline, "not-holder"},
		{"INFORM without ciaddr", func(p *raw) []byte { return p.end() }, inform, "bad-message"},
		{"60 kB, END in the middle", func(p *raw) []byte { return append(p.end(), make([]byte, 60_000)...) }, discover, tooLong},
		{"60 kB of options", func(p *raw) []byte {
			return p.append(bytes.Repeat(append([]byte{12, 250}, many(250, 'a')...), 240)...).end()
		}, discover, tooLong},
		{"4,097 octets", func(p *raw) []byte { return append(p.end(), make([]byte, 4097-244)...) }, discover, tooLong},
		{"4,096 octets", func(p *raw) []byte { return append(p.end(), make([]byte, 4096-244)...) }, discover, "OFFER"},
	}
	for i, one := range rows {
		conn, err := new(net.Dialer).DialContext(t.Context(), "udp4", address)
		if err != nil {
			t.Fatal(err)
		}
		before := refusals(s, one.want)
		packet := one.make(newRaw(one.kind, i))
		if _, err := conn.Write(packet); err != nil {
			t.Fatal(err)
		}
		got := ""
		waitFor(t, func() bool {
			if refusals(s, one.want) > before {
				got = one.want
				return true
			}
			if reply := readReply(t, conn, time.Now().Add(5*time.Millisecond)); reply != nil {
				checkReply(t, one.name, packet, reply)
				got = messageName(byte(reply.MessageType()))
			}
			return got != ""
		})
		if got != one.want {
			t.Errorf("%s: %s, want %s", one.name, got, one.want)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if m := holder.renew(net.IP(held[:]).String()); m == nil || m.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("a good client after %d bad ones: %v", len(rows), m)
	}
}

// readReply returns the next reply; nil if there is none until a time.
func readReply(t *testing.T, conn net.Conn, until time.Time) *dhcpv4.DHCPv4 {
	t.Helper()
	if err := conn.SetReadDeadline(until); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4000)
	n, err := conn.Read(buffer)
	if err != nil {
		return nil
	}
	m, err := dhcpv4.FromBytes(buffer[:n])
	if err != nil {
		t.Fatalf("%x: %v", buffer[:n], err)
	}
	if n > 1472 {
		t.Errorf("a reply of %d octets", n)
	}
	return m
}

// checkReply checks that the address of a reply is of the range, and that xid, giaddr, chaddr and the relay information are those of the
// request.
func checkReply(t *testing.T, name string, packet []byte, m *dhcpv4.DHCPv4) {
	t.Helper()
	out := m.ToBytes()
	for field, at := range map[string][2]int{"xid": {4, 8}, "giaddr": {24, 28}, "chaddr": {28, 28 + min(int(packet[2]), 6)}} {
		if !bytes.Equal(out[at[0]:at[1]], packet[at[0]:at[1]]) {
			t.Errorf("%s: %s is %x in the reply, %x in the request", name, field, out[at[0]:at[1]], packet[at[0]:at[1]])
		}
	}
	if m.MessageType() != dhcpv4.MessageTypeOffer {
		return
	}
	a, _ := netip.AddrFromSlice(m.YourIPAddr.To4())
	relayed := slices.ContainsFunc(packet[24:28], func(b byte) bool { return b != 0 })
	in := netip.MustParsePrefix("127.0.5.0/24").Contains(a)
	if relayed {
		in = a.Compare(netip.MustParseAddr("10.0.1.0")) > 0 && a.Compare(netip.MustParseAddr("10.0.200.255")) <= 0
	}
	if !in {
		t.Errorf("%s: %s is offered", name, a)
	}
	var want []byte
	for rest := packet[240:]; len(rest) > 1 && rest[0] != 255; {
		if rest[0] == 0 {
			rest = rest[1:]
			continue
		}
		if rest[0] == 82 {
			want = append(want, rest[2:2+int(rest[1])]...)
		}
		rest = rest[2+int(rest[1]):]
	}
	if got := m.Options.Get(dhcpv4.OptionRelayAgentInformation); !bytes.Equal(got, want) && len(want) > 0 {
		t.Errorf("%s: option 82 is %x in the reply, %x in the request", name, got, want)
	}
}

// TestBadAddresses checks that a reply never goes to the server itself, to a group or to a broadcast address.
func TestBadAddresses(t *testing.T) {
	s, _ := start(t, t.TempDir(), units(t, noPing))
	s.primary = &listener{}
	t.Cleanup(func() { s.primary = nil })
	prefixes := []netip.Prefix{netip.MustParsePrefix("10.0.0.2/16")}
	from := netip.MustParseAddrPort("10.0.0.9:67")
	for _, one := range []struct {
		relay, client string
		want          bool
	}{
		{"", "", false}, {"10.0.0.1", "", false}, {"", "10.0.1.1", false}, {"10.0.0.2", "", true}, {"127.0.0.1", "", true},
		{"", "127.0.0.1", true}, {"10.0.255.255", "", true}, {"", "10.0.255.255", true}, {"224.0.0.1", "", true},
		{"255.255.255.255", "", true}, {"", "10.0.0.2", false},
	} {
		f := dhcpdata.Facts{}
		if one.relay != "" {
			f.Relay = netip.MustParseAddr(one.relay)
		}
		if one.client != "" {
			f.Client = netip.MustParseAddr(one.client)
		}
		if got := s.badAddresses(incoming{from: from}, &f, prefixes); got != one.want {
			t.Errorf("relay %q, client %q: %t", one.relay, one.client, got)
		}
	}
}

// TestRates checks that the limits of a client and of a relay refuse further messages of the second, and no other client.
func TestRates(t *testing.T) {
	l := newLimiter()
	now := time.Unix(1000, 0)
	refused := func(client, relay string, arrives bool) string {
		return l.refuses([]byte(client), netip.MustParseAddr(relay), 1, arrives, now)
	}
	for n := range defaultPerClient + 2 {
		want := ""
		if n >= defaultPerClient {
			want = clientRate
		}
		if got := refused("looping", "10.0.0.1", false); got != want {
			t.Fatalf("message %d: %q", n, got)
		}
	}
	if got := refused("other", "10.0.0.1", true); got != "" {
		t.Errorf("another client: %q", got)
	}
	now = now.Add(time.Second)
	if got := refused("looping", "10.0.0.1", false); got != "" {
		t.Errorf("in the next second: %q", got)
	}
	l.set(Rate{PerRelay: 100})
	count := map[string]int{}
	for n := range 1000 {
		count[refused(fmt.Sprint(n), "10.0.0.1", true)]++
		if got := refused(fmt.Sprint("holder", n), "10.0.0.1", false); got != "" {
			t.Errorf("a renewal: %q", got)
		}
	}
	if count[""] != 100 || count[relayRate] != 900 {
		t.Errorf("through the relay: %v", count)
	}
	if got := refused("far", "10.0.0.2", true); got != "" {
		t.Errorf("through another relay: %q", got)
	}
}
