package tftp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"portolan/internal/servicepoint/application"
)

const protocolTFTP = "TFTP"

// tftpListener answers read requests at one address.
type tftpListener struct {
	s       *server
	address netip.AddrPort
	conn    *net.UDPConn
	// maxUnfragmented is the number of octets that a data packet can have without fragments.
	maxUnfragmented int
	group           sync.WaitGroup

	mu sync.Mutex
	// open are the sockets of the transfers; nil once the listener is closed. It is guarded by mu.
	open map[*net.UDPConn]bool
}

// checkName is the name of the file that the application requests from itself. It cannot exist: "." is not a name.
const checkName = "."

// listenTFTP opens a listener.
func (s *server) listenTFTP(at netip.AddrPort) (listener, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	return &tftpListener{s: s, address: at, conn: conn, maxUnfragmented: unfragmented(at.Addr()), open: map[*net.UDPConn]bool{}}, nil
}

// Sizes of headers, in octets, and the MTU of an interface that is not found.
const (
	headers4   = 20 + 8 + 4 // IPv4, UDP, TFTP
	headers6   = 40 + 8 + 4
	defaultMTU = 1500
)

// unfragmented returns the number of octets of a data packet that fit in a packet of the interface with an address.
func unfragmented(a netip.Addr) int {
	mtu, headers := defaultMTU, headers4
	if a.Is6() {
		headers = headers6
	}
	interfaces, err := net.Interfaces()
	if err != nil { // the usual MTU is a safe assumption
		return mtu - headers
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, one := range addresses {
			if n, ok := one.(*net.IPNet); ok && n.IP.Equal(a.AsSlice()) {
				mtu = i.MTU
			}
		}
	}
	return mtu - headers
}

func (l *tftpListener) protocol() string { return protocolTFTP }

func (l *tftpListener) run() { l.group.Go(l.serve) }

// serve answers requests until the listener is closed.
func (l *tftpListener) serve() {
	buffer := make([]byte, maxRequest+1)
	receiver := application.NewReceiver(l.s.log, l.address.String(), func() { l.s.counts.refuse(receiveFailed) })
	for {
		n, client, err := l.conn.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as an ICMP error for an earlier answer
			receiver.Failed(err)
			continue
		}
		receiver.Received()
		l.handle(buffer[:n], client)
	}
}

// handle answers one packet.
func (l *tftpListener) handle(p []byte, client netip.AddrPort) {
	s := l.s
	r, err := parseRequest(p)
	var refused *refusal
	if errors.As(err, &refused) {
		if string(p[2:min(len(p), 4)]) != checkName+"\x00" { // the check of this process
			s.counts.refuse(refused.reason)
		}
		l.answer(refused, client)
		return
	}
	if err != nil {
		s.counts.refuse(refusedPacket)
		return
	}
	f := s.tree.Load().files[r.path]
	if f == nil {
		s.counts.refuse(refusedName)
		s.log.Debug("file not found", "client", client.Addr(), "file", r.path)
		l.answer(&refusal{code: codeNotFound, text: fmt.Sprintf("the file %.100q does not exist", r.path)}, client)
		return
	}
	reason := s.startTransfer(client)
	if reason != "" { // no answer: the client asks again
		s.counts.refuse(reason)
		return
	}
	l.group.Go(func() {
		defer s.endTransfer(client)
		l.transfer(r, f, client)
	})
}

// answer sends an error packet.
func (l *tftpListener) answer(r *refusal, client netip.AddrPort) {
	_, _ = l.conn.WriteToUDPAddrPort(appendError(nil, r.code, r.text), client) // a client repeats its request if the answer is lost
}

// startTransfer records a transfer to a client. It returns the reason if there cannot be one: a transfer to the same port, which the client
// began with the same request, or too many others.
func (s *server) startTransfer(client netip.AddrPort) (reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.active[client]:
		return refusedRepeated
	case len(s.active) >= s.maxTransfers, s.perClient[client.Addr()] >= max(s.maxTransfers/4, 1):
		return refusedBusy
	}
	s.active[client] = true
	s.perClient[client.Addr()]++
	return ""
}

// endTransfer forgets a transfer.
func (s *server) endTransfer(client netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, client)
	if s.perClient[client.Addr()]--; s.perClient[client.Addr()] == 0 {
		delete(s.perClient, client.Addr())
	}
}

// transfer sends a file to a client.
func (l *tftpListener) transfer(r request, f *blob, client netip.AddrPort) {
	began := time.Now()
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(l.address.Addr(), 0)), net.UDPAddrFromAddrPort(client))
	if err != nil {
		l.s.counts.failed.Add(1)
		l.s.log.Warn("transfer failed", "client", client.Addr(), "file", r.path, "reason", err)
		return
	}
	if !l.recordSocket(conn) {
		_ = conn.Close()
		return
	}
	defer l.drop(conn)
	t := &transfer{conn: conn, in: f.open()}
	if r.netascii {
		t.in = &netascii{source: bufio.NewReader(f.open())}
	}
	t.negotiate(r, f.size, l.maxUnfragmented)
	err = t.run()
	l.s.counts.bytes.Add(t.sent)
	if err != nil {
		l.s.counts.failed.Add(1)
		l.s.log.Warn("transfer failed", "client", client.Addr(), "file", r.path, "sent", t.sent, "reason", err)
		return
	}
	l.s.counts.done.Add(1)
	l.s.log.Debug("transfer completed", "client", client.Addr(), "file", r.path, "bytes", t.sent, "duration", time.Since(began))
}

// recordSocket records the socket of a transfer. It returns false if the listener is closed.
func (l *tftpListener) recordSocket(conn *net.UDPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		return false
	}
	l.open[conn] = true
	return true
}

// drop closes the socket of a transfer.
func (l *tftpListener) drop(conn *net.UDPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
	_ = conn.Close()
}

// check requests a file that cannot exist, and expects an error packet.
func (l *tftpListener) check(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", l.address.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if until, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(until); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("\x00\x01" + checkName + "\x00octet\x00")); err != nil {
		return err
	}
	answer := make([]byte, maxRequest)
	n, err := conn.Read(answer)
	if err != nil {
		return err
	}
	if n < 4 || binary.BigEndian.Uint16(answer) != opError {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// close ends the listener and its transfers.
func (l *tftpListener) close() {
	_ = l.conn.Close()
	l.mu.Lock()
	for conn := range l.open {
		_ = conn.Close()
	}
	l.open = nil
	l.mu.Unlock()
	l.group.Wait()
}
