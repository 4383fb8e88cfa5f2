package nameserver

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// packets reads and writes batches of packets of a socket without allocations. It is not safe for concurrent use.
type packets struct {
	raw syscall.RawConn
	// in are the received packets, out the answers. sent is the number of answers that have been sent.
	in, out              [batch]packet
	read, answered, sent int
	err                  error
	ins, outs            [batch]unix.Iovec
	from                 [batch]unix.RawSockaddrInet6 // an IPv4 address uses the start of the structure
	buffers              [batch][maxQuery]byte
	answers              [batch][maxUDP + 512]byte
	receive, send        func(fd uintptr) bool
}

// packet is the structure mmsghdr of recvmmsg(2).
type packet struct {
	header unix.Msghdr
	length uint32
}

func newPackets(c *net.UDPConn) (*packets, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := &packets{raw: raw}
	for i := range batch {
		p.ins[i].Base = &p.buffers[i][0]
		p.ins[i].SetLen(maxQuery)
		p.in[i].header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&p.from[i])), Iov: &p.ins[i]} //nolint:gosec // written by recvmmsg(2)
		p.in[i].header.SetIovlen(1)
		p.out[i].header.Iov = &p.outs[i]
		p.out[i].header.SetIovlen(1)
	}
	p.receive, p.send = p.receiveNow, p.sendNow
	return p, nil
}

// receiveNow reads packets. It returns false if none are available.
func (p *packets) receiveNow(fd uintptr) bool {
	for i := range p.in {
		p.in[i].header.Namelen = unix.SizeofSockaddrInet6
	}
	n, err := transmit(unix.SYS_RECVMMSG, fd, p.in[:])
	p.read, p.err = n, err
	return err != unix.EAGAIN //nolint:errorlint // an errno
}

// sendNow sends the remaining answers. It returns false if the send buffer is full.
func (p *packets) sendNow(fd uintptr) bool {
	n, err := transmit(unix.SYS_SENDMMSG, fd, p.out[p.sent:p.answered])
	if err == unix.EAGAIN { //nolint:errorlint // an errno
		return false
	}
	p.sent += max(n, 1) // skip an answer that cannot be sent; the client repeats its query
	return true
}

// transmit calls recvmmsg(2) or sendmmsg(2) and returns the number of packets.
func transmit(call, fd uintptr, of []packet) (int, error) {
	for {
		//nolint:gosec // the system has no other way in
		n, _, errno := unix.Syscall6(call, fd, uintptr(unsafe.Pointer(&of[0])), uintptr(len(of)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return 0, errno
	}
}

// wait waits for packets and returns their number, at least one.
func (p *packets) wait() (int, error) {
	p.answered = 0
	if err := p.raw.Read(p.receive); err != nil {
		return 0, err
	}
	return p.read, p.err
}

// message returns a received packet.
func (p *packets) message(i int) []byte { return p.buffers[i][:p.in[i].length] }

// client returns the sender of a received packet.
func (p *packets) client(i int) netip.AddrPort {
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

// buffer returns the buffer for the answer to a packet.
func (p *packets) buffer(i int) []byte { return p.answers[i][:0] }

// reply adds an answer to the next flush.
func (p *packets) reply(i int, answer []byte) {
	out := &p.out[p.answered]
	out.header.Name, out.header.Namelen = p.in[i].header.Name, p.in[i].header.Namelen
	p.outs[p.answered].Base = &answer[0]
	p.outs[p.answered].SetLen(len(answer))
	p.answered++
}

// flush sends the answers.
func (p *packets) flush() {
	for p.sent = 0; p.sent < p.answered; {
		if err := p.raw.Write(p.send); err != nil {
			return // the socket is closed
		}
	}
}
