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
//
// All calls are non-blocking and bypass the scheduler: syscall.Syscall wakes its monitor thread, which then polls every 20 us and costs as
// much as the answer to a question. A socket without packets waits in the poller and keeps neither a thread nor a processor.
type packets struct {
	raw syscall.RawConn
	// in are the received packets, out the answers. sent is the number of answers that have been sent.
	in, out        [batch]packet
	answered, sent int
	ins, outs      [batch]unix.Iovec
	from           [batch]unix.RawSockaddrInet6 // an IPv4 address uses the start of the structure
	buffers        [batch][maxQuery]byte
	answers        [batch][maxUDP + 512]byte
	send           func(fd uintptr) bool
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
	p.send = p.sendNow
	return p, raw.Control(enlargeBuffers)
}

// bufferSize is the size of the buffers of a socket in bytes. Queries wait there while other sockets are served.
const bufferSize = 1 << 20

// enlargeBuffers enlarges the buffers of a socket to bufferSize, or to the limit of the system for a process without CAP_NET_ADMIN. A
// failure is no error, because a smaller buffer only loses packets sooner.
func enlargeBuffers(fd uintptr) {
	for _, option := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option[0], bufferSize) != nil { //nolint:gosec // a file descriptor
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option[1], bufferSize) //nolint:gosec // see above
		}
	}
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

// serve calls answer with the number of packets of each batch, and sends the answers, until the socket is closed.
//
// The callback of RawConn.Read answers a batch before it returns. A batch that is not full has emptied the socket, and the poller reports
// each packet that arrives after RawConn.Read began, so the callback can wait for more without another call. After a full batch it returns,
// so that a closed socket is noticed under any load.
func (p *packets) serve(answer func(n int)) (err error) {
	receive := func(fd uintptr) (done bool) {
		for i := range p.in {
			p.in[i].header.Namelen = unix.SizeofSockaddrInet6
		}
		n, errno := transmit(unix.SYS_RECVMMSG, fd, p.in[:])
		if errno != 0 { // beside EAGAIN for example an ICMP error for an earlier answer, which is reported once
			return errno != unix.EAGAIN
		}
		p.answered = 0
		answer(n)
		p.flush(fd)
		return n == batch
	}
	for err == nil {
		err = p.raw.Read(receive)
	}
	return err
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

// flush sends the answers. It waits in the poller while the send buffer is full.
func (p *packets) flush(fd uintptr) {
	if p.sent = 0; p.sendNow(fd) {
		return
	}
	_ = p.raw.Write(p.send) // fails if the socket is closed, which ends serve
}

// sendNow sends the remaining answers. It returns false if the send buffer is full.
func (p *packets) sendNow(fd uintptr) bool {
	for p.sent < p.answered {
		n, errno := transmit(unix.SYS_SENDMMSG, fd, p.out[p.sent:p.answered])
		if errno == unix.EAGAIN {
			return false
		}
		p.sent += max(n, 1) // skip an answer that cannot be sent; the client repeats its query
	}
	return true
}
