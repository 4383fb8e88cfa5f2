// Package freeport finds ports for programs that must be told where to listen before they run.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// first and ports say which ports are given: below those that the system gives to connections and to who listens at port 0, so that
// neither takes one between the look and the use.
const first, ports = 10_000, 20_000

// last is the port that was looked at last, of this process: who was given one need not have taken it yet. It begins anywhere, so that two
// processes seldom meet.
var last atomic.Uint32

// begun gives last its beginning.
var begun sync.Once

// Loopback gives an address of 127.0.0.1 that is free now, for UDP and TCP. No other call in this process gives it before all others were
// given: who was given it may listen there, stop, and listen again. It fails where every port is taken.
func Loopback() (netip.AddrPort, error) {
	begun.Do(func() { last.Store(rand.Uint32N(ports)) }) //nolint:gosec // spread, not secret
	for range ports {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(first+last.Add(1)%ports)) //nolint:gosec // below 30,000
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
	return netip.AddrPort{}, errors.New("no port of 127.0.0.1 is free")
}

// tester is what For uses of a test: testing.TB has it.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// For is Loopback for a test, which fails where there is none.
func For(t tester) netip.AddrPort {
	t.Helper()
	at, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return at
}
