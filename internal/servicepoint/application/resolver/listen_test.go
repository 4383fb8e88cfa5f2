package resolver

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
)

// version sends a version query to the resolver from an address of this machine, over TCP or TLS.
func version(from, at, network string) error {
	q := new(dns.Msg)
	q.SetQuestion(ownQuestion, dns.TypeTXT)
	q.Question[0].Qclass = dns.ClassCHAOS
	client := dns.Client{Net: network, Timeout: 5 * time.Second, TLSConfig: &tls.Config{InsecureSkipVerify: true},
		Dialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}}
	a, _, err := client.Exchange(q, at)
	if err == nil && a.Rcode != dns.RcodeSuccess {
		err = fmt.Errorf("the answer is %s", dns.RcodeToString[a.Rcode])
	}
	return err
}

// TestConnectionsOfOneClientAreLimited checks that a client with very many connections blocks no others, over TCP and TLS. Its own newest
// connection is answered as well.
func TestConnectionsOfOneClientAreLimited(t *testing.T) {
	app := Kind().New(slog.New(slog.NewTextHandler(io.Discard, nil)))
	app.(*resolver).connections = 32
	defer func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	}()
	certificate, key, _ := credentials(t, "one.example")
	plain, secure := int(freeport.Reserve(t).Port()), int(freeport.Reserve(t).Port())
	if err := app.Configure(text(plain, secure, certificate, key, "9")); err != nil {
		t.Fatal(err)
	}
	for network, port := range map[string]int{"tcp": plain, "tcp-tls": secure} {
		at := fmt.Sprintf("127.0.0.1:%d", port)
		var idle []net.Conn
		for range 200 {
			c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}}).Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			idle = append(idle, c)
		}
		for _, from := range []string{"127.0.0.1", "127.0.0.66"} {
			if err := version(from, at, network); err != nil {
				t.Errorf("%s from %s beside 200 idle connections: %v", network, from, err)
			}
		}
		closed := 0 // closed by the resolver before the idle timeout
		for _, c := range idle[:100] {
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := c.Read(make([]byte, 1)); err == io.EOF || err != nil && strings.Contains(err.Error(), "reset") {
				closed++
			}
		}
		if closed != 100 {
			t.Errorf("%s: %d of the first 100 connections were closed for later ones", network, closed)
		}
		for _, c := range idle {
			_ = c.Close()
		}
	}
}

// TestRefusedConfigurationChangesNothing checks that a configuration with an address in use is rejected and changes nothing. UDP queries
// are answered while configurations change.
func TestRefusedConfigurationChangesNothing(t *testing.T) {
	app := Kind().New(slog.New(slog.NewTextHandler(io.Discard, nil)))
	defer func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	}()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // a socket of the test
	certificate, key, _ := credentials(t, "one.example")
	plain, secure := int(freeport.Reserve(t).Port()), int(freeport.Reserve(t).Port())
	good := text(plain, secure, certificate, key, "9")
	if err := app.Configure(good); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", plain)
	bad := text(plain, taken.Addr().(*net.TCPAddr).Port, certificate, key, "9")
	if err := app.Configure(bad); err == nil || !strings.Contains(err.Error(), "listen on") {
		t.Errorf("an address that is taken: %v", err)
	}
	if err := version("127.0.0.1", at, "tcp"); err != nil {
		t.Errorf("after a refused configuration: %v", err)
	}
	stop, lost := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				lost <- n
				return
			default:
			}
			q := new(dns.Msg)
			q.SetQuestion(ownQuestion, dns.TypeTXT)
			q.Question[0].Qclass = dns.ClassCHAOS
			if _, _, err := (&dns.Client{Timeout: 2 * time.Second}).Exchange(q, at); err != nil {
				n++
			}
		}
	}()
	for i := range 4 {
		if err := app.Configure(text(plain, secure, certificate, key, fmt.Sprint(10+i))); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	if n := <-lost; n > 0 {
		t.Errorf("%d questions were not answered while the configuration changed", n)
	}
	// Without the TLS listener its socket is closed.
	alone := fmt.Appendf(nil, `{"listen":[{"address":"127.0.0.1","port":%d}],"upstreams":[{"address":"127.0.0.1:9"}]}`, plain)
	if err := app.Configure(alone); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", secure)); err == nil {
		_ = c.Close()
		t.Error("a listener that is not wanted any more is open")
	}
	if err := version("127.0.0.1", at, "tcp"); err != nil {
		t.Error(err)
	}
}
