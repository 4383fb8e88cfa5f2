package resolver

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canAsk reports whether newAsker works on this system.
const canAsk = true

// asker sends queries to upstreams over UDP. Each query leaves from a random port of its own (RFC 5452 section 9.2): a socket that is used
// again loses its port in between, and the kernel selects the next one. The sockets are in one epoll set, so that the runtime watches only
// that, and a query needs few system calls.
type asker struct {
	set   *os.File
	fd    int
	ended sync.WaitGroup

	mu sync.Mutex
	// The following fields are guarded by mu. sockets are all sockets by number, and next is the number of the next one. idle are the unused
	// sockets for IPv4 and IPv6. closed reports that the asker is closed.
	sockets map[int32]*upstreamSocket
	next    int32
	idle    [2][]*upstreamSocket
	closed  bool
}

// maxIdleSockets is the maximum number of unused sockets of each kind.
const maxIdleSockets = 512

// upstreamSocket is a socket for one query at a time.
type upstreamSocket struct {
	number int32
	family int
	timer  *time.Timer
	// done has a token when the answer or an error is there.
	done chan struct{}

	mu sync.Mutex
	// The following fields are guarded by mu. fd is -1 once the socket is closed. query is the open query; nil if there is none. answer is
	// its answer, and err why there is none.
	fd     int
	query  []byte
	answer []byte
	err    error
}

// maxReply is the maximum size of an answer over UDP that is read. A larger one is read over TCP.
const maxReply = 4096

// Errors of an asker.
var (
	errNoAnswer    = errors.New("the upstream does not answer")
	errAskerClosed = errors.New("the configuration has been replaced")
)

// newAsker starts an asker.
func newAsker() (*asker, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // makes the runtime watch it
		return nil, errors.Join(err, unix.Close(fd))
	}
	a := &asker{fd: fd, set: os.NewFile(uintptr(fd), "upstreams"), sockets: map[int32]*upstreamSocket{}} //nolint:gosec // a file descriptor
	raw, err := a.set.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, a.set.Close())
	}
	a.ended.Go(func() { a.poll(raw) })
	return a, nil
}

// close stops the asker. Open queries get no answer.
func (a *asker) close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	all := a.sockets
	a.sockets = nil
	a.mu.Unlock()
	for _, s := range all {
		s.close(errAskerClosed)
	}
	err := a.set.Close()
	a.ended.Wait()
	return err
}

// poll receives answers until the asker is closed. It waits in the callback: see udpbatch.
func (a *asker) poll(raw syscall.RawConn) {
	var events [64]unix.EpollEvent
	var buffer [maxReply]byte
	receive := func(fd uintptr) (done bool) {
		//nolint:gosec // never waits
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
		if errno != 0 {
			return errno == unix.EINTR
		}
		for _, e := range events[:n] {
			a.mu.Lock()
			s := a.sockets[e.Fd]
			a.mu.Unlock()
			if s != nil {
				s.receive(buffer[:])
			}
		}
		return n == uintptr(len(events))
	}
	for raw.Read(receive) == nil { // until it is closed
	}
}

// receive reads packets until one is the answer to the open query, or until there are no others.
func (s *upstreamSocket) receive(buffer []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.fd >= 0 {
		//nolint:gosec // never waits
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)),
			unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
		switch {
		case errno == unix.EAGAIN:
			return
		case s.query == nil || errno == unix.EINTR:
			continue
		case errno != 0:
			s.err = os.NewSyscallError("recvfrom", errno)
		case n > uintptr(len(buffer)):
			s.err = errTooLarge
		case n < headerSize || buffer[0] != s.query[0] || buffer[1] != s.query[1] || buffer[2]&0x80 == 0:
			continue
		default:
			s.answer = append(s.answer[:0], buffer[:n]...)
		}
		s.query = nil
		s.done <- struct{}{}
		return
	}
}

// close closes the socket. An open query fails with err.
func (s *upstreamSocket) close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return
	}
	_ = unix.Close(s.fd) // removes it from the set
	s.fd = -1
	if s.query != nil {
		s.query, s.err = nil, err
		s.done <- struct{}{}
	}
}

// ask sends a query with an id of its own. It calls fn with the answer.
func (a *asker) ask(to netip.AddrPort, query []byte, timeout time.Duration, fn func(answer []byte) error) error {
	binary.BigEndian.PutUint16(query, uint16(rand.Uint32())) //nolint:gosec // ChaCha8 with a random seed
	s, err := a.socket(to)
	if err != nil {
		return err
	}
	if err := s.send(to, query); err != nil {
		a.remove(s, err)
		return err
	}
	s.timer.Reset(timeout)
	select {
	case <-s.done:
		s.timer.Stop()
	case <-s.timer.C:
		a.remove(s, errNoAnswer)
		<-s.done // of this error, or of an answer in the last moment
	}
	if s.err != nil {
		a.remove(s, s.err)
		return s.err
	}
	err = fn(s.answer)
	a.release(s)
	return err
}

// socket returns an unused socket for an address.
func (a *asker) socket(to netip.AddrPort) (*upstreamSocket, error) {
	kind, family := 0, unix.AF_INET
	if !to.Addr().Unmap().Is4() {
		kind, family = 1, unix.AF_INET6
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errAskerClosed
	}
	if n := len(a.idle[kind]); n > 0 {
		s := a.idle[kind][n-1]
		a.idle[kind] = a.idle[kind][:n-1]
		return s, nil
	}
	fd, err := newSocket(family)
	if err != nil {
		return nil, err
	}
	a.next++
	s := &upstreamSocket{number: a.next, family: kind, fd: fd, done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	if err := unix.EpollCtl(a.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: s.number}); err != nil {
		return nil, errors.Join(os.NewSyscallError("epoll_ctl", err), unix.Close(fd))
	}
	a.sockets[s.number] = s
	return s, nil
}

// remove closes a socket that is not used again.
func (a *asker) remove(s *upstreamSocket, err error) {
	a.mu.Lock()
	delete(a.sockets, s.number)
	a.mu.Unlock()
	s.close(err)
}

// release makes a socket available for another query. It has no port until then, so it receives nothing, and it discards the packets that
// it has received: one of them may have the id of the next query.
func (a *asker) release(s *upstreamSocket) {
	s.mu.Lock()
	free := s.fd >= 0 && disconnect(s.fd) == nil && discard(s.fd) == nil
	s.mu.Unlock()
	if free {
		a.mu.Lock()
		if free = !a.closed && len(a.idle[s.family]) < maxIdleSockets; free {
			a.idle[s.family] = append(a.idle[s.family], s)
		}
		a.mu.Unlock()
	}
	if !free {
		a.remove(s, nil)
	}
}

// send sends a query to an address, from a new port.
func (s *upstreamSocket) send(to netip.AddrPort, query []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return errAskerClosed
	}
	if err := connect(s.fd, to); err != nil {
		return err
	}
	//nolint:gosec // never waits
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(&query[0])), uintptr(len(query)),
		unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("sendto", errno)
	}
	s.query, s.err = query, nil
	return nil
}

// newSocket returns a UDP socket without an address. The kernel reports unreachable networks and hosts to it.
func newSocket(family int) (fd int, err error) {
	fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	level, option := unix.SOL_IP, unix.IP_RECVERR
	if family == unix.AF_INET6 {
		level, option = unix.SOL_IPV6, unix.IPV6_RECVERR
	}
	if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
		return 0, errors.Join(os.NewSyscallError("setsockopt", err), unix.Close(fd))
	}
	return fd, nil
}

// connect connects a socket to an address, so that it receives only from there. The kernel selects the port.
func connect(fd int, to netip.AddrPort) error {
	var port [2]byte
	binary.BigEndian.PutUint16(port[:], to.Port())
	var errno syscall.Errno
	//nolint:gosec // never waits
	if a := to.Addr().Unmap(); a.Is4() {
		at := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: binary.NativeEndian.Uint16(port[:]), Addr: a.As4()}
		_, _, errno = unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&at)), unix.SizeofSockaddrInet4)
	} else {
		at := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: binary.NativeEndian.Uint16(port[:]), Addr: a.As16()}
		_, _, errno = unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&at)), unix.SizeofSockaddrInet6)
	}
	if errno != 0 {
		return os.NewSyscallError("connect", errno)
	}
	return nil
}

// disconnect removes the address and the port of a socket.
func disconnect(fd int) error {
	at := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	//nolint:gosec // never waits
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&at)), unix.SizeofSockaddrInet4); errno != 0 {
		return os.NewSyscallError("disconnect", errno)
	}
	return nil
}

// discard reads the packets that a socket has received.
func discard(fd int) error {
	for {
		//nolint:gosec // never waits
		_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
		switch errno {
		case 0, unix.EINTR:
		case unix.EAGAIN:
			return nil
		default:
			return os.NewSyscallError("recvfrom", errno)
		}
	}
}
