package fairlisten

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// dial connects from an address of the loopback range.
func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	c, err := d.DialContext(context.Background(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestIdleConnectionsOfOneClientAreLimited opens many idle connections from one client. Another client is still served, and the listener
// never exceeds its limit.
func TestIdleConnectionsOfOneClientAreLimited(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	l := New(inner, Limits{Max: 16, PerNetwork: 8, Ended: func() { ended++ }})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }),
		ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	at := inner.Addr().String()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.3")}}).DialContext}}
	ask := func(when string) {
		t.Helper()
		r, err := client.Get("http://" + at + "/")
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		_ = r.Body.Close()
	}
	for range 100 {
		dial(t, "127.0.0.2", at)
		ask("beside a silent client")
	}
	if n := l.Open(); n > 16 {
		t.Errorf("%d connections are open", n)
	}
	for i := range 60 { // many clients at once
		dial(t, netip.AddrFrom4([4]byte{127, 0, 1, byte(1 + i)}).String(), at)
		ask("beside many clients")
	}
	if n := l.Open(); n > 16 || ended < 100 {
		t.Errorf("%d connections are open, %d were ended", n, ended)
	}
}

// TestActiveConnectionsStay expects that the connection with the longest idle time is closed, and that an active one stays open.
func TestActiveConnectionsStay(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := New(inner, Limits{Max: 10, PerNetwork: 3})
	t.Cleanup(func() { _ = l.Close() })
	accept := func() net.Conn {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var clients, servers []net.Conn
	for range 3 {
		clients = append(clients, dial(t, "127.0.0.2", inner.Addr().String()))
		servers = append(servers, accept())
	}
	if _, err := clients[0].Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := servers[0].Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	dial(t, "127.0.0.2", inner.Addr().String())
	accept()
	if _, err := servers[0].Write([]byte("y")); err != nil {
		t.Errorf("the active connection was ended: %v", err)
	}
	if err := clients[1].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := clients[1].Read(make([]byte, 1)); err == nil {
		t.Error("the idle connection stays")
	}
}
