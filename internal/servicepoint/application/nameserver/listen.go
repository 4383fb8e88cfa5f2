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
	"portolan/internal/wire/zonedata"
)

// listener answers at one address: over UDP and TCP, over TLS, or over HTTPS.
type listener struct {
	a   *nameServer
	at  netip.AddrPort
	way way
	// packets are as many as there are processors: the system spreads clients over them.
	packets []*net.UDPConn
	stream  net.Listener
	// web answers over HTTPS; nil where that is not the way.
	web   *http.Server
	group sync.WaitGroup
	// updating is how many messages that change zones wait to be answered over UDP.
	updating atomic.Int64

	mu sync.Mutex
	// What follows is guarded by mu: the connections that are open, nil once the listener is closed, and how many there may be, in all and of
	// one network.
	open            map[net.Conn]*connection
	most, ofNetwork int
}

// connection is one over TCP, from a network of clients.
type connection struct {
	network netip.Prefix
	// heard is when it last said something, or was last told something, in Unix nanoseconds.
	heard atomic.Int64
}

// Bounds of connections over TCP: how many there are at a time, in all and, a quarter of that, from one network of clients (a /24 of IPv4,
// a /56 of IPv6), how long one may be silent, and how long an answer may take to be read.
const (
	mostConnections = 4096
	idleTime        = 10 * time.Second
	sendTime        = 10 * time.Second
	longestQuery    = 4096
)

// listen opens the sockets of an address.
func (a *nameServer) listen(at netip.AddrPort, by way) (*listener, error) {
	most := fairlisten.Each(a.ways, mostConnections)
	l := &listener{a: a, at: at, way: by, open: map[net.Conn]*connection{}, most: most, ofNetwork: most / 4}
	config := net.ListenConfig{Control: reusePort}
	packets := sockets()
	if by != plainWay {
		packets = 0
	}
	for range packets {
		c, err := config.ListenPacket(context.Background(), "udp", at.String())
		if err != nil {
			l.close()
			return nil, err
		}
		packets, _ := c.(*net.UDPConn) // of the network udp
		l.packets = append(l.packets, packets)
	}
	var err error
	if l.stream, err = net.Listen("tcp", at.String()); err != nil {
		l.close()
		return nil, err
	}
	switch by {
	case tlsWay:
		l.stream = tls.NewListener(l.stream, a.secured("dot"))
	case httpsWay:
		l.stream = tls.NewListener(fairlisten.New(l.stream, fairlisten.Limits{Max: most, PerNetwork: most / 4}), a.secured("h2",
			"http/1.1"))
		l.web = l.newWeb()
	}
	return l, nil
}

// secured is how connections are secured, for protocols by their names (RFC 7301). The certificate is that of the moment.
func (a *nameServer) secured(protocols ...string) *tls.Config {
	shown := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.shown.Load(), nil }
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, GetCertificate: shown}
}

// ask asks for the version, which every name server may be asked.
func (l *listener) ask(ctx context.Context) error {
	m := new(dns.Msg)
	m.SetQuestion("version.bind.", dns.TypeTXT)
	m.Question[0].Qclass = dns.ClassCHAOS
	client := dns.Client{Timeout: askTime}
	switch l.way {
	case tlsWay:
		client.Net, client.TLSConfig = "tcp-tls", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it is this process
	case httpsWay:
		return l.askWeb(ctx, m)
	}
	_, _, err := client.ExchangeContext(ctx, m, l.at.String())
	return err
}

// sockets is how many there are of an address for UDP.
func sockets() int {
	if !canReusePort {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// run answers until the listener is closed.
func (l *listener) run() {
	for _, c := range l.packets {
		l.group.Go(func() { l.servePackets(c) })
	}
	if l.web != nil {
		l.group.Go(func() { _ = l.web.Serve(l.stream) }) // until it is closed
		return
	}
	l.group.Go(l.serveStream)
}

// close ends it. Answers that are being written come to their end, or to that of their time.
func (l *listener) close() {
	for _, c := range l.packets {
		_ = c.Close() // nobody waits for it
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

// batch is how many packets are read and written at a time.
const batch = 32

// servePackets answers what comes over UDP.
func (l *listener) servePackets(c *net.UDPConn) {
	p, err := newPackets(c)
	if err != nil { // it is closed already
		return
	}
	for {
		n, err := p.wait()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as that an earlier answer could not be delivered
			continue
		}
		for i := range n {
			m, from := p.message(i), p.client(i)
			if isUpdate(m) {
				l.updateOver(c, slices.Clone(m), from)
				continue
			}
			if answer := l.a.answer(m, p.buffer(i), addressOf(from), false); answer != nil {
				p.reply(i, answer)
			}
		}
		p.flush()
	}
}

// addressOf is the address of a client, without what says how it is reached.
func addressOf(from netip.AddrPort) netip.Addr { return from.Addr().Unmap().WithZone("") }

// updateOver answers a message that changes a zone, when it is decided on.
func (l *listener) updateOver(c *net.UDPConn, m []byte, from netip.AddrPort) {
	if l.updating.Add(1) > mostUpdates {
		l.updating.Add(-1)
		return
	}
	l.group.Go(func() {
		defer l.updating.Add(-1)
		if answer := l.a.update(m, addressOf(from)); answer != nil {
			_, _ = c.WriteToUDPAddrPort(answer, from) // the client sends it again
		}
	})
}

// serveStream takes connections.
func (l *listener) serveStream() {
	for {
		c, err := l.stream.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as that there are too many files
			time.Sleep(10 * time.Millisecond)
			continue
		}
		one := &connection{network: networkOf(clientOf(c))}
		one.heard.Store(time.Now().UnixNano())
		l.mu.Lock()
		if l.open == nil {
			l.mu.Unlock()
			_ = c.Close()
			continue
		}
		leaves := l.leaves(one.network)
		l.open[c] = one
		l.group.Go(func() { l.converse(c, one) })
		l.mu.Unlock()
		if leaves != nil {
			_ = leaves.Close()
		}
	}
}

// leaves gives the connection that is closed for one more of a network: where there are too many, the one that has been silent the longest,
// so that whoever holds many open and says nothing is in nobody's way. l.mu is held.
func (l *listener) leaves(network netip.Prefix) (silent net.Conn) {
	ours := 0
	for _, one := range l.open {
		if one.network == network {
			ours++
		}
	}
	if ours < l.ofNetwork && len(l.open) < l.most {
		return nil
	}
	since := int64(math.MaxInt64)
	for c, one := range l.open {
		if at := one.heard.Load(); at < since && (ours < l.ofNetwork || one.network == network) {
			since, silent = at, c
		}
	}
	delete(l.open, silent) // its conversation ends with it
	return silent
}

// converse answers what comes over a connection, one question behind the other (RFC 7766).
func (l *listener) converse(c net.Conn, of *connection) {
	defer func() {
		_ = c.Close()
		l.mu.Lock()
		delete(l.open, c)
		l.mu.Unlock()
	}()
	w := zonedata.Client{Address: clientOf(c)}
	send := func(m []byte) error {
		of.heard.Store(time.Now().UnixNano())
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
		of.heard.Store(time.Now().UnixNano())
		in := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, in); err != nil {
			return
		}
		yes, err := l.a.transferOf(in, w, send)
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

// clientOf is the address at the other end.
func clientOf(c net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return addressOf(from)
}
