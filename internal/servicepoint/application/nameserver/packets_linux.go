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

// packets reads and answers many packets of a socket at a time, without memory of its own for each. It is used by one at a time.
type packets struct {
	raw syscall.RawConn
	// in are those that are read, out the answers to them; sent is how many of those have gone.
	in, out              [batch]packet
	read, answered, sent int
	err                  error
	ins, outs            [batch]unix.Iovec
	from                 [batch]unix.RawSockaddrInet6 // of which the one of IPv4 takes the beginning
	buffers              [batch][longestQuery]byte
	answers              [batch][mostUDP + 512]byte
	receive, send        func(fd uintptr) bool
}

// packet is what the system has of one (mmsghdr of recvmmsg(2)).
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
		p.ins[i].SetLen(longestQuery)
		p.in[i].header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&p.from[i])), Iov: &p.ins[i]} //nolint:gosec // what recvmmsg(2) writes
		p.in[i].header.SetIovlen(1)
		p.out[i].header.Iov = &p.outs[i]
		p.out[i].header.SetIovlen(1)
	}
	p.receive, p.send = p.receiveNow, p.sendNow
	return p, nil
}

// receiveNow reads what is there; false says that nothing is.
func (p *packets) receiveNow(fd uintptr) bool {
	for i := range p.in {
		p.in[i].header.Namelen = unix.SizeofSockaddrInet6
	}
	n, err := transmit(unix.SYS_RECVMMSG, fd, p.in[:])
	p.read, p.err = n, err
	return err != unix.EAGAIN //nolint:errorlint // an errno
}

// sendNow sends the answers that have not gone; false says that there is no room for them.
func (p *packets) sendNow(fd uintptr) bool {
	n, err := transmit(unix.SYS_SENDMMSG, fd, p.out[p.sent:p.answered])
	if err == unix.EAGAIN { //nolint:errorlint // an errno
		return false
	}
	p.sent += max(n, 1) // who has asked for one that cannot be sent asks again
	return true
}

// transmit reads or sends packets, by recvmmsg(2) or sendmmsg(2), and says how many.
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

// wait reads packets, and says how many, at least one.
func (p *packets) wait() (int, error) {
	p.answered = 0
	if err := p.raw.Read(p.receive); err != nil {
		return 0, err
	}
	return p.read, p.err
}

// message gives a packet that was read.
func (p *packets) message(i int) []byte { return p.buffers[i][:p.in[i].length] }

// client is where a packet that was read has come from.
func (p *packets) client(i int) netip.AddrPort {
	at := &p.from[i]
	var two [2]byte
	binary.NativeEndian.PutUint16(two[:], at.Port) // it is in the order of networks
	port := binary.BigEndian.Uint16(two[:])
	if at.Family == unix.AF_INET {
		var four [4]byte // what stands where the flow is otherwise
		binary.NativeEndian.PutUint32(four[:], at.Flowinfo)
		return netip.AddrPortFrom(netip.AddrFrom4(four), port)
	}
	address := netip.AddrFrom16(at.Addr)
	if at.Scope_id != 0 {
		address = address.WithZone(strconv.FormatUint(uint64(at.Scope_id), 10))
	}
	return netip.AddrPortFrom(address, port)
}

// buffer is for the answer to a packet that was read.
func (p *packets) buffer(i int) []byte { return p.answers[i][:0] }

// reply has an answer to a packet sent by the next flush.
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
			return // it is closed
		}
	}
}
