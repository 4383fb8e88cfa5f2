package freeport

import (
	"net"
	"net/netip"
	"testing"
)

// TestPortsAreFree checks that ports are unique, are outside of the system's ephemeral range, and are not in use over TCP or UDP.
func TestPortsAreFree(t *testing.T) {
	given := map[uint16]bool{}
	loopback := func() netip.AddrPort {
		t.Helper()
		at, err := Loopback()
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for range 50 {
		at := loopback()
		if given[at.Port()] || at.Port() < firstPort || at.Port() >= firstPort+portCount {
			t.Fatalf("%s is given after %d others", at, len(given))
		}
		given[at.Port()] = true
	}
	next := func() string {
		at := loopback()
		last.Add(^uint32(0)) // so that the same port is checked again
		return at.String()
	}
	at := next()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Skipf("another process has taken the port: %v", err)
	}
	if again := next(); again == at {
		t.Errorf("%s is returned while it is in use", at)
	}
	_ = l.Close()
	at = next()
	packets, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Skipf("another process has taken the port: %v", err)
	}
	if again := next(); again == at {
		t.Errorf("%s is given while packets are received there", at)
	}
	_ = packets.Close()
}
