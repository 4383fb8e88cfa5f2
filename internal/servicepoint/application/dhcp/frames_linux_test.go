package dhcp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"
)

// frameKind changes the frame of a DISCOVER: an Ethernet header, and a datagram.
type frameKind struct {
	name   string
	change func(frame []byte) []byte
	served bool
}

// TestFramesOfLink sends each unusual frame on the link of a server: fragments, VLAN tags, other ports, addresses and checksums, and long
// datagrams. Only those that are complete and for the server have a reply.
func TestFramesOfLink(t *testing.T) {
	t.Parallel()
	const ip, udp = 14, 34 // the offsets of the headers
	header := func(change func(f []byte)) func(f []byte) []byte {
		return func(f []byte) []byte {
			change(f)
			binary.BigEndian.PutUint16(f[ip+10:], 0)
			binary.BigEndian.PutUint16(f[ip+10:], ^fold(addChecksum(0, f[ip:udp])))
			return f
		}
	}
	set := func(at int, octets ...byte) func(f []byte) []byte {
		return header(func(f []byte) { copy(f[at:], octets) })
	}
	tag := func(octets ...byte) func(f []byte) []byte {
		return func(f []byte) []byte { return slices.Insert(f, 12, octets...) }
	}
	rows := []frameKind{
		{"complete", set(0), true},
		{"source port 1234", set(udp, 4, 210), true},
		{"source port 0", set(udp, 0, 0), true},
		{"port 66", set(udp+2, 0, 66), false},
		{"first fragment", set(ip+6, 0x20, 0), false},
		{"later fragment", set(ip+6, 0, 20), false},
		{"VLAN 5", tag(0x81, 0, 0, 5), false},
		{"VLAN 5 in VLAN 6", tag(0x81, 0, 0, 6, 0x81, 0, 0, 5), false},
		{"priority tag", tag(0x81, 0, 0xe0, 0), true},
		{"to another machine", set(ip+16, 10, 0, 0, 9), false},
		{"to the network, from no address", set(ip+16, 10, 0, 255, 255), false}, // the kernel drops it
		{"TCP", set(ip+9, 6), false},
		{"header checksum", func(f []byte) []byte { f[ip+10] ^= 1; return f }, false},
		{"checksum of UDP", func(f []byte) []byte { f[udp+6] = 1; return f }, false},
		{"truncated", func(f []byte) []byte { return f[:len(f)-20] }, false},
		{"truncated in the header", func(f []byte) []byte { return f[:ip+10] }, false},
		{"length of UDP beyond the end", set(udp+4, 255, 255), false},
		{"octets after the end", func(f []byte) []byte { return append(f, 1, 2, 3) }, true},
		{"IP options", header(func(f []byte) { f[ip] = 0x4f }), false},
	}
	l := newLab(t)
	l.serve(units(t, noPing))
	var got []uint32
	err := within(l.client, func() error {
		i, err := net.InterfaceByName("c0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(networkOrder(unix.ETH_P_IP)))
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		at := &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_IP), Ifindex: i.Index}
		wait := unix.NsecToTimeval((50 * time.Millisecond).Nanoseconds())
		if err := errors.Join(unix.Bind(fd, at), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)); err != nil {
			return err
		}
		for n, one := range rows {
			if err := unix.Sendto(fd, one.change(discoverFrame(t, byte(n))), 0, at); err != nil {
				return err
			}
		}
		// The server answers in order on the link, so all other replies are before that to the last frame, which is repeated.
		last := byte(len(rows))
		buffer := make([]byte, 2000)
		for end := time.Now().Add(time.Minute); ; {
			if time.Now().After(end) {
				return errors.New("a complete frame has no reply")
			}
			if err := unix.Sendto(fd, discoverFrame(t, last), 0, at); err != nil {
				return err
			}
			for {
				size, _, err := unix.Recvfrom(fd, buffer, 0)
				if err != nil { // none for a while
					break
				}
				_, port, payload, err := datagram(buffer[min(ip, size):size], false)
				if err != nil || port != clientPort {
					continue
				}
				if m, err := dhcpv4.FromBytes(payload); err == nil && m.MessageType() == dhcpv4.MessageTypeOffer {
					got = append(got, binary.BigEndian.Uint32(m.TransactionID[:]))
				}
			}
			if slices.Contains(got, uint32(last)) {
				return nil
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for n, one := range rows {
		if served := slices.Contains(got, uint32(n)); served != one.served {
			t.Errorf("%s: a reply %t, want %t", one.name, served, one.served)
		}
	}
}

// discoverFrame returns a frame with a DISCOVER of the client n, which is also its transaction. It has no checksum of UDP.
func discoverFrame(t *testing.T, n byte) []byte {
	t.Helper()
	mac := net.HardwareAddr{2, 9, 0, 0, 0, n}
	m, err := dhcpv4.New(dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr(mac), dhcpv4.WithBroadcast(true),
		dhcpv4.WithTransactionID(dhcpv4.TransactionID{0, 0, 0, n}))
	if err != nil {
		t.Fatal(err)
	}
	p := buildDatagram(netip.IPv4Unspecified(), broadcast, m.ToBytes())
	binary.BigEndian.PutUint16(p[ipHeader:], clientPort)
	binary.BigEndian.PutUint16(p[ipHeader+2:], serverPort)
	binary.BigEndian.PutUint16(p[ipHeader+6:], 0)
	return slices.Concat([]byte{255, 255, 255, 255, 255, 255}, mac, []byte{8, 0}, p)
}
