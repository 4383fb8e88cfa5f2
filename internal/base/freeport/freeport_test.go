package freeport

import (
	"net"
	"testing"
)

// No port is given twice, none is one that the system gives by itself, and none is given that somebody has, over TCP or UDP.
func TestPortsAreFree(t *testing.T) {
	given := map[uint16]bool{}
	for range 50 {
		at := For(t)
		if given[at.Port()] || at.Port() < first || at.Port() >= first+ports {
			t.Fatalf("%s is given after %d others", at, len(given))
		}
		given[at.Port()] = true
	}
	next := func() string {
		at := For(t)
		last.Add(^uint32(0)) // so that it is looked at again
		return at.String()
	}
	at := next()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Skipf("somebody else was faster: %v", err)
	}
	if again := next(); again == at {
		t.Errorf("%s is given while somebody listens there", at)
	}
	_ = l.Close()
	at = next()
	packets, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Skipf("somebody else was faster: %v", err)
	}
	if again := next(); again == at {
		t.Errorf("%s is given while packets are received there", at)
	}
	_ = packets.Close()
}
