// Package freeport finds free ports for programs that need a listen address before they start.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// firstPort and portCount define the range of ports. It is below the ephemeral range, so that no connection or listener at port 0 takes a
// port between the check and the use.
const firstPort, portCount = 10_000, 20_000

// last is the port that this process checked last. A caller may not have opened its port yet, so ports are not checked again until all
// others were. The start is random, so that two processes rarely use the same ports.
var last atomic.Uint32

// startOnce sets the start of last.
var startOnce sync.Once

// Loopback returns an address of 127.0.0.1 that is currently free for UDP and TCP. It returns the same address again only after all other
// ports, so the caller may listen, stop, and listen again. It returns an error if no port is free.
func Loopback() (netip.AddrPort, error) {
	startOnce.Do(func() { last.Store(rand.Uint32N(portCount)) }) //nolint:gosec // spread, not secret
	for range portCount {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstPort+last.Add(1)%portCount)) //nolint:gosec // below 30,000
		l, err := net.Listen("tcp", at.String())
		if err != nil {
			continue
		}
		packets, err := net.ListenPacket("udp", at.String())
		_ = l.Close()
		if err == nil {
			return at, packets.Close()
		}
	}
	return netip.AddrPort{}, errors.New("no free port on 127.0.0.1")
}
