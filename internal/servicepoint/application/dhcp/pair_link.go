package dhcp

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/fairlisten"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/dhcppair"
)

// Limits of the connections of partners.
const (
	pairFrame = 1 << 20
	// pairOutbox is the number of messages that wait for the partner.
	pairOutbox = 1024
	// pairSilence is the time without a message after which a connection ends; max-response-delay replaces it.
	pairSilence    = 5 * time.Second
	handshakeTime  = 5 * time.Second
	dialInterval   = 500 * time.Millisecond
	maxConnections = 64
)

// pairLink is a connection with the partner.
type pairLink struct {
	p      *pair
	conn   net.Conn
	out    chan []byte
	closed chan struct{}
	once   sync.Once
}

// close ends the connection.
func (l *pairLink) close() {
	l.once.Do(func() {
		close(l.closed)
		_ = l.conn.Close() // nothing is lost: unacknowledged records are sent again
	})
}

// send queues messages. A partner that does not read them loses the connection.
func (l *pairLink) send(all ...dhcppair.Message) {
	for _, one := range all {
		text, err := json.Marshal(one)
		if err != nil || len(text) > pairFrame {
			l.p.e.log.Error("message to a partner is too long", "bytes", len(text), "error", err)
			l.close()
			return
		}
		select {
		case l.out <- text:
		default:
			l.close()
			return
		}
	}
}

// keepAlive returns an empty message with a time.
func keepAlive(now time.Time) []byte {
	text, err := json.Marshal(dhcppair.Message{Clock: now.UnixMilli()})
	if err != nil { // it has numbers only
		panic(err)
	}
	return text
}

// write writes the queued messages, and keeps the connection alive. It waits for the network only: a server whose disk is slow stays
// connected.
func (l *pairLink) write() {
	defer l.close()
	w := bufio.NewWriterSize(l.conn, 64<<10)
	alive := time.NewTicker(l.p.aliveInterval())
	defer alive.Stop()
	for {
		var text []byte
		select {
		case <-l.closed:
			return
		case text = <-l.out:
		case <-alive.C:
			alive.Reset(l.p.aliveInterval())
			text = keepAlive(l.p.e.wall())
		}
		if err := l.conn.SetWriteDeadline(time.Now().Add(l.p.silence())); err != nil {
			return
		}
		var head [4]byte
		binary.BigEndian.PutUint32(head[:], uint32(len(text))) //nolint:gosec // at most pairFrame
		_, err := w.Write(head[:])
		if err == nil {
			_, err = w.Write(text)
		}
		if err == nil && len(l.out) == 0 {
			err = w.Flush()
		}
		if err != nil {
			return
		}
	}
}

// aliveInterval is the time between two messages that keep a connection alive: several fit into the silence that ends it.
func (p *pair) aliveInterval() time.Duration { return min(time.Second, p.silence()/4) }

// read returns the next message.
func (l *pairLink) read(in *bufio.Reader) (m dhcppair.Message, err error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(l.p.silence())); err != nil {
		return m, err
	}
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return m, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > pairFrame {
		return m, fmt.Errorf("a message of %d octets", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(in, text); err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

// silence returns the time without a message after which the connection ends.
func (p *pair) silence() time.Duration {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	if s := p.settings.MaxResponseDelay; s > 0 {
		return time.Duration(s) * time.Second
	}
	return pairSilence
}

// serve runs a connection until it ends. It replaces a former one.
func (p *pair) serve(conn net.Conn) {
	l := &pairLink{p: p, conn: conn, out: make(chan []byte, pairOutbox), closed: make(chan struct{})}
	p.e.mu.Lock()
	stopped := p.e.pairs[p.settings.ID] != p
	select {
	case <-p.e.stop:
		stopped = true
	default:
	}
	if stopped {
		p.e.mu.Unlock()
		l.close()
		return
	}
	p.drop("a new connection replaces it")
	p.link = l
	l.send(p.machine.Connected(p.e.wall().UnixMilli()))
	p.e.mu.Unlock()
	p.e.tasks.Go(l.write)
	err := l.receive()
	l.close()
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	if p.link == l {
		p.drop(fmt.Sprint(err))
	}
}

// receive receives the messages of a connection.
func (l *pairLink) receive() error {
	p, e := l.p, l.p.e
	in := bufio.NewReaderSize(l.conn, 64<<10)
	for {
		m, err := l.read(in)
		if err != nil {
			return err
		}
		for len(e.commits) > maxCommits/2 { // the disk is slow: the partner waits
			select {
			case <-l.closed:
				return net.ErrClosed
			case <-time.After(exchangeInterval):
			}
		}
		e.mu.Lock()
		if p.link != l {
			e.mu.Unlock()
			return net.ErrClosed
		}
		now := e.clock.now()
		p.contact = now
		clock := m.Clock
		if m.Hello != nil {
			clock = m.Hello.Clock
		}
		if clock != 0 {
			p.skew = clock - e.wall().UnixMilli()
		}
		var x dhcppair.Effects
		if clock == 0 || m.Hello != nil {
			if x, err = p.machine.Receive(m, p, now); err == nil {
				p.follow(x)
			}
		}
		e.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// drop ends the connection. The caller holds mu.
func (p *pair) drop(reason string) {
	if p.link == nil {
		return
	}
	p.e.log.Info("failover connection ended", "partner", p.settings.PartnerName, "reason", reason)
	p.link.close()
	p.link = nil
	p.machine.Disconnected()
}

// errStranger reports a connection of another machine.
var errStranger = errors.New("the key is not that of a partner")

// dial connects the primary to the secondary.
func (p *pair) dial() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.e.tasks.Go(func() {
		select {
		case <-p.stop:
		case <-p.e.stop:
		case <-ctx.Done():
		}
		cancel()
	})
	for ctx.Err() == nil {
		p.e.mu.Lock()
		x, key := p.settings, p.e.key
		p.e.mu.Unlock()
		if len(x.PartnerKey) == sha256.Size {
			d := tls.Dialer{NetDialer: &net.Dialer{Timeout: handshakeTime}, Config: key.config(func(sum [sha256.Size]byte) error {
				if string(sum[:]) != string(x.PartnerKey) {
					return errStranger
				}
				return nil
			})}
			limited, done := context.WithTimeout(ctx, handshakeTime)
			conn, err := d.DialContext(limited, "tcp", x.Endpoint.String())
			done()
			if err == nil {
				p.serve(conn)
			} else {
				p.e.log.Debug("failover connection failed", "partner", x.PartnerName, "error", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(dialInterval):
		}
	}
}

// pairListener accepts the connections of primaries.
type pairListener struct {
	listener net.Listener
	address  string
}

// defaultPairPort is the port of the DHCP failover protocol.
const defaultPairPort = 647

// listenPairs opens or closes the listener for partners. The caller holds mu.
func (e *engine) listenPairs() {
	wanted := ""
	for _, p := range e.pairs {
		if !p.settings.Primary {
			wanted = e.pairAddress
		}
	}
	if e.pairListener != nil && e.pairListener.address != wanted {
		_ = e.pairListener.listener.Close() // connections stay
		e.pairListener = nil
	}
	if wanted == "" || e.pairListener != nil {
		return
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", wanted)
	if err != nil {
		if e.pairFailure == "" {
			e.log.Error("listen for failover partners failed", "address", wanted, "error", err)
		}
		e.pairFailure = err.Error()
		return // the next tick tries again
	}
	e.pairFailure = ""
	fair := fairlisten.New(l, fairlisten.Limits{Max: maxConnections, PerNetwork: maxConnections / 2})
	e.pairListener = &pairListener{fair, wanted}
	e.tasks.Go(func() { e.accept(fair) })
}

// setPairAddress sets the address for partners.
func (e *engine) setPairAddress(address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pairAddress = address; address == "" {
		e.pairAddress = fmt.Sprintf("[::]:%d", defaultPairPort)
	}
	e.listenPairs()
}

// pairPort returns the port for partners; 0 before the configuration. The caller holds mu.
func (e *engine) pairPort() uint16 {
	_, port, found := strings.Cut(e.pairAddress[strings.LastIndex(e.pairAddress, "]")+1:], ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if !found || err != nil {
		return 0
	}
	return uint16(n)
}

// accept accepts connections until the listener is closed.
func (e *engine) accept(l net.Listener) {
	receiver := application.NewReceiver(e.log, l.Addr().String(), func() { e.counters.refuse(0, receiveFailed) })
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			receiver.Failed(err)
			continue
		}
		receiver.Received()
		e.tasks.Go(func() { e.acceptPartner(conn) })
	}
}

// acceptPartner finds the pair of a connection by the key of the other side.
func (e *engine) acceptPartner(conn net.Conn) {
	var found *pair
	e.mu.Lock()
	key := e.key
	e.mu.Unlock()
	secure := tls.Server(conn, key.config(func(sum [sha256.Size]byte) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, p := range e.pairs {
			if !p.settings.Primary && string(p.settings.PartnerKey) == string(sum[:]) {
				found = p
				return nil
			}
		}
		return errStranger
	}))
	ctx, done := context.WithTimeout(context.Background(), handshakeTime)
	err := secure.HandshakeContext(ctx)
	done()
	if err != nil || found == nil {
		e.log.Debug("failover connection refused", "from", conn.RemoteAddr(), "error", err)
		_ = conn.Close() // it was refused
		return
	}
	found.serve(secure)
}

// closePairs ends all connections.
func (e *engine) closePairs() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.pairs {
		p.drop("the server stops")
	}
	if e.pairListener != nil {
		_ = e.pairListener.listener.Close()
	}
}
