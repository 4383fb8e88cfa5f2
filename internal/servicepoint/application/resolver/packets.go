package resolver

import (
	"context"
	"encoding/binary"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/servicepoint/application/udpbatch"
)

// packetReader reads the packets of a socket. It is used by one goroutine.
type packetReader struct {
	s     *socket
	p     *udpbatch.Conn
	query packedQuery
	// clients are the verdicts about the last clients of the front verdictsOf.
	clients    [clientSlots]verdict
	verdictsOf *front
}

// readPackets answers the queries of a socket until it is closed. A configuration replaces the front, and the socket stays.
func (s *socket) readPackets(c *net.UDPConn) {
	p, err := udpbatch.New(c)
	if err != nil {
		s.front.Load().generation.logStopped(s.listener, err)
		return
	}
	r := &packetReader{s: s, p: p}
	address := s.listener.address()
	receiver := application.NewReceiver(s.front.Load().generation.log, address, receiveFailures.WithLabelValues(address).Inc)
	_ = p.Serve(func(n int) { // until the socket is closed
		receiver.Received()
		f := s.front.Load()
		generation, now := f.generation.resolver.contents.Load(), clock()
		for i := range n {
			m := p.Message(i)
			if answer := f.cachedAnswer(r, m, p.Buffer(i), p.Client(i), generation, now); answer != nil {
				p.Reply(i, answer)
			} else if len(m) >= headerSize && m[2]&0x80 == 0 { // a query
				r.pass(i, m)
			}
		}
	}, receiver.Failed)
}

// receiveFailures counts failures of sockets, which are read again.
var receiveFailures = promauto.NewCounterVec(prometheus.CounterOpts{Name: "portolan_resolver_receive_failures_total",
	Help: "Failed reads of UDP sockets, by address."}, []string{"address"})

// messages are buffers for queries and answers of CoreDNS.
var messages = sync.Pool{New: func() any { return &message{} }}

// message is a query to CoreDNS and its packed answer.
type message struct {
	in  []byte
	out [dns.MinMsgSize * 4]byte
}

// pass makes CoreDNS answer a packet.
func (r *packetReader) pass(i int, m []byte) {
	held := messages.Get().(*message) //nolint:forcetypeassert // the pool contains no other type
	held.in = append(held.in[:0], m...)
	w := &packetWriter{p: r.p, origin: r.p.Origin(i), message: held, local: r.s.local}
	select {
	case r.s.work <- w: // a goroutine is idle
	default:
		go r.s.answerAll(w)
	}
}

// maxIdle is the number of goroutines of a listener that wait for queries. A new goroutine costs more, because its stack must grow.
const maxIdle = 1024

// answerAll answers a query, and further ones until the socket is closed or too many goroutines wait.
func (s *socket) answerAll(w *packetWriter) {
	for ok := true; ok; {
		s.answer(w)
		messages.Put(w.message)
		if s.idle.Add(1) > maxIdle {
			s.idle.Add(-1)
			return
		}
		w, ok = <-s.work
		s.idle.Add(-1)
	}
}

// answer answers a query. While a configuration is replaced, the new one answers.
func (s *socket) answer(w *packetWriter) {
	for range 2 {
		if f := s.front.Load(); f.generation.enter() {
			defer f.generation.endAnswer()
			f.answer(w)
			return
		}
	}
}

// Bits of the second half of a header.
const (
	opcodeBits = 0x78
	keptBits   = opcodeBits | 0x01 // the opcode and RD
)

// answer makes CoreDNS answer a query, with the limits of its own listener.
func (f *front) answer(w *packetWriter) {
	in := w.message.in
	opcode := int(in[2]&opcodeBits) >> 3
	if opcode != dns.OpcodeQuery && opcode != dns.OpcodeNotify {
		w.reject(in[2]&keptBits, dns.RcodeNotImplemented)
		return
	}
	m := new(dns.Msg)
	if binary.BigEndian.Uint16(in[4:]) != 1 || binary.BigEndian.Uint16(in[6:]) > 1 || binary.BigEndian.Uint16(in[8:]) > 1 ||
		binary.BigEndian.Uint16(in[10:]) > 2 || m.Unpack(in) != nil {
		w.reject(in[2]&keptBits&^opcodeBits, dns.RcodeFormatError)
		return
	}
	w.front = f
	ctx := f.ctx
	if f.generation.settings.cache != nil {
		p := &passing{generation: f.generation.resolver.contents.Load()}
		if p.query.parse(in) && !(f.generation.settings.dns64 && p.query.kind == dns.TypeAAAA) {
			w.passing = p
			ctx = context.WithValue(ctx, passingKey{}, p)
		}
	}
	f.server.ServeDNS(ctx, w, m)
}

// packetWriter is the writer of an answer over UDP.
type packetWriter struct {
	p       *udpbatch.Conn
	origin  udpbatch.Origin
	message *message
	local   net.Addr
	remote  *net.UDPAddr
	front   *front
	// passing is nil if the answer is not cached.
	passing *passing
}

// reject answers a query that CoreDNS does not see with a header.
func (w *packetWriter) reject(flags byte, code int) {
	in := w.message.in
	out := [headerSize]byte{in[0], in[1], 0x80 | flags, byte(code)}
	_, _ = w.Write(out[:]) // the client repeats its query
}

// WriteMsg sends an answer, and caches it.
func (w *packetWriter) WriteMsg(m *dns.Msg) error {
	out, err := m.PackBuffer(w.message.out[:])
	if err != nil {
		return err
	}
	if w.passing != nil {
		w.front.store(w.passing, m, w.origin.Client.Addr().Unmap())
	}
	_, err = w.Write(out)
	return err
}

// Write sends a packed answer.
func (w *packetWriter) Write(out []byte) (int, error) { return len(out), w.p.Write(w.origin, out) }

// LocalAddr returns the address of the listener.
func (w *packetWriter) LocalAddr() net.Addr { return w.local }

// RemoteAddr returns the address of the client.
func (w *packetWriter) RemoteAddr() net.Addr {
	if w.remote == nil {
		w.remote = net.UDPAddrFromAddrPort(w.origin.Client)
	}
	return w.remote
}

// Close does nothing, because the socket has other clients.
func (w *packetWriter) Close() error { return nil }

// TsigStatus returns nil: the resolver has no keys.
func (w *packetWriter) TsigStatus() error { return nil }

// TsigTimersOnly does nothing.
func (w *packetWriter) TsigTimersOnly(bool) {}

// Hijack does nothing.
func (w *packetWriter) Hijack() {}
