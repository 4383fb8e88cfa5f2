//go:build !linux

package udpbatch

import (
	"errors"
	"net"
	"net/netip"
)

// Origin identifies where a packet came from, for an answer after its batch.
type Origin struct {
	Client netip.AddrPort
}

// Conn reads and writes single packets of a socket. It is not safe for concurrent use, except for Write.
type Conn struct {
	c      *net.UDPConn
	in     [MaxQuery]byte
	out    [MaxAnswer]byte
	n      int
	from   netip.AddrPort
	answer []byte
}

// New returns a Conn for a socket.
func New(c *net.UDPConn) (*Conn, error) { return &Conn{c: c}, nil }

// Serve calls answer for each packet, with the number of packets, 1, and sends the answer, until the socket is closed. It calls failed
// after each failure of the socket; it may wait.
func (p *Conn) Serve(answer func(n int), failed func(error)) (err error) {
	for {
		p.n, p.from, err = p.c.ReadFromUDPAddrPort(p.in[:])
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // for example an ICMP error for an earlier answer
			failed(err)
			continue
		}
		p.answer = nil
		answer(1)
		if p.answer != nil {
			_, _ = p.c.WriteToUDPAddrPort(p.answer, p.from) // the client repeats its query
		}
	}
}

// Message returns the received packet.
func (p *Conn) Message(int) []byte { return p.in[:p.n] }

// Client returns the sender of the received packet.
func (p *Conn) Client(int) netip.AddrPort { return p.from }

// Origin returns the origin of the received packet, for an answer after the batch.
func (p *Conn) Origin(int) Origin { return Origin{Client: p.from} }

// Buffer returns the buffer for the answer.
func (p *Conn) Buffer(int) []byte { return p.out[:0] }

// Reply sets the answer that Serve sends.
func (p *Conn) Reply(_ int, answer []byte) { p.answer = answer }

// Write sends an answer after its batch. It is safe for concurrent use.
func (p *Conn) Write(to Origin, answer []byte) error {
	_, err := p.c.WriteToUDPAddrPort(answer, to.Client)
	return err
}
