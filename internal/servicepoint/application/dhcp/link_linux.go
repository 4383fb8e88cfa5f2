package dhcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// link is a packet socket of an interface. It receives the broadcasts of clients, and sends to clients that have no address yet.
type link struct {
	s       *service
	name    string
	index   int
	fd      int
	started bool
	closed  chan struct{}
	reading sync.WaitGroup
	inbox   *inbox[incoming]

	// sending guards the descriptor against a close while a reply is sent: the system gives its number to the next file.
	sending sync.RWMutex
	ended   bool
}

// flagTruncated marks a received packet that is longer than its buffer.
const flagTruncated = unix.MSG_TRUNC

// receiveWait is the time after which a receiver examines whether the link was closed.
const receiveWait = 200 * time.Millisecond

// openLink opens the packet socket of an interface.
func openLink(i *net.Interface, s *service) (*link, error) {
	// Without a protocol the socket receives nothing before its filter is set.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			return nil, errors.New("the program lacks the permission to open packet sockets (CAP_NET_RAW)")
		}
		return nil, fmt.Errorf("open packet socket: %w", err)
	}
	l := &link{s: s, name: i.Name, index: i.Index, fd: fd, closed: make(chan struct{})}
	if err := l.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open packet socket on %s: %w", i.Name, err), unix.Close(fd))
	}
	return l, nil
}

func (l *link) prepare() error {
	program, err := bpf.Assemble(linkFilter)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(program))
	for i, one := range program {
		filter[i] = unix.SockFilter{Code: one.Op, Jt: one.Jt, Jf: one.Jf, K: one.K}
	}
	if err := unix.SetsockoptSockFprog(l.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		return err
	}
	wait := unix.NsecToTimeval(receiveWait.Nanoseconds())
	if err := unix.SetsockoptTimeval(l.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(l.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
		return err
	}
	growBuffer(l.fd)
	return unix.Bind(l.fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_IP), Ifindex: l.index})
}

// linkFilter accepts UDP broadcasts to port 67, and to port 68 from other servers, in frames to this machine or to all, that are not
// fragments. The kernel removes the VLAN tag of a frame before it delivers the frame to a socket of a protocol, and marks the frame as one
// to another machine.
var linkFilter = []bpf.Instruction{
	bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 13},
	bpf.LoadExtension{Num: bpf.ExtType},
	bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: unix.PACKET_BROADCAST, SkipTrue: 11},
	bpf.LoadAbsolute{Off: 9, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 9},
	bpf.LoadAbsolute{Off: 16, Size: 4},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0xffffffff, SkipTrue: 7},
	bpf.LoadAbsolute{Off: 6, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipTrue: 5},
	bpf.LoadMemShift{Off: 0},
	bpf.LoadIndirect{Off: 2, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: serverPort, SkipTrue: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: clientPort, SkipTrue: 1},
	bpf.RetConstant{Val: 64 << 10},
	bpf.RetConstant{Val: 0},
}

func networkOrder(n uint16) uint16 { return n<<8 | n>>8 }

func (l *link) interfaceName() string { return l.name }

func (l *link) start() {
	l.started = true
	l.inbox = newInbox(l.s.receive, l.s.overloaded, &l.s.engine.outbox)
	l.reading.Go(l.read)
}

func (l *link) close() {
	close(l.closed)
	l.reading.Wait()
	if l.inbox != nil { // it was started
		l.inbox.close()
	}
	l.sending.Lock()
	defer l.sending.Unlock()
	l.ended = true
	_ = unix.Close(l.fd) // nothing is buffered
}

func (l *link) read() {
	buffer, control := make([]byte, maxMessage), make([]byte, 256)
	receiver := l.s.newReceiver(l.name)
	for {
		select {
		case <-l.closed:
			return
		default:
		}
		n, controls, flags, sender, err := unix.Recvmsg(l.fd, buffer, control, 0)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			continue
		case err != nil: // the interface is down or gone; the service examines it
			receiver.Failed(err)
			continue
		}
		receiver.Received()
		if flags&flagTruncated != 0 {
			l.s.engine.counters.refuse(0, tooLong)
			continue
		}
		from, port, payload, err := datagram(buffer[:n], hasChecksum(control[:controls]))
		if err != nil {
			l.s.engine.counters.receive("MALFORMED")
			l.s.engine.counters.refuse(0, err.Error())
			continue
		}
		if port == clientPort {
			var mac []byte
			if at, known := sender.(*unix.SockaddrLinklayer); known {
				mac = at.Addr[:min(int(at.Halen), len(at.Addr))]
			}
			l.s.observeReply(from.Addr(), mac, payload, l.index)
			continue
		}
		l.inbox.put(incoming{packet: slices.Clone(payload), from: from, to: broadcast, index: l.index, link: l}, isNewClient(payload))
	}
}

// hasChecksum reports whether the checksum of UDP of a received packet is complete. A sender on the same machine leaves it to the hardware.
func hasChecksum(controls []byte) bool {
	all, err := unix.ParseSocketControlMessage(controls)
	if err != nil {
		return true
	}
	for _, one := range all {
		if one.Header.Level == unix.SOL_PACKET && one.Header.Type == unix.PACKET_AUXDATA && len(one.Data) >= 4 {
			return binary.NativeEndian.Uint32(one.Data)&unix.TP_STATUS_CSUMNOTREADY == 0
		}
	}
	return true
}

// Sizes of the headers of IPv4 and UDP.
const (
	ipHeader  = 20
	udpHeader = 8
)

// Errors of datagram. Each one is a reason for a message without a reply.
var (
	errDatagram = errors.New("bad-datagram")
	errChecksum = errors.New("checksum")
)

// datagram returns the source, the port of the destination and the payload of a UDP datagram with its IPv4 header. It checks all lengths,
// the checksum of the header and, if the packet has a complete one, that of UDP.
func datagram(packet []byte, complete bool) (from netip.AddrPort, port uint16, payload []byte, err error) {
	if len(packet) < ipHeader || packet[0]>>4 != 4 {
		return from, 0, nil, errDatagram
	}
	header, total := int(packet[0]&15)*4, int(binary.BigEndian.Uint16(packet[2:]))
	if header < ipHeader || total < header+udpHeader || total > len(packet) {
		return from, 0, nil, errDatagram
	}
	udp := packet[header:total]
	length := int(binary.BigEndian.Uint16(udp[4:]))
	if length < udpHeader || length > len(udp) {
		return from, 0, nil, errDatagram
	}
	udp = udp[:length]
	if fold(addChecksum(0, packet[:header])) != 0xffff {
		return from, 0, nil, errChecksum
	}
	if sent := binary.BigEndian.Uint16(udp[6:]); complete && sent != 0 && fold(pseudo(packet[12:ipHeader], udp)) != 0xffff {
		return from, 0, nil, errChecksum
	}
	from = netip.AddrPortFrom(netip.AddrFrom4([4]byte(packet[12:])), binary.BigEndian.Uint16(udp))
	return from, binary.BigEndian.Uint16(udp[2:]), udp[udpHeader:], nil
}

// pseudo adds the words of a UDP datagram and of its pseudo header (RFC 768). addresses are the source and the destination.
func pseudo(addresses, udp []byte) uint32 {
	return addChecksum(addChecksum(unix.IPPROTO_UDP+uint32(len(udp)), addresses), udp)
}

// send sends a packet to the hardware address of a client, or to all stations of the link.
func (l *link) send(to netip.Addr, hardware []byte, from netip.Addr, payload []byte) error {
	if !from.Is4() {
		return syscall.EADDRNOTAVAIL
	}
	destination := unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_IP), Ifindex: l.index, Halen: 6}
	copy(destination.Addr[:], hardware)
	if len(hardware) != 6 {
		copy(destination.Addr[:], []byte{255, 255, 255, 255, 255, 255})
	}
	packet := buildDatagram(from, to, payload)
	l.sending.RLock()
	defer l.sending.RUnlock()
	if l.ended {
		return net.ErrClosed
	}
	return unix.Sendto(l.fd, packet, 0, &destination)
}

// buildDatagram returns a UDP datagram from port 67 to port 68 with its IPv4 header.
func buildDatagram(from, to netip.Addr, payload []byte) []byte {
	total := ipHeader + udpHeader + len(payload)
	p := make([]byte, ipHeader+udpHeader, total)
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(p[2:], uint16(total))
	copy(p[12:], from.AsSlice())
	copy(p[16:], to.AsSlice())
	binary.BigEndian.PutUint16(p[10:], ^fold(addChecksum(0, p[:ipHeader])))
	udp := p[ipHeader:]
	binary.BigEndian.PutUint16(udp, serverPort)
	binary.BigEndian.PutUint16(udp[2:], clientPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(udpHeader+len(payload)))
	p = append(p, payload...)
	checksum := ^fold(pseudo(p[12:ipHeader], p[ipHeader:]))
	if checksum == 0 {
		checksum = 0xffff
	}
	binary.BigEndian.PutUint16(udp[6:], checksum)
	return p
}

// addChecksum adds 16-bit words for the checksum of the Internet protocols (RFC 1071).
func addChecksum(start uint32, octets []byte) uint32 {
	for ; len(octets) >= 2; octets = octets[2:] {
		start += uint32(binary.BigEndian.Uint16(octets))
	}
	if len(octets) == 1 {
		start += uint32(octets[0]) << 8
	}
	return start
}

func fold(n uint32) uint16 {
	for n > 0xffff {
		n = n>>16 + n&0xffff
	}
	return uint16(n)
}

// setReceiveBuffer enlarges the receive buffer of a socket.
func setReceiveBuffer(conn *net.UDPConn) {
	c, err := conn.SyscallConn()
	if err == nil {
		_ = c.Control(func(fd uintptr) { growBuffer(int(fd)) }) // the buffer stays as it is
	}
}

// growBuffer enlarges the receive buffer of a socket, beyond net.core.rmem_max if the process may.
func growBuffer(fd int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer) // the system limits it
	}
}

// allowBroadcast allows a socket to send broadcasts.
func allowBroadcast(c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1) }); e != nil {
		return e
	}
	return err
}
