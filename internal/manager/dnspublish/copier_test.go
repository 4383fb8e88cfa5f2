package dnspublish

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"portolan/internal/manager/dns"
)

// TestTurnsOfCopies checks that a server that does not answer, and slow feeds, do not delay the zones of other servers. A zone is picked
// only once.
func TestTurnsOfCopies(t *testing.T) {
	c := &Copier{zones: map[string]*copiedZone{}, slots: make(chan struct{}, maxCopies), slow: make(chan struct{}, maxCopies)}
	add := func(kind string, n int, z copiedZone) {
		for i := range n {
			one := z
			c.zones[fmt.Sprint(kind, i)] = &one
		}
	}
	at := func(text string) []source { return []source{{Addr: netip.MustParseAddr(text)}} }
	add("silent", 40, copiedZone{primaries: at("192.0.2.1")})
	add("other", 1, copiedZone{primaries: at("192.0.2.2")})
	add("feed", 12, copiedZone{policy: &dns.ResponsePolicyZone{ResponsePolicyZoneType: dns.FeedPolicy}})
	add("later", 3, copiedZone{primaries: at("192.0.2.3"), next: time.Now().Add(time.Hour)})
	add("nowhere", 3, copiedZone{})
	picked := map[string]int{}
	for range 2 {
		for _, z := range c.pick(t.Context()) {
			switch {
			case z.isFeed():
				picked["feeds"]++
			case len(z.primaries) == 0:
				picked["nowhere"]++
			default:
				picked[z.firstSource().String()]++
			}
		}
	}
	if got, want := fmt.Sprint(picked), "map[192.0.2.1:2 192.0.2.2:1 feeds:8 nowhere:3]"; got != want {
		t.Errorf("picked were %s, want %s", got, want)
	}
	for id := range c.zones {
		if c.zones[id].cancel != nil {
			c.zones[id].cancel()
		}
	}
}
