package authority

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// versionAt asks a listener for its version.
func versionAt(network, at string) error {
	m := new(dns.Msg)
	m.SetQuestion("version.bind.", dns.TypeTXT)
	m.Question[0].Qclass = dns.ClassCHAOS
	_, _, err := (&dns.Client{Net: network, Timeout: 2 * time.Second}).Exchange(m, at)
	return err
}

// Whoever holds connections open and says nothing is in nobody's way.
func TestSilentConnections(t *testing.T) {
	a := start(t, nil, given{name: "harbour.example.", records: harbour})
	on := listening(t, a)
	at, l := on.String(), a.listeners[on]
	l.mu.Lock()
	l.most, l.ofNetwork = 30, 20
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
	for end := time.Now().Add(5 * time.Second); open() != 20; time.Sleep(time.Millisecond) { // all were accepted
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

// A configuration that cannot be put in force leaves all as it was, listeners that were to be spoken to otherwise included.
func TestConfigurationThatFails(t *testing.T) {
	a := start(t, nil, given{name: "harbour.example.", records: harbour})
	at, taken := listening(t, a), freePort(t)
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
			t.Errorf("an address that somebody else has gives %v", err)
		}
		for _, network := range []string{"udp", "tcp"} {
			if err := versionAt(network, at.String()); err != nil {
				t.Errorf("behind it: %v", err)
			}
		}
	}
	if a.expiry.Load() != 0 {
		t.Error("the certificate of what failed counts")
	}
}
