package naming

import (
	"net/netip"
	"strings"
	"testing"

	dns "portolan/internal/base/dnsmsg"
)

func TestReverseRange(t *testing.T) {
	for zone, want := range map[string]string{
		"in-addr.arpa": "0.0.0.0 255.255.255.255", "10.in-addr.arpa.": "10.0.0.0 10.255.255.255", "2.0.192.IN-ADDR.ARPA": "192.0.2.0 192.0.2.255",
		"7.2.0.192.in-addr.arpa": "192.0.2.7 192.0.2.7", "0-63.2.0.192.in-addr.arpa": "192.0.2.0 192.0.2.63",
		"64/26.2.0.192.in-addr.arpa": "192.0.2.64 192.0.2.127",
		"8.b.d.0.1.0.0.2.ip6.arpa":   "2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
		"ip6.arpa":                   ":: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		"example.com":                "", "300.in-addr.arpa": "", "01.in-addr.arpa": "", "0-63.192.in-addr.arpa": "",
		"63-0.2.0.192.in-addr.arpa": "",
		"1.2.3.4.5.in-addr.arpa":    "",
		"g.ip6.arpa":                "", "10.ip6.arpa": "", "xin-addr.arpa": "", "240/26.2.0.192.in-addr.arpa": "",
	} {
		low, high, ok := ReverseRange(zone)
		got := ""
		if ok {
			got = low.String() + " " + high.String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", zone, got, want)
		}
	}
}

// FuzzReverse checks that the reverse name of an address equals that of the DNS library, and can be converted back.
func FuzzReverse(f *testing.F) {
	f.Add([]byte{192, 0, 2, 7}, 24)
	f.Add([]byte{10, 1, 2, 3}, 8)
	f.Add([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 48)
	f.Fuzz(func(t *testing.T, data []byte, bits int) {
		a, ok := netip.AddrFromSlice(data)
		if !ok || bits < 0 || bits > a.BitLen() {
			return
		}
		whole, err := dns.ReverseAddr(a.Unmap().String())
		if err != nil || a.Is4In6() {
			return
		}
		step := 8
		if a.Is6() {
			step = 4
		}
		labels := strings.Split(strings.TrimSuffix(whole, "."), ".")
		zone := strings.Join(labels[(a.BitLen()-bits+step-1)/step:], ".")
		low, high, ok := ReverseRange(zone)
		if !ok || a.Less(low) || high.Less(a) {
			t.Fatalf("%s is not in %s: %s to %s, %v", a, zone, low, high, ok)
		}
		name, err := ReverseName(a, zone)
		if err != nil || Join(name, zone) != strings.TrimSuffix(whole, ".") {
			t.Fatalf("%s in %s is %q, %v; want %s", a, zone, name, err, whole)
		}
	})
}

// TestReverseZones checks that reverse zones cover their address space exactly once, and that each can be converted back.
func TestReverseZones(t *testing.T) {
	for _, c := range []struct{ low, high, want string }{
		{"10.0.0.0", "10.255.255.255", "10.in-addr.arpa"},
		{"10.1.0.0", "10.2.255.255", "1.10.in-addr.arpa 2.10.in-addr.arpa"},
		{"192.0.2.0", "192.0.2.255", "2.0.192.in-addr.arpa"},
		{"192.0.2.64", "192.0.2.127", "64-127.2.0.192.in-addr.arpa"},
		{"192.0.2.200", "192.0.4.3", "200-255.2.0.192.in-addr.arpa 3.0.192.in-addr.arpa 0-3.4.0.192.in-addr.arpa"},
		{"0.0.0.0", "255.255.255.255", "in-addr.arpa"},
		{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "8.b.d.0.1.0.0.2.ip6.arpa"},
		{"2001:db8:0:1::", "2001:db8:0:1:ffff:ffff:ffff:ffff", "1.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"},
	} {
		low, high := netip.MustParseAddr(c.low), netip.MustParseAddr(c.high)
		names := ReverseZones(low, high, 16)
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s-%s: %s, want %s", low, high, got, c.want)
		}
		at := low
		for _, name := range names {
			from, to, ok := ReverseRange(name)
			if !ok || from != at {
				t.Errorf("%s is %s-%s, %v, want it to begin at %s", name, from, to, ok, at)
			}
			at = to.Next()
		}
		if at != high.Next() {
			t.Errorf("%s-%s: the zones end before %s", low, high, at)
		}
	}
	if names := ReverseZones(netip.MustParseAddr("10.0.0.0"), netip.MustParseAddr("10.3.255.255"), 3); names != nil {
		t.Errorf("too many are %v", names)
	}
}

// TestReverseAddress converts a reverse name back to its address, in whole zones and in classless ones.
func TestReverseAddress(t *testing.T) {
	for _, c := range []struct{ name, zone, want string }{
		{"10.0.0.10.in-addr.arpa", "0.0.10.in-addr.arpa", "10.0.0.10"},
		{"10.0.0.10.in-addr.arpa", "10.in-addr.arpa", "10.0.0.10"},
		{"5.0/25.2.0.192.in-addr.arpa", "0/25.2.0.192.in-addr.arpa", "192.0.2.5"},
		{"200.0/25.2.0.192.in-addr.arpa", "0/25.2.0.192.in-addr.arpa", ""},
		{"05.0-63.2.0.192.in-addr.arpa", "0-63.2.0.192.in-addr.arpa", ""},
		{"0.10.in-addr.arpa", "10.in-addr.arpa", ""},
		{"x.0.0.10.in-addr.arpa", "0.0.10.in-addr.arpa", ""},
		{"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", "8.b.d.0.1.0.0.2.ip6.arpa", "2001:db8::1"},
		{"www.example.com", "example.com", ""},
	} {
		a, ok := ReverseAddress(c.name, c.zone)
		if got := a.String(); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s in %s leads back from %s %t, want %s", c.name, c.zone, got, ok, c.want)
		}
	}
}
