package space

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

func TestUniqueLocal(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	seen := map[netip.Prefix]bool{}
	for _, text := range []string{"00:00:5e:00:53:01", "00:00:5e:00:53:02", "00:00:5e:ff:fe:00:53:03"} {
		mac, err := net.ParseMAC(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, when := range []time.Time{at, at.Add(time.Second), at.Add(time.Millisecond)} {
			p := UniqueLocal(mac, when)
			if p.Bits() != 48 || p.Masked() != p || !netip.MustParsePrefix("fd00::/8").Contains(p.Addr()) || seen[p] || UniqueLocal(mac, when) != p {
				t.Errorf("%s at %v gives %s", text, when, p)
			}
			seen[p] = true
		}
	}
	mac, _ := net.ParseMAC("00:00:5e:00:53:01")
	if got := net.HardwareAddr(eui64(mac)).String(); got != "02:00:5e:ff:fe:00:53:01" {
		t.Errorf("the EUI-64 is %s", got)
	}
}
