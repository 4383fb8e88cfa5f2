package space

import (
	"net/netip"
	"testing"
)

// FuzzParseRelative checks that a relative range is always within the hosts of the network, or returns an error.
func FuzzParseRelative(f *testing.F) {
	for _, text := range []string{"10,20", "1,1%", "5, 100 %", "0,1", "1,0", ",", "9223372036854775807,9223372036854775807", "1,101%",
		"-40,30", "-1,1%", "-9223372036854775808,1"} {
		f.Add(text)
	}
	networks := []Range{FromPrefix(netip.MustParsePrefix("10.0.0.0/24")), FromPrefix(netip.MustParsePrefix("192.0.2.8/31")),
		FromPrefix(netip.MustParsePrefix("2001:db8::/64"))}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRelative(text)
		if err != nil {
			return
		}
		for _, network := range networks {
			if at, err := r.Resolve(network); err == nil && (!Hosts(network).Contains(at) || !at.IsValid()) {
				t.Errorf("%q in %s is %s", text, network, at)
			}
		}
	})
}
