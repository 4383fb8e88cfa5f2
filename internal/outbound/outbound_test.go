package outbound

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// What is stored leads nowhere that is not allowed, by whatever name, and never to where a cloud tells its secrets.
func TestOutbound(t *testing.T) {
	defer Allow(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dial := func(host string) error {
		c, err := Dialer().DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		if err := dial(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "0.0.0.0", "64:ff9b::a9fe:a9fe", "fd00:ec2::254",
		"224.0.0.1"} {
		if err := dial(host); !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v", host, err)
		}
	}
	prefixes, err := Parse([]string{"10.0.0.0/8", "2001:db8::1"})
	if err != nil {
		t.Fatal(err)
	}
	Allow(prefixes)
	for _, host := range []string{"127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1"} {
		if err := dial(host); !errors.Is(err, ErrDenied) {
			t.Errorf("%s is not allowed: %v", host, err)
		}
	}
	for text, want := range map[string]bool{"10.1.2.3": true, "2001:db8::1": true, "2001:db8::2": false, "11.0.0.1": false,
		"::ffff:10.1.2.3": true} {
		if err := Check(netip.MustParseAddr(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "10.0.0.0/33", "host"} {
		if _, err := Parse([]string{text}); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
