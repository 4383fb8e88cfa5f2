package dhcp

import (
	"net"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// TestControlMessages checks the packets that a listener does not read: those without a complete control message, and truncated ones. A
// packet never gets the destination of an earlier one.
func TestControlMessages(t *testing.T) {
	request, err := dhcpv4.New(dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr(net.HardwareAddr{2, 0, 0, 0, 0, 1}))
	if err != nil {
		t.Fatal(err)
	}
	solicit, err := dhcpv6.NewSolicit(net.HardwareAddr{2, 0, 0, 0, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	// The control messages that the kernel writes: in_pktinfo and in6_pktinfo.
	control4 := controlMessage(unix.IPPROTO_IP, unix.IP_PKTINFO, []byte{7, 0, 0, 0, 10, 0, 0, 2, 10, 0, 0, 3})
	control6 := controlMessage(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, append(allServers6.AsSlice(), 7, 0, 0, 0))
	from := &net.UDPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 68}
	l := new(listener)
	for _, v6 := range []bool{false, true} {
		packet, control := request.ToBytes(), control4
		if v6 {
			packet, control = solicit.ToBytes(), control6
		}
		other := controlMessage(unix.SOL_SOCKET, unix.SO_TIMESTAMP, make([]byte, 16))
		for name, one := range map[string]struct {
			control []byte
			flags   int
			from    net.Addr
			want    string
		}{
			"complete":                       {control, 0, from, ""},
			"after another one":              {slices.Concat(other, control), 0, from, ""},
			"none":                           {nil, 0, from, noDestination},
			"of another kind":                {other, 0, from, noDestination},
			"truncated in the header":        {control[:10], 0, from, noDestination},
			"truncated in the data":          {control[:20], unix.MSG_CTRUNC, from, noDestination},
			"without data":                   {controlMessage(int(control[8]), int(control[12]), nil), 0, from, noDestination},
			"length of the header is 0":      {make([]byte, 16), 0, from, noDestination},
			"length is beyond the end":       {append([]byte{255, 255, 255, 255, 255, 255, 255, 127}, control[8:]...), 0, from, noDestination},
			"no source":                      {control, 0, nil, noDestination},
			"truncated packet":               {control, unix.MSG_TRUNC, from, tooLong},
			"truncated packet and no source": {nil, unix.MSG_TRUNC, nil, tooLong},
		} {
			m := ipv4.Message{Buffers: [][]byte{packet}, N: len(packet), OOB: one.control, NN: len(one.control), Flags: one.flags, Addr: one.from}
			var to, want, reason string
			var index int
			if v6 {
				old := ipv6.ControlMessage{IfIndex: 3, Dst: net.ParseIP("2001:db8::1")} // that of an earlier packet
				in, r := incomingOf6(&m, &old)
				to, index, reason, want = in.to.String(), in.index, r, allServers6.String()
			} else {
				old := ipv4.ControlMessage{IfIndex: 3, Dst: net.IPv4(10, 9, 9, 9)}
				in, r := l.incomingOf(&m, &old)
				to, index, reason, want = in.to.String(), in.index, r, "10.0.0.3"
			}
			if reason != one.want {
				t.Errorf("DHCPv6 %t, %s: the reason is %q, want %q", v6, name, reason, one.want)
			}
			if reason == "" && (to != want || index != 7) {
				t.Errorf("DHCPv6 %t, %s: the packet is for %s at interface %d", v6, name, to, index)
			}
		}
	}
}

// controlMessage returns a control message with data, as recvmsg(2) does.
func controlMessage(level, kind int, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	b[0], b[8], b[12] = byte(unix.CmsgLen(len(data))), byte(level), byte(kind)
	copy(b[unix.CmsgLen(0):], data)
	return b
}

// TestPacketsWithoutDestination checks that packets of a real socket without control messages, and one that is too long, are counted and
// get no reply, and that the next packet with a control message is served.
func TestPacketsWithoutDestination(t *testing.T) {
	s, at := start6(t, t.TempDir(), units6(t))
	s.mu.Lock()
	var four *listener
	for _, l := range s.listeners {
		four = l
	}
	six := s.listeners6[at.String()]
	s.mu.Unlock()
	set := func(on bool) {
		t.Helper()
		if err := four.packets.SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, on); err != nil {
			t.Fatal(err)
		}
		if err := six.packets.SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, on); err != nil {
			t.Fatal(err)
		}
	}
	c4, c6 := dial(t, four.address.String(), 1), dial6(t, at, 1)
	set(false)
	for i, c := range []net.Conn{c4.conn, c6.conn} {
		if _, err := c.Write([]byte("message")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return refusals(s, noDestination) == int64(i+1) })
	}
	set(true)
	if _, err := c4.conn.Write(make([]byte, maxMessage+1)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return refusals(s, tooLong) == 1 })
	if a := c4.lease(); a != "10.0.1.0" {
		t.Error(a)
	}
	if m := c6.ask(dhcpv6.MessageTypeSolicit, dhcpv6.WithIAID([4]byte{1})); m == nil {
		t.Error("DHCPv6 does not answer")
	}
}
