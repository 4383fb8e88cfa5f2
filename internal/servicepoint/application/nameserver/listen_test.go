package nameserver

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application/udpbatch"
	"portolan/internal/testkit/freeport"
)

// versionAt sends a version query to a listener.
func versionAt(network, at string) error {
	m := new(dns.Msg)
	m.SetQuestion("version.bind.", dns.TypeTXT)
	m.Question[0].Qclass = dns.ClassCHAOS
	_, _, err := (&dns.Client{Net: network, Timeout: 2 * time.Second}).Exchange(m, at)
	return err
}

// TestSilentConnections checks that idle connections do not block other clients.
func TestSilentConnections(t *testing.T) {
	a := start(t, nil, given{name: "harbour.example.", records: harbour})
	on := listening(t, a)
	at, l := on.String(), a.listeners[on]
	l.mu.Lock()
	l.maxConnections, l.maxPerNetwork = 30, 20
	l.mu.Unlock()
	for range 60 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	open := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.open)
	}
	for end := time.Now().Add(time.Minute); open() != 20; time.Sleep(time.Millisecond) { // until all are accepted
		if time.Now().After(end) {
			t.Fatalf("%d of 60 connections of one network are open", open())
		}
	}
	for range 3 {
		if err := versionAt("tcp", at); err != nil {
			t.Error(err)
		}
	}
}

// TestListenerSurvivesErrors checks that a failing listener of connections is counted, and accepts connections after the failure.
func TestListenerSurvivesErrors(t *testing.T) {
	a := start(t, nil, given{name: "harbour.example.", records: harbour})
	on := listening(t, a)
	stream, _ := a.listeners[on].stream.(*net.TCPListener)
	if err := stream.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	failures := func() int64 {
		d, _ := a.Diagnostics().(Diagnostics)
		return d.ReceiveFailures
	}
	for end := time.Now().Add(time.Minute); failures() < 5; time.Sleep(time.Millisecond) { // until they are counted
		if time.Now().After(end) {
			t.Fatalf("%d failures are counted", failures())
		}
	}
	if err := stream.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := versionAt("tcp", on.String()); err != nil {
		t.Error(err)
	}
}

// TestFailedConfiguration checks that a failed configuration changes nothing, including listeners whose transport was to change.
func TestFailedConfiguration(t *testing.T) {
	a := start(t, nil, given{name: "harbour.example.", records: harbour})
	at, taken := listening(t, a), freeport.Reserve(t)
	l, err := net.Listen("tcp", taken.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	certificate, key, _ := credentials(t)
	pair, err := json.Marshal(map[string]string{"certificate": certificate, "key": key})
	if err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{`{"address":"127.0.0.1","port":%d,"tls":true},{"address":"127.0.0.1","port":%d}`,
		`{"address":"127.0.0.1","port":%d,"tls":true},{"address":"127.0.0.1","port":%d,"tls":true}`} {
		err := a.Configure(json.RawMessage(fmt.Sprintf(`{"listen":[`+listen+`],"tls":%s}`, at.Port(), taken.Port(), pair)))
		if err == nil || !strings.Contains(err.Error(), taken.String()) {
			t.Errorf("the error for an address in use is %v", err)
		}
		for _, network := range []string{"udp", "tcp"} {
			if err := versionAt(network, at.String()); err != nil {
				t.Errorf("behind it: %v", err)
			}
		}
	}
	if a.expiry.Load() != 0 {
		t.Error("the certificate of a failed configuration is used")
	}
}

// TestPacketsTogether checks that each of several packets that arrive together is answered to its sender, over IPv4 and IPv6.
func TestPacketsTogether(t *testing.T) {
	const clients, each = 5, udpbatch.Size + 8 // at most the number of packets that a socket queues
	a := start(t, nil, given{name: "harbour.example.", records: harbour})
	v4 := listening(t, a)
	v6 := netip.AddrPortFrom(netip.IPv6Loopback(), v4.Port())
	if err := a.Configure(fmt.Appendf(nil, `{"listen":[{"address":"127.0.0.1","port":%d},{"address":"::1","port":%d}]}`, v4.Port(), v6.Port())); err != nil {
		t.Fatal(err)
	}
	for _, at := range []netip.AddrPort{v4, v6} {
		var open []net.Conn
		for n := range clients {
			c, err := net.Dial("udp", at.String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			open = append(open, c)
			for id := range each {
				m := new(dns.Msg)
				m.SetQuestion(fmt.Sprintf("no-%d-%d.harbour.example.", n, id), dns.TypeA)
				m.Id = uint16(id) //nolint:gosec // below 100
				wire, err := m.Pack()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Write(wire); err != nil {
					t.Fatal(err)
				}
			}
		}
		for n, c := range open {
			seen := map[uint16]bool{}
			for len(seen) < each {
				buf := make([]byte, 4096)
				if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				size, err := c.Read(buf)
				if err != nil {
					t.Fatalf("%s: client %d has %d of %d answers: %v", at, n, len(seen), each, err)
				}
				got := new(dns.Msg)
				if err := got.Unpack(buf[:size]); err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprintf("no-%d-%d.harbour.example.", n, got.Id); got.Question[0].Name != want || got.Rcode != dns.RcodeNameError {
					t.Errorf("%s: client %d got %s, expected %s", at, n, got, want)
				}
				seen[got.Id] = true
			}
		}
	}
}
