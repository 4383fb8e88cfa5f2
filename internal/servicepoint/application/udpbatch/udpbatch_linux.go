package udpbatch

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// controlSize is the size of the control message with the address of this machine in bytes; IPv6 needs the most.
const controlSize = 40

// Origin identifies where a packet came from: the client, and the address of this machine that it was sent to, if the socket is not bound
// to one. An answer to an Origin leaves from that address.
type Origin struct {
	Client netip.AddrPort
	// name is the client in the form of the kernel, and control the control message of an answer.
	name     unix.RawSockaddrInet6
	nameSize uint32
	control  [controlSize]byte
	// controlSize is the size of the control message in bytes; 0 if there is none.
	controlSize int
}

// Conn reads and writes batches of packets of a socket. It is not safe for concurrent use, except for Write.
//
// All calls are non-blocking and bypass the scheduler: a call that it knows of wakes its monitor thread, which costs as much as an answer.
// A socket without packets waits in the poller, and keeps neither a thread nor a processor.
type Conn struct {
	raw syscall.RawConn
	// wildcard reports that the socket is bound to no address, so each answer must name its source.
	wildcard bool
	// in are the received packets, out the answers. sent is the number of answers that have been sent.
	in, out               [Size]packet
	answered, sent        int
	inVectors, outVectors [Size]unix.Iovec
	from                  [Size]unix.RawSockaddrInet6 // an IPv4 address uses the start of the structure
	buffers               [Size][MaxQuery]byte
	answers               [Size][MaxAnswer]byte
	controls              [Size][controlSize]byte
	send                  func(fd uintptr) bool
}

// packet is the structure mmsghdr of recvmmsg(2).
type packet struct {
	header unix.Msghdr
	length uint32
}

// New returns a Conn for a socket.
func New(c *net.UDPConn) (*Conn, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := &Conn{raw: raw}
	if at, is := c.LocalAddr().(*net.UDPAddr); is && at.IP.IsUnspecified() {
		p.wildcard = true
		if err := nameDestination(raw); err != nil {
			return nil, err
		}
	}
	for i := range Size {
		p.inVectors[i].Base = &p.buffers[i][0]
		p.inVectors[i].SetLen(MaxQuery)
		p.in[i].header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&p.from[i])), Iov: &p.inVectors[i]} //nolint:gosec // written by recvmmsg(2)
		p.in[i].header.SetIovlen(1)
		p.out[i].header.Iov = &p.outVectors[i]
		p.out[i].header.SetIovlen(1)
	}
	p.send = p.sendNow
	return p, raw.Control(enlargeBuffers)
}

// bufferSize is the size of the buffers of a socket in bytes. Packets wait there while others are answered.
const bufferSize = 1 << 20

// enlargeBuffers enlarges the buffers of a socket to bufferSize, or to the limit of the system for a process without CAP_NET_ADMIN. A
// failure is ignored, because a smaller buffer only loses packets sooner.
func enlargeBuffers(fd uintptr) {
	for _, option := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option[0], bufferSize) != nil { //nolint:gosec // a file descriptor
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option[1], bufferSize) //nolint:gosec // see above
		}
	}
}

// nameDestination makes the kernel add the destination address to each received packet. An IPv6 socket also names that of IPv4 packets.
func nameDestination(raw syscall.RawConn) error {
	var err error
	if e := raw.Control(func(fd uintptr) {
		if err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1); err != nil { //nolint:gosec // a file descriptor
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1) //nolint:gosec // a file descriptor
		}
	}); e != nil {
		return e
	}
	return err
}

// Serve calls answer with the number of packets of each batch, and sends the answers, until the socket is closed. The packets are valid
// until answer returns. Serve calls failed after each failure of the socket; it may wait.
//
// The callback of RawConn.Read answers a batch before it returns. A batch that is not full has emptied the socket, and the poller reports
// each packet that arrives after RawConn.Read began, so the callback can wait for more without another call. After a full batch it returns,
// so that a closed socket is noticed under any load.
func (p *Conn) Serve(answer func(n int), failed func(error)) (err error) {
	var failure error
	receive := func(fd uintptr) (done bool) {
		for i := range p.in {
			p.in[i].header.Namelen = unix.SizeofSockaddrInet6
			if p.wildcard {
				p.in[i].header.Control = &p.controls[i][0]
				p.in[i].header.SetControllen(controlSize)
			}
		}
		n, errno := transmit(unix.SYS_RECVMMSG, fd, p.in[:])
		if errno == unix.EAGAIN {
			return false
		}
		if errno != 0 { // for example an ICMP error for an earlier answer, which is reported once
			failure = errno
			return true
		}
		p.answered = 0
		answer(n)
		p.flush(fd)
		return n == Size
	}
	for err == nil {
		failure = nil
		if err = p.raw.Read(receive); err == nil && failure != nil {
			failed(failure)
		}
	}
	return err
}

// transmit calls recvmmsg(2) or sendmmsg(2) without waiting and returns the number of packets.
func transmit(call, fd uintptr, of []packet) (int, syscall.Errno) {
	for {
		//nolint:gosec // the system has no other way in
		n, _, errno := unix.RawSyscall6(call, fd, uintptr(unsafe.Pointer(&of[0])), uintptr(len(of)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n), 0
		case unix.EINTR:
			continue
		}
		return 0, errno
	}
}

// flush sends the answers. It waits in the poller while the send buffer is full.
func (p *Conn) flush(fd uintptr) {
	if p.sent = 0; p.sendNow(fd) {
		return
	}
	_ = p.raw.Write(p.send) // fails if the socket is closed, which ends Serve
}

// sendNow sends the remaining answers. It returns false if the send buffer is full.
func (p *Conn) sendNow(fd uintptr) bool {
	for p.sent < p.answered {
		n, errno := transmit(unix.SYS_SENDMMSG, fd, p.out[p.sent:p.answered])
		if errno == unix.EAGAIN {
			return false
		}
		p.sent += max(n, 1) // skip an answer that cannot be sent; the client repeats its query
	}
	return true
}

// Message returns a received packet.
func (p *Conn) Message(i int) []byte { return p.buffers[i][:p.in[i].length] }

// Client returns the sender of a received packet.
func (p *Conn) Client(i int) netip.AddrPort {
	at := &p.from[i]
	var two [2]byte
	binary.NativeEndian.PutUint16(two[:], at.Port) // the field is in network byte order
	port := binary.BigEndian.Uint16(two[:])
	if at.Family == unix.AF_INET {
		var four [4]byte // an IPv4 address is in the place of Flowinfo
		binary.NativeEndian.PutUint32(four[:], at.Flowinfo)
		return netip.AddrPortFrom(netip.AddrFrom4(four), port)
	}
	address := netip.AddrFrom16(at.Addr)
	if at.Scope_id != 0 {
		address = address.WithZone(strconv.FormatUint(uint64(at.Scope_id), 10))
	}
	return netip.AddrPortFrom(address, port)
}

// Origin returns the origin of a received packet, for an answer after the batch.
func (p *Conn) Origin(i int) Origin {
	o := Origin{Client: p.Client(i), name: p.from[i], nameSize: p.in[i].header.Namelen}
	if p.wildcard {
		p.anyInterface(i)
		o.control, o.controlSize = p.controls[i], int(p.in[i].header.Controllen) //nolint:gosec,unconvert // at most controlSize
	}
	return o
}

// Buffer returns the buffer for the answer to a packet.
func (p *Conn) Buffer(i int) []byte { return p.answers[i][:0] }

// Reply adds the answer to a packet to the next Flush.
func (p *Conn) Reply(i int, answer []byte) {
	out := &p.out[p.answered]
	out.header.Name, out.header.Namelen = p.in[i].header.Name, p.in[i].header.Namelen
	if p.wildcard { // the control message of the packet, without the interface, is that of the answer
		p.anyInterface(i)
		out.header.Control, out.header.Controllen = p.in[i].header.Control, p.in[i].header.Controllen
	}
	p.outVectors[p.answered].Base = &answer[0]
	p.outVectors[p.answered].SetLen(len(answer))
	p.answered++
}

// anyInterface removes the interface from the control message of a packet, so that the routing table selects the one of the answer.
func (p *Conn) anyInterface(i int) {
	if p.in[i].header.Controllen < unix.SizeofCmsghdr {
		return
	}
	head := (*unix.Cmsghdr)(unsafe.Pointer(&p.controls[i][0])) //nolint:gosec // written by recvmmsg(2)
	data := p.controls[i][unix.CmsgLen(0):]
	if head.Level == unix.IPPROTO_IP {
		clear(data[:4]) // ipi_ifindex
		return
	}
	to := [16]byte(data)
	if netip.AddrFrom16(to).IsLinkLocalUnicast() { // such an address exists once on each interface
		return
	}
	clear(data[16:20]) // ipi6_ifindex
}

// late is an answer after its batch.
type late struct {
	one   [1]packet
	iov   unix.Iovec
	to    Origin
	errno syscall.Errno
	send  func(fd uintptr) bool
}

// lates are structures to use again.
var lates = sync.Pool{New: func() any {
	l := &late{}
	l.one[0].header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&l.to.name)), Iov: &l.iov} //nolint:gosec // read by sendmmsg(2)
	l.one[0].header.SetIovlen(1)
	l.send = func(fd uintptr) bool {
		_, l.errno = transmit(unix.SYS_SENDMMSG, fd, l.one[:])
		return l.errno != unix.EAGAIN
	}
	return l
}}

// Write sends an answer after its batch. It is safe for concurrent use.
func (p *Conn) Write(to Origin, answer []byte) error {
	l := lates.Get().(*late) //nolint:forcetypeassert // the pool contains no other type
	defer lates.Put(l)
	l.to = to
	header := &l.one[0].header
	header.Namelen = to.nameSize
	if header.Control = nil; to.controlSize > 0 {
		header.Control = &l.to.control[0]
	}
	header.SetControllen(to.controlSize)
	l.iov.Base = &answer[0]
	l.iov.SetLen(len(answer))
	err := p.raw.Write(l.send)
	if l.iov.Base = nil; err == nil && l.errno != 0 {
		err = l.errno
	}
	return err
}
