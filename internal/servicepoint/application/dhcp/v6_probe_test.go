package dhcp

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"portolan/internal/wire/dhcpdata"

	"github.com/insomniacslk/dhcp/dhcpv6"
)

// TestDamagedLeases6 checks that each address without a lease is probed before it is advertised while leases may be unknown, also to
// clients that ask for rapid commit. An address that answers is abandoned, and the client gets another one.
func TestDamagedLeases6(t *testing.T) {
	u := units6(t, dhcpdata.Service{V6: true, Name: "rapid-commit", Value: []byte("true"),
		From: dhcpdata.Source{Level: dhcpdata.AtNetwork, ID: 40}})
	s, at := start6(t, t.TempDir(), u)
	var mu sync.Mutex
	var probed []netip.Addr
	s.engine.mu.Lock()
	s.engine.suspectUntil = s.engine.clock.now() + 1000
	s.engine.probe = func(a netip.Addr, _ uint32) (net.HardwareAddr, bool) {
		mu.Lock()
		defer mu.Unlock()
		probed = append(probed, a)
		return nil, len(probed) == 1
	}
	s.engine.mu.Unlock()
	c := dial6(t, at, 1)
	m := c.ask(dhcpv6.MessageTypeSolicit, dhcpv6.WithIAID([4]byte{0, 0, 0, 1}), dhcpv6.WithRapidCommit)
	if m == nil || m.MessageType != dhcpv6.MessageTypeAdvertise {
		t.Fatalf("a SOLICIT with rapid commit is answered by %v", m)
	}
	offered, _ := leased(m)
	mu.Lock()
	if len(probed) != 2 || probed[0] == probed[1] || probed[1].String() != offered {
		t.Errorf("%v were probed, and %s is advertised", probed, offered)
	}
	first := probed[0]
	mu.Unlock()
	s.engine.mu.Lock()
	if l := s.engine.table.lease(first); l == nil || l.state != dhcpdata.Abandoned {
		t.Errorf("%s, which answered, is not abandoned", first)
	}
	s.engine.mu.Unlock()
	a, prefix := c.lease()
	if !strings.HasPrefix(a, "2001:db8:1::1:") || prefix == "" {
		t.Errorf("the client gets %q and %q", a, prefix)
	}
	mu.Lock()
	count := len(probed)
	mu.Unlock()
	if again := c.ask(dhcpv6.MessageTypeSolicit, dhcpv6.WithIAID([4]byte{0, 0, 0, 1})); again == nil {
		t.Error("a client with a lease gets no answer")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(probed) != count {
		t.Errorf("the address of a client with a lease was probed: %v", probed)
	}
}
