package dhcpdata

import (
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// TestBounds checks that values that could not be sent, or that would end each lease at once, are refused.
func TestBounds(t *testing.T) {
	text := func(n int) string { return strconv.Quote(strings.Repeat("a", n)) }
	for _, c := range []struct {
		name, value string
		v6, valid   bool
	}{
		{"min-lease-time", "0", false, false}, {"min-lease-time", "1", false, true}, {"min-lease-time", "0", true, false},
		{"default-lease-time", "0", false, false}, {"default-lease-time", "0", true, false}, {"default-lease-time", "1", true, true},
		{"max-lease-time", "0", false, false}, {"max-lease-time", "0", true, false},
		{"filename", text(127), false, true}, {"filename", text(128), false, false},
		{"server-name", text(63), false, true}, {"server-name", text(64), false, false},
	} {
		if err := checkService(c.name, c.v6, json.RawMessage(c.value)); (err == nil) != c.valid {
			t.Errorf("%s %s: %v", c.name, c.value, err)
		}
	}
}

// TestOwnAddresses checks that the addresses of the server in the content are never leased, also if a relay is asked and the machine is not
// known.
func TestOwnAddresses(t *testing.T) {
	p := newPlan()
	p[ServerUnit] = []Item{Server{ID: 1, Name: "buoy", Configuration: 2, Addresses: []netip.Addr{addr("192.0.2.1"), addr("10.0.0.10")}}}
	p[NetworkUnit(7)][0] = Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/24"), Identifier: addr("10.0.0.11")}
	c := p.compile(t)
	d := Decide(c, message(Discover, 1, relayed("10.0.0.1", ""), asks("10.0.0.10")), memory{}, now)
	if d.Address != addr("10.0.0.13") { // .12 is reserved
		t.Errorf("%s is offered", d.Address)
	}
}

// TestServerWithoutDUID checks that a server without a DUID serves no network of IPv6.
func TestServerWithoutDUID(t *testing.T) {
	p := newPlan().with(NetworkUnit(40), Network{ID: 40, Prefix: netip.MustParsePrefix("2001:db8::/64")})
	units := Units{}
	for id, items := range p {
		one, err := EncodeUnit(id, items...)
		if err != nil {
			t.Fatal(err)
		}
		units[id] = one
	}
	if _, err := Compile(units, nil); err == nil || !strings.Contains(err.Error(), "DUID") {
		t.Error(err)
	}
}
