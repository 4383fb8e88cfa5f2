package dhcpdata

import (
	"testing"

	"portolan/internal/base/dhcpmsg"
)

// TestKeaAnswers6 checks what the comparison with Kea found: the options of a client with an address and a prefix, further associations in
// a RENEW, and a reservation for a client that renews another address.
func TestKeaAnswers6(t *testing.T) {
	c := newPlan6(option6(0, 23, "network"), option6(41, 23, "range"), option6(42, 24, "prefixes"), option6(43, 23, "address"),
		option6(45, 24, "prefix")).compile(t)
	value := func(d *Decision6, code uint16) string {
		for _, o := range d.Options {
			if o.Code == code {
				return string(o.Value)
			}
		}
		return ""
	}
	for _, one := range []struct {
		options  dhcpmsg.Options6
		client   byte
		dns, own string
	}{
		{dhcpmsg.Options6{na(1), pd(2)}, 9, "address", "prefix"},
		{dhcpmsg.Options6{pd(2), na(1)}, 9, "address", "prefix"},
		{dhcpmsg.Options6{na(1), pd(2)}, 1, "range", ""},
		{dhcpmsg.Options6{pd(2)}, 1, "network", "prefixes"},
	} {
		d := ask6{kind: dhcpmsg.Solicit6, client: one.client, options: append(one.options, requests(23, 24))}.decide(t, c, memory{})
		if value(d, 23) != one.dns || value(d, 24) != one.own {
			t.Errorf("client %d: the options are %q and %q, want %q and %q", one.client, value(d, 23), value(d, 24), one.dns, one.own)
		}
	}
	for _, one := range []struct {
		kind    uint8
		options dhcpmsg.Options6
		client  byte
		want    string
	}{
		{dhcpmsg.Renew6, dhcpmsg.Options6{pd(2)}, 9, "REPLY; ia-pd 2 2001:db8:1:8100::/56/86400"},
		{dhcpmsg.Renew6, dhcpmsg.Options6{na(1, "2001:db8:1::10")}, 9, "REPLY; ia-na 1 2001:db8:1::99/86400 2001:db8:1::10/0"},
		{dhcpmsg.Rebind6, dhcpmsg.Options6{na(1, "2001:db8:1::10")}, 9, "REPLY; ia-na 1 2001:db8:1::99/86400 2001:db8:1::10/0"},
		{dhcpmsg.Rebind6, dhcpmsg.Options6{pd(2)}, 9, "REPLY; ia-pd 2 2001:db8:1:8100::/56/86400"},
	} {
		if got := summary(t, ask6{kind: one.kind, client: one.client, options: one.options}.decide(t, c, memory{})); got != one.want {
			t.Errorf("%d: %s, want %s", one.kind, got, one.want)
		}
	}
}
