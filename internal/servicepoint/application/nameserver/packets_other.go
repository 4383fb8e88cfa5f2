//go:build !linux

package nameserver

import (
	"errors"
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

// serve calls answer for each packet, with the number of packets, 1, and sends the answer, until the socket is closed.
func (p *packets) serve(answer func(n int)) (err error) {
	for {
		p.n, p.from, err = p.c.ReadFromUDPAddrPort(p.in[:])
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // for example an ICMP error for an earlier answer
			continue
		}
		p.answer = nil
		answer(1)
		if p.answer != nil {
			_, _ = p.c.WriteToUDPAddrPort(p.answer, p.from) // the client repeats its query
		}
	}
}

// message returns the received packet.
func (p *packets) message(int) []byte { return p.in[:p.n] }

// client returns the sender of the received packet.
func (p *packets) client(int) netip.AddrPort { return p.from }

// buffer returns the buffer for the answer.
func (p *packets) buffer(int) []byte { return p.out[:0] }

// reply sets the answer that serve sends.
func (p *packets) reply(_ int, answer []byte) { p.answer = answer }
