//go:build !linux

package nameserver

import (
	"net"
	"net/netip"
)

// packets reads and answers the packets of a socket, one at a time. It is used by one at a time.
type packets struct {
	c      *net.UDPConn
	in     [longestQuery]byte
	out    [mostUDP + 512]byte
	n      int
	from   netip.AddrPort
	answer []byte
}

func newPackets(c *net.UDPConn) (*packets, error) { return &packets{c: c}, nil }

// wait reads packets, and says how many: one.
func (p *packets) wait() (n int, err error) {
	p.answer = nil
	if p.n, p.from, err = p.c.ReadFromUDPAddrPort(p.in[:]); err != nil {
		return 0, err
	}
	return 1, nil
}

// message gives the packet that was read.
func (p *packets) message(int) []byte { return p.in[:p.n] }

// client is where the packet that was read has come from.
func (p *packets) client(int) netip.AddrPort { return p.from }

// buffer is for the answer to the packet that was read.
func (p *packets) buffer(int) []byte { return p.out[:0] }

// reply has an answer to the packet sent by the next flush.
func (p *packets) reply(_ int, answer []byte) { p.answer = answer }

// flush sends the answer. Who has asked for one that cannot be sent asks again.
func (p *packets) flush() {
	if p.answer != nil {
		_, _ = p.c.WriteToUDPAddrPort(p.answer, p.from)
	}
}
