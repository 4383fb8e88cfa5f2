package dhcp

import (
	"net/netip"
	"testing"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
)

// TestStrangers checks which messages without a relay are answered.
func TestStrangers(t *testing.T) {
	link := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}
	for name, c := range map[string]struct {
		source, to, relay, client string
		stranger                  bool
	}{
		"broadcast of a new client":             {source: "0.0.0.0", to: "255.255.255.255"},
		"broadcast to the prefix":               {source: "10.0.0.9", to: "10.0.0.255"},
		"from the link":                         {source: "10.0.0.9", to: "10.0.0.1"},
		"renewal from a remote network":         {source: "192.0.2.9", to: "10.0.0.1", client: "192.0.2.9"},
		"rebinding after a move":                {source: "192.0.2.9", to: "255.255.255.255", client: "192.0.2.9"},
		"relay":                                 {source: "192.0.2.1", to: "10.0.0.1", relay: "192.0.2.1"},
		"relayed renewal":                       {source: "192.0.2.1", to: "10.0.0.1", relay: "192.0.2.1", client: "192.0.2.9"},
		"on this machine":                       {source: "127.0.0.1", to: "127.0.0.1"},
		"DISCOVER from elsewhere":               {source: "192.0.2.9", to: "10.0.0.1", stranger: true},
		"INFORM for a victim":                   {source: "192.0.2.9", to: "10.0.0.1", client: "198.51.100.1", stranger: true},
		"INFORM for a victim from the link":     {source: "10.0.0.9", to: "10.0.0.1", client: "198.51.100.1", stranger: true},
		"broadcast for a victim":                {source: "0.0.0.0", to: "255.255.255.255", client: "198.51.100.1", stranger: true},
		"from elsewhere for a client of a link": {source: "192.0.2.9", to: "10.0.0.1", client: "10.0.0.9", stranger: true},
	} {
		f := dhcpdata.Facts{}
		for text, to := range map[string]*netip.Addr{c.relay: &f.Relay, c.client: &f.Client} {
			if text != "" {
				*to = netip.MustParseAddr(text)
			}
		}
		in := incoming{from: netip.AddrPortFrom(netip.MustParseAddr(c.source), 68), to: netip.MustParseAddr(c.to)}
		f.Unicast = in.to != broadcast && !isBroadcastOf(link, in.to)
		if got := isStranger(in, &f, link); got != c.stranger {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestStrangers6 checks the same for DHCPv6.
func TestStrangers6(t *testing.T) {
	link := []netip.Prefix{netip.MustParsePrefix("2001:db8:1::1/64"), netip.MustParsePrefix("fe80::1/64")}
	for name, c := range map[string]struct {
		kind       uint8
		source, to string
		relayed    bool
		stranger   bool
	}{
		"SOLICIT to the group":             {kind: dhcpmsg.Solicit6, source: "fe80::9", to: "ff02::1:2"},
		"SOLICIT to the server":            {kind: dhcpmsg.Solicit6, source: "fe80::9", to: "2001:db8:1::1", stranger: true},
		"CONFIRM to the server":            {kind: dhcpmsg.Confirm6, source: "fe80::9", to: "2001:db8:1::1", stranger: true},
		"REBIND to the server":             {kind: dhcpmsg.Rebind6, source: "2001:db8:1::9", to: "2001:db8:1::1", stranger: true},
		"INFORMATION-REQUEST to it":        {kind: dhcpmsg.InformationRequest6, source: "2001:db8:9::9", to: "2001:db8:1::1", stranger: true},
		"relayed SOLICIT":                  {kind: dhcpmsg.Solicit6, source: "2001:db8:9::9", to: "2001:db8:1::1", relayed: true},
		"RENEW of an old client":           {kind: dhcpmsg.Renew6, source: "2001:db8:1::9", to: "2001:db8:1::1"},
		"REQUEST from elsewhere":           {kind: dhcpmsg.Request6, source: "2001:db8:9::9", to: "2001:db8:1::1", stranger: true},
		"SOLICIT on this machine":          {kind: dhcpmsg.Solicit6, source: "::1", to: "::1"},
		"SOLICIT from elsewhere to a site": {kind: dhcpmsg.Solicit6, source: "2001:db8:9::9", to: "ff05::1:3", stranger: true},
	} {
		m := &dhcpmsg.Message6{Type: c.kind}
		if c.relayed {
			m.Relays = []dhcpmsg.Relay6{{}}
		}
		if got := isStranger6(m, netip.MustParseAddr(c.source), netip.MustParseAddr(c.to), link); got != c.stranger {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestRelayOptionsWithoutRelay checks that sub-options that only a relay may send have no effect in the message of a client.
func TestRelayOptionsWithoutRelay(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing), nil)
	a := newAsker(t, e)
	selection := func(f *dhcpdata.Facts) {
		f.Options[optRelay] = []byte{5, 4, 10, 0, 0, 1, 11, 4, 192, 0, 2, 1}
	}
	a.ask(dhcpdata.Discover, 1, selection, func(f *dhcpdata.Facts) { f.Relay = netip.MustParseAddr("192.0.2.1") })
	offer := a.want(dhcpdata.Offer, "10.0.1.0")
	if string(offer.options[0].Value) != string([]byte{192, 0, 2, 1}) {
		t.Errorf("the server identifier is %v", offer.options[0].Value)
	}
	a.ask(dhcpdata.Discover, 2, selection, func(f *dhcpdata.Facts) { f.Relay = netip.Addr{} })
	a.none()
	a.ask(dhcpdata.Discover, 2, selection, func(f *dhcpdata.Facts) {
		f.Relay, f.Interface = netip.Addr{}, []netip.Prefix{netip.MustParsePrefix("10.0.0.1/16")}
	})
	offer = a.want(dhcpdata.Offer, "10.0.1.1")
	if string(offer.options[0].Value) != string([]byte{10, 0, 0, 1}) {
		t.Errorf("the server identifier is %v", offer.options[0].Value)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}
