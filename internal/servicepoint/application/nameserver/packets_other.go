//go:build !linux

package nameserver

import (
	"net"
	"net/netip"
)

// packets reads and writes single packets of a socket. It is not safe for concurrent use.
type packets struct {
	c      *net.UDPConn
	in     [maxQuery]byte
	out    [maxUDP + 512]byte
	n      int
	from   netip.AddrPort
	answer []byte
}

func newPackets(c *net.UDPConn) (*packets, error) { return &packets{c: c}, nil }

// wait waits for a packet and returns the number of packets, 1.
func (p *packets) wait() (n int, err error) {
	p.answer = nil
	if p.n, p.from, err = p.c.ReadFromUDPAddrPort(p.in[:]); err != nil {
		return 0, err
	}
	return 1, nil
}

// message returns the received packet.
func (p *packets) message(int) []byte { return p.in[:p.n] }

// client returns the sender of the received packet.
func (p *packets) client(int) netip.AddrPort { return p.from }

// buffer returns the buffer for the answer.
func (p *packets) buffer(int) []byte { return p.out[:0] }

// reply sets the answer for the next flush.
func (p *packets) reply(_ int, answer []byte) { p.answer = answer }

// flush sends the answer. Errors are ignored, because the client repeats its query.
func (p *packets) flush() {
	if p.answer != nil {
		_, _ = p.c.WriteToUDPAddrPort(p.answer, p.from)
	}
}
