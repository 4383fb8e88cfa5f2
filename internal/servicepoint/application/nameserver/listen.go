package nameserver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/fairlisten"
	"portolan/internal/servicepoint/application"
	"portolan/internal/servicepoint/application/udpbatch"
	"portolan/internal/wire/zonedata"
)

// listener serves one address: over UDP and TCP, over TLS, or over HTTPS.
type listener struct {
	a         *nameServer
	address   netip.AddrPort
	transport transport
	// packets are the UDP sockets, one per processor; the kernel distributes clients across them.
	packets []*net.UDPConn
	stream  net.Listener
	// web is the HTTPS server; nil for other transports.
	web   *http.Server
	group sync.WaitGroup
	// updating counts the update messages that wait for an answer over UDP.
	updating atomic.Int64

	mu sync.Mutex
	// The following fields are guarded by mu. open are the open connections; nil once the listener is closed. maxConnections and
	// maxPerNetwork are the maximum numbers of connections in total and per client network.
	open                          map[net.Conn]*connection
	maxConnections, maxPerNetwork int
}

// connection is a TCP connection from a client network.
type connection struct {
	network netip.Prefix
	// lastActive is the time of the last message in either direction, in Unix nanoseconds.
	lastActive atomic.Int64
}

// Limits of TCP connections: their number, the idle timeout, and the timeout of writing an answer. One client network, a /24 of
// IPv4 or a /56 of IPv6, may have a quarter of the connections.
const (
	maxConnections = 4096
	idleTime       = 10 * time.Second
	sendTime       = 10 * time.Second
)

// listen opens the sockets of an address.
func (a *nameServer) listen(at netip.AddrPort, by transport) (*listener, error) {
	most := fairlisten.ShareLimit(a.listenerCount, maxConnections)
	l := &listener{a: a, address: at, transport: by, open: map[net.Conn]*connection{}, maxConnections: most, maxPerNetwork: most / 4}
	config := net.ListenConfig{Control: reusePort}
	packets := sockets()
	if by != plainTransport {
		packets = 0
	}
	for range packets {
		c, err := config.ListenPacket(context.Background(), "udp", at.String())
		if err != nil {
			l.close()
			return nil, err
		}
		packets, _ := c.(*net.UDPConn) // always a UDPConn
		l.packets = append(l.packets, packets)
	}
	var err error
	if l.stream, err = net.Listen("tcp", at.String()); err != nil {
		l.close()
		return nil, err
	}
	switch by {
	case tlsTransport:
		l.stream = tls.NewListener(l.stream, a.tlsConfig("dot"))
	case httpsTransport:
		l.stream = tls.NewListener(fairlisten.New(l.stream, fairlisten.Limits{Max: most, PerNetwork: most / 4}), a.tlsConfig("h2",
			"http/1.1"))
		l.web = l.newWeb()
	}
	return l, nil
}

// tlsConfig returns the TLS configuration for ALPN protocols (RFC 7301). It always uses the current certificate.
func (a *nameServer) tlsConfig(protocols ...string) *tls.Config {
	shown := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate.Load(), nil }
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, GetCertificate: shown}
}

// check checks the listener with a version query.
func (l *listener) check(ctx context.Context) error {
	m := new(dns.Msg)
	m.SetQuestion("version.bind.", dns.TypeTXT)
	m.Question[0].Qclass = dns.ClassCHAOS
	client := dns.Client{Timeout: checkTimeout}
	switch l.transport {
	case tlsTransport:
		client.Net, client.TLSConfig = "tcp-tls", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // connects to this process
	case httpsTransport:
		return l.checkWeb(ctx, m)
	}
	_, _, err := client.ExchangeContext(ctx, m, l.address.String())
	return err
}

// sockets returns the number of UDP sockets per address.
func sockets() int {
	if !canReusePort {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// run serves until the listener is closed.
func (l *listener) run() {
	for _, c := range l.packets {
		l.group.Go(func() { l.servePackets(c) })
	}
	if l.web != nil {
		l.group.Go(func() { _ = l.web.Serve(l.stream) }) // until the server is closed
		return
	}
	l.group.Go(l.serveStream)
}

// close closes the listener. It waits for answers that are being written.
func (l *listener) close() {
	for _, c := range l.packets {
		_ = c.Close() // errors do not matter
	}
	if l.web != nil {
		_ = l.web.Close()
	}
	if l.stream != nil {
		_ = l.stream.Close()
	}
	l.mu.Lock()
	for c := range l.open {
		_ = c.Close()
	}
	l.open = nil
	l.mu.Unlock()
	l.group.Wait()
}

// servePackets answers queries over UDP.
func (l *listener) servePackets(c *net.UDPConn) {
	p, err := udpbatch.New(c)
	if err != nil { // the socket is closed already
		return
	}
	one := new(exchange)
	receiver := l.newReceiver()
	_ = p.Serve(func(n int) {
		receiver.Received()
		for i := range n {
			m := p.Message(i)
			if isUpdate(m) {
				l.answerUpdate(p, slices.Clone(m), p.Origin(i))
				continue
			}
			if answer := l.a.answerWith(one, m, p.Buffer(i), addressOf(p.Client(i)), false); len(answer) > 0 {
				p.Reply(i, answer)
			}
		}
	}, receiver.Failed) // until the socket is closed
}

// newReceiver returns an observer of a socket.
func (l *listener) newReceiver() *application.Receiver {
	return application.NewReceiver(l.a.log, l.address.String(), func() { l.a.counts.receiveFailures.Add(1) })
}

// addressOf returns the address of a client without its IPv6 zone.
func addressOf(from netip.AddrPort) netip.Addr { return from.Addr().Unmap().WithZone("") }

// answerUpdate answers an update message over UDP after the manager's decision.
func (l *listener) answerUpdate(p *udpbatch.Conn, m []byte, from udpbatch.Origin) {
	if l.updating.Add(1) > maxUpdates {
		l.updating.Add(-1)
		return
	}
	l.group.Go(func() {
		defer l.updating.Add(-1)
		if answer := l.a.update(m, addressOf(from.Client)); answer != nil {
			_ = p.Write(from, answer) // the client repeats the update
		}
	})
}

// serveStream accepts connections.
func (l *listener) serveStream() {
	receiver := l.newReceiver()
	for {
		c, err := l.stream.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example too many open files
			receiver.Failed(err)
			continue
		}
		receiver.Received()
		one := &connection{network: networkOf(clientOf(c))}
		one.lastActive.Store(time.Now().UnixNano())
		l.mu.Lock()
		if l.open == nil {
			l.mu.Unlock()
			_ = c.Close()
			continue
		}
		leaves := l.evict(one.network)
		l.open[c] = one
		l.group.Go(func() { l.serveConn(c, one) })
		l.mu.Unlock()
		if leaves != nil {
			_ = leaves.Close()
		}
	}
}

// evict removes and returns the connection to close for a new one: the one that was silent the longest, so that idle connections do not
// block others. It returns nil if the limits permit another connection. The caller holds l.mu.
func (l *listener) evict(network netip.Prefix) (silent net.Conn) {
	ours := 0
	for _, one := range l.open {
		if one.network == network {
			ours++
		}
	}
	if ours < l.maxPerNetwork && len(l.open) < l.maxConnections {
		return nil
	}
	since := int64(math.MaxInt64)
	for c, one := range l.open {
		if at := one.lastActive.Load(); at < since && (ours < l.maxPerNetwork || one.network == network) {
			since, silent = at, c
		}
	}
	delete(l.open, silent) // its goroutine ends when it is closed
	return silent
}

// serveConn answers the queries of a connection in order (RFC 7766).
func (l *listener) serveConn(c net.Conn, of *connection) {
	defer func() {
		_ = c.Close()
		l.mu.Lock()
		delete(l.open, c)
		l.mu.Unlock()
	}()
	w := zonedata.Client{Address: clientOf(c)}
	send := func(m []byte) error {
		of.lastActive.Store(time.Now().UnixNano())
		framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(m)), uint16(len(m))) //nolint:gosec // at most 65,535
		if err := c.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
			return err
		}
		_, err := c.Write(append(framed, m...))
		return err
	}
	for {
		if err := c.SetReadDeadline(time.Now().Add(idleTime)); err != nil {
			return
		}
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		of.lastActive.Store(time.Now().UnixNano())
		in := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, in); err != nil {
			return
		}
		yes, err := l.a.safeTransfer(in, w, send)
		if err == nil && !yes {
			var answer []byte
			if isUpdate(in) {
				answer = l.a.update(in, w.Address)
			} else {
				answer = l.a.answer(in, nil, w.Address, true)
			}
			if answer == nil {
				return
			}
			err = send(answer)
		}
		if err != nil {
			return
		}
	}
}

// clientOf returns the address of the peer.
func clientOf(c net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return addressOf(from)
}
