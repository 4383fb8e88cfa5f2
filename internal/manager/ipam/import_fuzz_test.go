package ipam

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzReadNetworks checks that any file is parsed or rejected, and that parsed ranges are valid.
func FuzzReadNetworks(f *testing.F) {
	for _, text := range []string{"network,name\n10.0.0.0/24,office\n", "Network;Name;Gateway\n 10.0.0.0/255.255.255.0 ; a ;10.0.0.1\n",
		"10.0.0.0/8\n2001:DB8::/32\n", "", "\"", "range\n10.0.0.1-10.0.0.9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, _, err := ReadNetworks(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, l := range lines {
			if !l.Range.Low.IsValid() {
				t.Errorf("%q: %+v", text, l)
			}
		}
	})
}

// FuzzReadAddresses checks that any file is parsed or rejected, and that parsed addresses are valid.
func FuzzReadAddresses(f *testing.F) {
	for _, text := range []string{"address,name,mac\n10.0.0.5,a,00:00:5e:00:53:01\n", "ip;state\n10.0.0.5;static\n",
		"10.0.0.7\n2001:db8::1\n", "", "\"", "address\n10.0.0.256"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, _, err := ReadAddresses(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, l := range lines {
			if l.Address == (netip.Addr{}) {
				t.Errorf("%q: %+v", text, l)
			}
		}
	})
}
