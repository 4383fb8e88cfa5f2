package dhcpdata

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"portolan/internal/base/dhcpmsg"
)

// duid6 is the identifier of a client with a hardware address (DUID-LL).
func duid6(last byte) []byte { return []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, last} }

// newPlan6 returns content with IPv6: network 40 is 2001:db8:1::/48 with addresses ::10 to ::13 of its first /64, prefixes of length 56,
// and reservations of client 9 by DUID and of client 8 by hardware address. Network 50 is another link.
func newPlan6(more ...Item) plan {
	p := plan{
		ServerUnit: {Server{ID: 1, Name: "buoy", Configuration: 2, Addresses: []netip.Addr{addr("2001:db8::1")},
			DUID: Hex{0x00, 0x04, 0xac, 0x9a, 0xd5, 0x54, 0xa0, 0xbb, 0xf3, 0x6a, 0x66, 0x52, 0x7c, 0x2e, 0x18, 0x04, 0x85, 0x3c}}},
		NetworkUnit(40): {Network{ID: 40, Name: "Quay6", Prefix: netip.MustParsePrefix("2001:db8:1::/48")},
			Pool{ID: 41, Ranges: []Interval{{addr("2001:db8:1::10"), addr("2001:db8:1::13")}}},
			Pool{ID: 42, DelegatedLength: 56, Ranges: []Interval{{addr("2001:db8:1:8000::"), addr("2001:db8:1:83ff:ffff:ffff:ffff:ffff")}}},
			Reservation{ID: 43, Address: addr("2001:db8:1::99"), DUID: duid6(9)},
			Reservation{ID: 44, Address: addr("2001:db8:1::12"), MAC: Hex{2, 0, 0, 0, 0, 8}},
			Reservation{ID: 45, Address: addr("2001:db8:1:8100::"), PrefixLength: 56, DUID: duid6(9)}},
		NetworkUnit(50): {Network{ID: 50, Name: "Pier6", Prefix: netip.MustParsePrefix("2001:db8:2::/64")},
			Pool{ID: 51, Ranges: []Interval{{addr("2001:db8:2::10"), addr("2001:db8:2::ff")}}}},
	}
	return p.with(NetworkUnit(40), more...)
}

// service6 returns a service option of DHCPv6 at an object.
func service6(at int64, name, value string) Service {
	return Service{At: at, V6: true, Name: name, Value: json.RawMessage(value), From: Source{Level: AtNetwork, ID: 40}}
}

// option6 returns a client option of DHCPv6 at an object.
func option6(at int64, code uint16, value string) Option {
	return Option{At: at, V6: true, Code: code, Name: fmt.Sprint("option", code), Value: Hex(value), From: Source{Level: AtNetwork, ID: 40}}
}

// ask6 is a message for tests.
type ask6 struct {
	kind    uint8
	client  byte
	server  []byte
	options dhcpmsg.Options6
	link    string // of a relay
	local   string // of the interface
	more    func(*dhcpmsg.Message6)
}

// ia returns an association with addresses, or prefixes, that the client names.
func ia(code uint16, iaid uint32, hints ...string) dhcpmsg.Option6 {
	data := binary.BigEndian.AppendUint32(nil, iaid)
	if code != dhcpmsg.OptIATA6 {
		data = append(data, make([]byte, 8)...)
	}
	for _, h := range hints {
		if p, err := netip.ParsePrefix(h); err == nil {
			one := append(make([]byte, 8), byte(p.Bits()))
			data = dhcpmsg.AppendOption6(data, dhcpmsg.OptIAPrefix6, append(one, p.Addr().AsSlice()...))
			continue
		}
		one := append(netip.MustParseAddr(h).AsSlice(), make([]byte, 8)...)
		data = dhcpmsg.AppendOption6(data, dhcpmsg.OptIAAddress6, one)
	}
	return dhcpmsg.Option6{Code: code, Data: data}
}

func na(iaid uint32, hints ...string) dhcpmsg.Option6 { return ia(dhcpmsg.OptIANA6, iaid, hints...) }
func pd(iaid uint32, hints ...string) dhcpmsg.Option6 { return ia(dhcpmsg.OptIAPD6, iaid, hints...) }

// requests returns the option request option.
func requests(codes ...uint16) dhcpmsg.Option6 {
	var data []byte
	for _, c := range codes {
		data = binary.BigEndian.AppendUint16(data, c)
	}
	return dhcpmsg.Option6{Code: dhcpmsg.OptRequest6, Data: data}
}

// decide decides on the message, as it is read from a packet.
func (q ask6) decide(t testing.TB, c *Content, leases memory) *Decision6 {
	t.Helper()
	m := &dhcpmsg.Message6{Type: q.kind, Transaction: [3]byte{1, 2, 3}}
	if q.client > 0 {
		m.Options = append(m.Options, dhcpmsg.Option6{Code: dhcpmsg.OptClientID6, Data: duid6(q.client)})
	}
	server := q.server
	if server == nil && slices.Contains([]uint8{dhcpmsg.Request6, dhcpmsg.Renew6, dhcpmsg.Release6, dhcpmsg.Decline6}, q.kind) {
		server = c.ServerDUID()
	}
	if len(server) > 0 {
		m.Options = append(m.Options, dhcpmsg.Option6{Code: dhcpmsg.OptServerID6, Data: server})
	}
	m.Options = append(m.Options, q.options...)
	if q.link != "" {
		m.Relays = []dhcpmsg.Relay6{{Link: addr(q.link), Peer: addr("fe80::1")}}
	}
	if q.more != nil {
		q.more(m)
	}
	f := &Facts6{Message: m, Explain: true, Local: []netip.Addr{addr("2001:db8:1::13")}}
	local := q.local
	if q.link == "" && local == "" {
		local = "2001:db8:1::13/64"
	}
	if local != "" {
		f.Interface = []netip.Prefix{netip.MustParsePrefix("fe80::9/64"), netip.MustParsePrefix(local)}
	}
	return Decide6(c, f, leases, now)
}

// apply applies the changes of a decision.
func (m memory) apply(d *Decision6) {
	for _, c := range d.Changes {
		l := LeaseState{Network: c.Network, Address: c.Address, State: Leased, Client: c.Client, Hardware: d.Hardware, Start: c.Start,
			Expires: c.Expires}
		switch c.Action {
		case ActOffer:
			l.State = Offered
		case ActRelease:
			l.State = Free
		case ActDecline:
			l.State = Abandoned
		}
		m[c.Address] = l
	}
}

// summary returns the reply in words: its type, and for each association its addresses with their lifetimes, or its status.
func summary(t testing.TB, d *Decision6) string {
	t.Helper()
	words := []string{map[uint8]string{0: "none:" + string(d.Reason), dhcpmsg.Advertise6: "ADVERTISE", dhcpmsg.Reply6: "REPLY"}[d.Reply]}
	status := func(data []byte) string { return fmt.Sprint("status ", binary.BigEndian.Uint16(data)) }
	for _, o := range d.Options {
		switch o.Code {
		case dhcpmsg.OptStatus6:
			words = append(words, status(o.Value))
		case dhcpmsg.OptRapidCommit6:
			words = append(words, "rapid")
		case dhcpmsg.OptIANA6, dhcpmsg.OptIAPD6, dhcpmsg.OptIATA6:
			head := 12
			if o.Code == dhcpmsg.OptIATA6 {
				head = 4
			}
			word := fmt.Sprintf("%s %d", o.Name, binary.BigEndian.Uint32(o.Value))
			inner, err := dhcpmsg.ParseOptions6(o.Value[head:])
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range inner {
				switch one.Code {
				case dhcpmsg.OptIAAddress6:
					word += fmt.Sprintf(" %s/%d", netip.AddrFrom16([16]byte(one.Data)), binary.BigEndian.Uint32(one.Data[20:]))
				case dhcpmsg.OptIAPrefix6:
					word += fmt.Sprintf(" %s/%d/%d", netip.AddrFrom16([16]byte(one.Data[9:])), one.Data[8], binary.BigEndian.Uint32(one.Data[4:]))
				case dhcpmsg.OptStatus6:
					word += " " + status(one.Data)
				}
			}
			words = append(words, word)
		}
	}
	return strings.Join(words, "; ")
}

// TestReserved6 checks that a reservation by DUID or hardware address is for its client alone, for addresses and prefixes.
func TestReserved6(t *testing.T) {
	c := newPlan6().compile(t)
	for name, one := range map[string]struct {
		ask  ask6
		want string
	}{
		"by DUID": {ask6{kind: dhcpmsg.Solicit6, client: 9, options: dhcpmsg.Options6{na(1), pd(2)}},
			"ADVERTISE; ia-na 1 2001:db8:1::99/86400; ia-pd 2 2001:db8:1:8100::/56/86400"},
		"by hardware address": {ask6{kind: dhcpmsg.Solicit6, client: 8, options: dhcpmsg.Options6{na(1)}},
			"ADVERTISE; ia-na 1 2001:db8:1::12/86400"},
		"by the hardware address that the relay reports": {ask6{kind: dhcpmsg.Solicit6, client: 77, link: "2001:db8:1::1",
			options: dhcpmsg.Options6{na(1)}, more: func(m *dhcpmsg.Message6) {
				m.Relays[0].Options = dhcpmsg.Options6{{Code: dhcpmsg.OptLinkLayer6, Data: []byte{0, 1, 2, 0, 0, 0, 0, 8}}}
			}}, "ADVERTISE; ia-na 1 2001:db8:1::12/86400"},
		"asked for by another": {ask6{kind: dhcpmsg.Renew6, client: 3, options: dhcpmsg.Options6{na(1, "2001:db8:1::12")}},
			"REPLY; ia-na 1 status 3"},
		"a prefix asked for by another": {ask6{kind: dhcpmsg.Renew6, client: 3, options: dhcpmsg.Options6{pd(1, "2001:db8:1:8100::/56")}},
			"REPLY; ia-pd 1 status 3"},
	} {
		if got := summary(t, one.ask.decide(t, c, memory{})); got != one.want {
			t.Errorf("%s: %s, want %s", name, got, one.want)
		}
	}
	// The second association of a client gets another address than the reserved one.
	got := summary(t, ask6{kind: dhcpmsg.Solicit6, client: 9, options: dhcpmsg.Options6{na(1), na(2)}}.decide(t, c, memory{}))
	if strings.Count(got, "2001:db8:1::99/") != 1 || strings.Count(got, "ia-na 2 2001:db8:1::1") != 1 {
		t.Error(got)
	}
}

// TestReservedMACKeepsAddress6 checks that the operating system of a machine gets the address that is reserved for its hardware, although
// its firmware holds it with another DUID, and that a second association of the same client does not take it.
func TestReservedMACKeepsAddress6(t *testing.T) {
	c := newPlan6().compile(t)
	leases := memory{}
	by := func(mac byte) func(m *dhcpmsg.Message6) {
		return func(m *dhcpmsg.Message6) {
			m.Relays[0].Options = dhcpmsg.Options6{{Code: dhcpmsg.OptLinkLayer6, Data: []byte{0, 1, 2, 0, 0, 0, 0, mac}}}
		}
	}
	ask := func(kind uint8, client, mac byte, options ...dhcpmsg.Option6) string {
		t.Helper()
		d := ask6{kind: kind, client: client, link: "2001:db8:1::1", options: options, more: by(mac)}.decide(t, c, leases)
		leases.apply(d)
		return summary(t, d)
	}
	const reserved = "2001:db8:1::12"
	for what, got := range map[string]string{"the firmware": ask(dhcpmsg.Request6, 70, 8, na(1, reserved)),
		"the operating system": ask(dhcpmsg.Request6, 71, 8, na(7, reserved)), "its renewal": ask(dhcpmsg.Renew6, 71, 8, na(7, reserved))} {
		if !strings.Contains(got, reserved+"/86400") {
			t.Errorf("%s gets %s", what, got)
		}
	}
	if l := leases[addr(reserved)]; l.Client != Identity6(false, 7, duid6(71)) {
		t.Errorf("the lease is of %x", l.Client)
	}
	if got := ask(dhcpmsg.Solicit6, 71, 8, na(8)); strings.Contains(got, reserved+"/") {
		t.Errorf("a second association gets %s", got)
	}
	if got := ask(dhcpmsg.Request6, 72, 9, na(1, reserved)); strings.Contains(got, reserved+"/") {
		t.Errorf("other hardware gets %s", got)
	}
	leases[addr(reserved)] = LeaseState{Network: 40, Address: addr(reserved), State: Abandoned, Hardware: []byte{2, 0, 0, 0, 0, 8}}
	if got := ask(dhcpmsg.Solicit6, 73, 8, na(1)); strings.Contains(got, reserved+"/") {
		t.Errorf("an abandoned address is offered: %s", got)
	}
}

// TestDeniedMACPool6 checks that members of the pool DENY get no answer in DHCPv6, and that they can release their addresses.
func TestDeniedMACPool6(t *testing.T) {
	p := newPlan6()
	p[MACPoolUnit(60)] = []Item{MACPool{ID: 60, Name: "DENY", Deny: true}, MACAddress{ID: 61, MAC: Hex{2, 0, 0, 0, 0, 3}}}
	c := p.compile(t)
	for kind, want := range map[uint8]string{dhcpmsg.Solicit6: "none:denied-mac-pool", dhcpmsg.Renew6: "none:denied-mac-pool",
		dhcpmsg.InformationRequest6: "none:denied-mac-pool", dhcpmsg.Release6: "REPLY; status 0; ia-na 1 status 3"} {
		q := ask6{kind: kind, client: 3}
		if kind != dhcpmsg.InformationRequest6 {
			q.options = dhcpmsg.Options6{na(1, "2001:db8:1::10")}
		}
		if got := summary(t, q.decide(t, c, memory{})); got != want {
			t.Errorf("%d: %s, want %s", kind, got, want)
		}
	}
}

// TestExchange6 follows clients through their exchanges.
func TestExchange6(t *testing.T) {
	c := newPlan6().compile(t)
	leases := memory{}
	ask := func(q ask6) string {
		t.Helper()
		d := q.decide(t, c, leases)
		leases.apply(d)
		return summary(t, d)
	}
	addressOf := func(text string) string {
		_, rest, _ := strings.Cut(text, "ia-na 1 ")
		a, _, _ := strings.Cut(rest, "/")
		return a
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	offer := ask(ask6{kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{na(1)}})
	first := addressOf(offer)
	want("the same offer", ask(ask6{kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{na(1)}}), offer)
	want("REQUEST", ask(ask6{kind: dhcpmsg.Request6, client: 1, options: dhcpmsg.Options6{na(1, first)}}), "REPLY; ia-na 1 "+first+"/86400")
	if l := leases[addr(first)]; l.State != Leased || l.Network != 40 || l.Expires != now+86400 {
		t.Errorf("%+v", l)
	}
	want("CONFIRM", ask(ask6{kind: dhcpmsg.Confirm6, client: 1, options: dhcpmsg.Options6{na(1, first)}}), "REPLY; status 0")
	want("CONFIRM of another link", ask(ask6{kind: dhcpmsg.Confirm6, client: 1, link: "2001:db8:2::1",
		options: dhcpmsg.Options6{na(1, first)}}), "REPLY; status 4")
	want("RENEW", ask(ask6{kind: dhcpmsg.Renew6, client: 1, options: dhcpmsg.Options6{na(1, first)}}), "REPLY; ia-na 1 "+first+"/86400")
	want("REBIND", ask(ask6{kind: dhcpmsg.Rebind6, client: 1, options: dhcpmsg.Options6{na(1, first)}}), "REPLY; ia-na 1 "+first+"/86400")
	want("REQUEST of another link", ask(ask6{kind: dhcpmsg.Request6, client: 1, link: "2001:db8:2::1",
		options: dhcpmsg.Options6{na(1, first)}}), "REPLY; ia-na 1 status 4")
	want("REBIND of another link", ask(ask6{kind: dhcpmsg.Rebind6, client: 1, link: "2001:db8:2::1",
		options: dhcpmsg.Options6{na(1, first)}}), "REPLY; ia-na 1 "+first+"/0")
	want("RENEW of another's address", ask(ask6{kind: dhcpmsg.Renew6, client: 2, options: dhcpmsg.Options6{na(1, first)}}),
		"REPLY; ia-na 1 status 3")
	want("REBIND of another's address", ask(ask6{kind: dhcpmsg.Rebind6, client: 2, options: dhcpmsg.Options6{na(1, first)}}),
		"none:not-leased")
	want("REBIND of a prefix that is not delegated", ask(ask6{kind: dhcpmsg.Rebind6, client: 2,
		options: dhcpmsg.Options6{pd(1, "2001:db8:1:7000::/56"), pd(2, "2001:db8:77::/56")}}), "REPLY; ia-pd 1 2001:db8:1:7000::/56/0")
	want("RELEASE of another's address", ask(ask6{kind: dhcpmsg.Release6, client: 2, options: dhcpmsg.Options6{na(1, first)}}),
		"REPLY; status 0; ia-na 1 status 3")
	second := addressOf(ask(ask6{kind: dhcpmsg.Request6, client: 2, options: dhcpmsg.Options6{na(1)}}))
	if second == first || second == "" {
		t.Errorf("both clients have %q", first)
	}
	// The address .13 is the server's own, .12 is reserved: both addresses of the range are leased.
	want("SOLICIT without a free address", ask(ask6{kind: dhcpmsg.Solicit6, client: 3, options: dhcpmsg.Options6{na(1)}}),
		"ADVERTISE; ia-na 1 status 2")
	want("REQUEST without a free address", ask(ask6{kind: dhcpmsg.Request6, client: 3, options: dhcpmsg.Options6{na(1), pd(5)}})[:27],
		"REPLY; ia-na 1 status 2; ia")
	want("RELEASE", ask(ask6{kind: dhcpmsg.Release6, client: 1, options: dhcpmsg.Options6{na(1, first)}}), "REPLY; status 0")
	want("RENEW after the release", ask(ask6{kind: dhcpmsg.Renew6, client: 1, options: dhcpmsg.Options6{na(1, first)}}),
		"REPLY; ia-na 1 "+first+"/86400")
	want("DECLINE", ask(ask6{kind: dhcpmsg.Decline6, client: 1, options: dhcpmsg.Options6{na(1, first)}}), "REPLY; status 0")
	if leases[addr(first)].State != Abandoned {
		t.Error("a declined address is not abandoned")
	}
	want("an abandoned address", ask(ask6{kind: dhcpmsg.Request6, client: 1, options: dhcpmsg.Options6{na(1, first)}}),
		"REPLY; ia-na 1 status 2")
	want("INFORMATION-REQUEST", ask(ask6{kind: dhcpmsg.InformationRequest6}), "REPLY")
	want("IA_TA", ask(ask6{kind: dhcpmsg.Solicit6, client: 4, options: dhcpmsg.Options6{ia(dhcpmsg.OptIATA6, 1)}}),
		"ADVERTISE; ia-ta 1 status 2")
	want("another network", ask(ask6{kind: dhcpmsg.Solicit6, client: 4, link: "2001:db8:77::1", options: dhcpmsg.Options6{na(1)}}),
		"none:no-network")
}

// TestPrefixes6 checks the delegation of prefixes: whole and distinct prefixes, the wished length by each mode, and the end of the range.
func TestPrefixes6(t *testing.T) {
	c := newPlan6().compile(t)
	leases, seen := memory{}, map[netip.Addr]bool{}
	for client := range byte(3) { // 2001:db8:1:8000::/56 to :8300::/56, with :8100:: reserved
		d := ask6{kind: dhcpmsg.Request6, client: client + 20, options: dhcpmsg.Options6{pd(1)}}.decide(t, c, leases)
		leases.apply(d)
		if len(d.Changes) != 1 || d.Changes[0].PrefixLength != 56 || d.Changes[0].Pool != 42 {
			t.Fatalf("%+v", d)
		}
		a := d.Changes[0].Address
		if seen[a] || a == addr("2001:db8:1:8100::") || netip.PrefixFrom(a, 56).Masked().Addr() != a {
			t.Errorf("the prefix %s", a)
		}
		seen[a] = true
	}
	if got := summary(t, ask6{kind: dhcpmsg.Solicit6, client: 30, options: dhcpmsg.Options6{pd(1)}}.decide(t, c, leases)); got !=
		"ADVERTISE; ia-pd 1 status 6" {
		t.Error(got)
	}
	more := Pool{ID: 46, DelegatedLength: 60, Ranges: []Interval{{addr("2001:db8:1:9000::"), addr("2001:db8:1:9fff:ffff:ffff:ffff:ffff")}}}
	for mode, want := range map[string]string{"prefer": "56 60 60", "exact": "56 60 0", "minimum": "56 60 0", "maximum": "56 60 60",
		"ignore": "56 56 56"} {
		c := newPlan6(more, service6(0, "prefix-length-mode", `"`+mode+`"`)).compile(t)
		var got []string
		for _, length := range []int{56, 60, 64} {
			d := ask6{kind: dhcpmsg.Solicit6, client: 30, options: dhcpmsg.Options6{pd(1, fmt.Sprintf("::/%d", length))}}.decide(t, c, memory{})
			n := 0
			if len(d.Changes) > 0 {
				n = d.Changes[0].PrefixLength
			}
			got = append(got, fmt.Sprint(n))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", mode, got, want)
		}
	}
	// A wished prefix is taken where it is free.
	if got := summary(t, ask6{kind: dhcpmsg.Request6, client: 30, options: dhcpmsg.Options6{pd(1, "2001:db8:1:8200::/56")}}.decide(t, c,
		memory{})); got != "REPLY; ia-pd 1 2001:db8:1:8200::/56/86400" {
		t.Error(got)
	}
}

// TestServices6 checks that each service option that is not refused has its effect.
func TestServices6(t *testing.T) {
	solicit := ask6{kind: dhcpmsg.Solicit6, client: 8, options: dhcpmsg.Options6{na(1)}}
	request := ask6{kind: dhcpmsg.Request6, client: 8, options: dhcpmsg.Options6{na(1)}}
	rapid := ask6{kind: dhcpmsg.Solicit6, client: 8, options: dhcpmsg.Options6{na(1), {Code: dhcpmsg.OptRapidCommit6}}}
	held := func() memory {
		client := Identity6(false, 1, duid6(8))
		return memory{addr("2001:db8:1::12"): {Network: 40, Address: addr("2001:db8:1::12"), State: Leased, Client: client, Start: now - 100,
			Expires: now + 900}}
	}
	data := func(d *Decision6, code uint16) []byte {
		for _, o := range d.Options {
			if o.Code == code {
				return o.Value
			}
		}
		return nil
	}
	tried := map[string]bool{}
	check := func(name, value string, q ask6, leases memory, before, after func(d *Decision6) bool) {
		t.Helper()
		tried[name] = true
		if d := q.decide(t, newPlan6().compile(t), leases); !before(d) {
			t.Errorf("without %s: %s %+v", name, summary(t, d), d.Changes)
		}
		c := newPlan6(service6(0, name, value)).compile(t)
		if d := q.decide(t, c, leases); !after(d) {
			t.Errorf("with %s: %s %+v", name, summary(t, d), d.Changes)
		}
	}
	valid := func(n, preferred uint32) func(*Decision6) bool {
		return func(d *Decision6) bool { return d.Changes[0].Valid == n && d.Changes[0].Preferred == preferred }
	}
	check("default-lease-time", "800", request, memory{}, valid(86400, 54000), valid(800, 500))
	check("preferred-lifetime", "100", request, memory{}, valid(86400, 54000), valid(86400, 100))
	check("max-lease-time", "800", request, memory{}, valid(86400, 54000), valid(800, 500))
	check("min-lease-time", "86000", ask6{kind: dhcpmsg.Renew6, client: 8, options: dhcpmsg.Options6{wish("2001:db8:1::12", 60)}}, memory{},
		valid(300, 187), valid(86000, 53750))
	check("dhcp-cache-threshold", "5", request, held(),
		func(d *Decision6) bool { return d.Changes[0].Action == ActRenew && d.Changes[0].Valid == 900 },
		func(d *Decision6) bool { return d.Changes[0].Action == ActCommit })
	check("dhcpv6-set-tee-times", "false", request, memory{}, func(d *Decision6) bool {
		v := data(d, dhcpmsg.OptIANA6)
		return binary.BigEndian.Uint32(v[4:]) == 27000 && binary.BigEndian.Uint32(v[8:]) == 43200
	}, func(d *Decision6) bool { return bytes.Equal(data(d, dhcpmsg.OptIANA6)[4:12], make([]byte, 8)) })
	check("preference", "7", solicit, memory{}, func(d *Decision6) bool { return data(d, dhcpmsg.OptPreference6) == nil },
		func(d *Decision6) bool { return bytes.Equal(data(d, dhcpmsg.OptPreference6), []byte{7}) })
	check("rapid-commit", "true", rapid, memory{}, func(d *Decision6) bool { return d.Reply == dhcpmsg.Advertise6 },
		func(d *Decision6) bool {
			return summary(t, d) == "REPLY; ia-na 1 2001:db8:1::12/86400; rapid" && d.Changes[0].Action == ActCommit
		})
	check("boot-unknown-clients", "false", ask6{kind: dhcpmsg.Solicit6, client: 3, options: dhcpmsg.Options6{na(1)}}, memory{},
		func(d *Decision6) bool { return len(d.Changes) == 1 },
		func(d *Decision6) bool {
			return summary(t, d) == "ADVERTISE; ia-na 1 status 2" && d.Reason == UnknownClient
		})
	declines := ask6{kind: dhcpmsg.Decline6, client: 8, options: dhcpmsg.Options6{na(1, "2001:db8:1::12")}}
	check("abandon-lease-time", "60", declines, held(),
		func(d *Decision6) bool { return d.Changes[0].AbandonSeconds == 86400 },
		func(d *Decision6) bool { return d.Changes[0].AbandonSeconds == 60 })
	if d := declines.decide(t, newPlan6(service6(44, "abandon-lease-time", "70")).compile(t), held()); d.Changes[0].AbandonSeconds != 70 {
		t.Errorf("a declined reserved address: %+v", d.Changes)
	}
	elsewhere := memory{addr("2001:db8:2::10"): {Network: 50, Address: addr("2001:db8:2::10"), State: Leased,
		Client: Identity6(false, 1, duid6(8)), Start: now - 9, Expires: now + 9}}
	check("release-on-roam", "true", request, elsewhere, func(d *Decision6) bool { return len(d.Changes) == 1 }, func(d *Decision6) bool {
		return slices.ContainsFunc(d.Changes, func(c Change6) bool { return c.Action == ActRelease && c.Address == addr("2001:db8:2::10") })
	})
	tried["prefix-length-mode"] = true                                     // TestPrefixes6
	tried["delegated-prefix-length"], tried["shared-network"] = true, true // the manager makes them parts of ranges and networks
	for _, name := range []string{"limit-addresses-per-ia", "limit-prefixes-per-ia"} {
		tried[name] = true
		if err := checkService(name, true, json.RawMessage("2")); err == nil {
			t.Errorf("%s: 2 is accepted", name)
		}
	}
	for _, o := range services6 { // TestNames and TestNames6: the families share the code
		if strings.HasPrefix(o.Name, "ddns-") || strings.HasPrefix(o.Name, "update-") || strings.HasPrefix(o.Name, "do-") {
			tried[o.Name] = true
		}
	}
	tried["client-updates"] = true
	for _, o := range services6 {
		if (o.Effect == "") == (o.Refusal == "") || (o.Effect != "") != tried[o.Name] {
			t.Errorf("%s: the effect is %q, the refusal %q, tried is %t", o.Name, o.Effect, o.Refusal, tried[o.Name])
		}
	}
}

// wish returns an association with an address and the valid lifetime that the client asks for.
func wish(address string, valid uint32) dhcpmsg.Option6 {
	o := na(1, address)
	binary.BigEndian.PutUint32(o.Data[len(o.Data)-4:], valid)
	return o
}

// TestOptions6 checks that a client gets the options that it requests, of the most specific level, among them
// vendor options.
func TestOptions6(t *testing.T) {
	p := newPlan6(option6(0, 23, "network"), option6(41, 23, "range"), option6(43, 23, "address"), option6(0, 24, "search"),
		option6(0, dhcpmsg.OptSolMaxRT6, "\x00\x00\x01\x00"))
	p.with(NetworkUnit(40), option6(0, 17, "\x00\x00\x11\x8b\x00\x05\x00\x06vendor"))
	p.with(ServerUnit, Option{V6: true, Code: 23, Name: "dns", Value: Hex("server"), From: Source{Level: AtServer, ID: 1}})
	c := p.compile(t)
	options := func(q ask6) string {
		var words []string
		for _, o := range q.decide(t, c, memory{}).Options {
			if !slices.Contains([]uint16{1, 2, 3, 4, 25, 13}, o.Code) {
				words = append(words, fmt.Sprintf("%d:%q", o.Code, o.Value))
			}
		}
		return strings.Join(words, " ")
	}
	fqdn := dhcpmsg.Option6{Code: dhcpmsg.OptFQDN6, Data: []byte("\x01\x05crane\x00")}
	for _, one := range []struct {
		q    ask6
		want string
	}{
		{ask6{kind: dhcpmsg.Solicit6, client: 9, options: dhcpmsg.Options6{na(1), requests(23)}}, `23:"address"`},
		{ask6{kind: dhcpmsg.Solicit6, client: 3, options: dhcpmsg.Options6{na(1), requests(23, 99)}}, `23:"range"`},
		{ask6{kind: dhcpmsg.InformationRequest6, client: 3, options: dhcpmsg.Options6{requests(24, 23)}}, `23:"network" 24:"search"`},
		{ask6{kind: dhcpmsg.InformationRequest6, link: "2001:db8:2::1", options: dhcpmsg.Options6{requests(24, 23)}}, `23:"server"`},
		{ask6{kind: dhcpmsg.InformationRequest6, options: dhcpmsg.Options6{requests(17)}}, `17:"\x00\x00\x11\x8b\x00\x05\x00\x06vendor"`},
		{ask6{kind: dhcpmsg.Solicit6, client: 3, options: dhcpmsg.Options6{na(1)}}, ``},
		{ask6{kind: dhcpmsg.Solicit6, client: 3, options: dhcpmsg.Options6{ia(dhcpmsg.OptIATA6, 1)}}, `82:"\x00\x00\x01\x00"`},
		{ask6{kind: dhcpmsg.Solicit6, client: 3, options: dhcpmsg.Options6{na(1), fqdn}}, `39:"\x06\x05crane\x00"`},
		{ask6{kind: dhcpmsg.Solicit6, client: 3, options: dhcpmsg.Options6{na(1), requests(1, 2, 3, 8, 9, 14, 18)}}, ``},
	} {
		if got := options(one.q); got != one.want {
			t.Errorf("%+v: %s, want %s", one.q, got, one.want)
		}
	}
	if d := (ask6{kind: dhcpmsg.Solicit6, client: 3, options: dhcpmsg.Options6{na(1), fqdn}}).decide(t, c, memory{}); d.HostName != "crane" {
		t.Errorf("the name is %q", d.HostName)
	}
}

// TestBadMessages6 checks that messages that are not valid get no answer (RFC 9915 section 16).
func TestBadMessages6(t *testing.T) {
	c := newPlan6().compile(t)
	own := c.ServerDUID()
	first := "2001:db8:1::10"
	truncated := func(o dhcpmsg.Option6, n int) dhcpmsg.Option6 {
		return dhcpmsg.Option6{Code: o.Code, Data: o.Data[:len(o.Data)-n]}
	}
	nested := dhcpmsg.Option6{Code: dhcpmsg.OptIANA6, Data: dhcpmsg.AppendOption6(na(1).Data, dhcpmsg.OptIANA6, na(2).Data)}
	late := na(1, first)
	binary.BigEndian.PutUint32(late.Data[len(late.Data)-8:], 10) // preferred longer than valid
	long := pd(1, "2001:db8:1:8000::/56")
	long.Data[12+4+8] = 129
	var many dhcpmsg.Options6
	for i := range uint32(200) {
		many = append(many, na(i))
	}
	for name, q := range map[string]ask6{
		"SOLICIT with a server":             {kind: dhcpmsg.Solicit6, client: 1, server: own, options: dhcpmsg.Options6{na(1)}},
		"SOLICIT without a client":          {kind: dhcpmsg.Solicit6, options: dhcpmsg.Options6{na(1)}},
		"CONFIRM with a server":             {kind: dhcpmsg.Confirm6, client: 1, server: own, options: dhcpmsg.Options6{na(1, first)}},
		"CONFIRM without addresses":         {kind: dhcpmsg.Confirm6, client: 1, options: dhcpmsg.Options6{na(1)}},
		"REBIND with a server":              {kind: dhcpmsg.Rebind6, client: 1, server: own, options: dhcpmsg.Options6{na(1, first)}},
		"REQUEST without a client":          {kind: dhcpmsg.Request6, options: dhcpmsg.Options6{na(1)}},
		"REQUEST for another server":        {kind: dhcpmsg.Request6, client: 1, server: []byte("other"), options: dhcpmsg.Options6{na(1)}},
		"RENEW without a server":            {kind: dhcpmsg.Renew6, client: 1, server: []byte{}, options: dhcpmsg.Options6{na(1, first)}},
		"INFORMATION-REQUEST with an IA":    {kind: dhcpmsg.InformationRequest6, client: 1, options: dhcpmsg.Options6{na(1)}},
		"INFORMATION-REQUEST for another":   {kind: dhcpmsg.InformationRequest6, client: 1, server: []byte("other")},
		"an IA in an IA":                    {kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{nested}},
		"an IAID twice":                     {kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{na(1), na(1)}},
		"200 IAs":                           {kind: dhcpmsg.Solicit6, client: 1, options: many},
		"an address outside of an IA":       {kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{{Code: 5, Data: make([]byte, 24)}}},
		"a prefix length of 129":            {kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{long}},
		"a truncated IA":                    {kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{truncated(na(1), 1)}},
		"a truncated address":               {kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{truncated(na(1, first), 1)}},
		"an odd option request":             {kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{{Code: 6, Data: []byte{0, 23, 0}}}},
		"a prefix in an IA of addresses":    {kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{na(1, "2001:db8::/56")}},
		"an address in an IA of prefixes":   {kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{pd(1, first)}},
		"a link address that is not served": {kind: dhcpmsg.Solicit6, client: 1, link: "2001:db8:99::1", options: dhcpmsg.Options6{na(1)}},
	} {
		if d := q.decide(t, c, memory{}); d.Reply != 0 || len(d.Changes) > 0 || d.Reason == Served {
			t.Errorf("%s: %s", name, summary(t, d))
		}
	}
	if got := summary(t, ask6{kind: dhcpmsg.Solicit6, client: 1, options: dhcpmsg.Options6{late}}.decide(t, c, memory{})); got !=
		"ADVERTISE; ia-na 1 2001:db8:1::10/86400" { // lifetimes that contradict each other are ignored
		t.Error(got)
	}
	// A prefix length of 0 is ignored, and a relay on layer 2 has no link address.
	if got := summary(t, ask6{kind: dhcpmsg.Solicit6, client: 9, link: "::", local: "2001:db8:1::1/64",
		options: dhcpmsg.Options6{pd(1, "::/0")}}.decide(t, c, memory{})); got != "ADVERTISE; ia-pd 1 2001:db8:1:8100::/56/86400" {
		t.Error(got)
	}
	inner := ask6{kind: dhcpmsg.Solicit6, client: 9, options: dhcpmsg.Options6{na(1)}, link: "2001:db8:1::1",
		more: func(m *dhcpmsg.Message6) {
			m.Relays = []dhcpmsg.Relay6{{Link: addr("2001:db8:2::1"), Peer: addr("::1")}, {Link: addr("2001:db8:1::1"), Peer: addr("::1")},
				{Link: addr("::"), Peer: addr("::1")}}
		}}
	if d := inner.decide(t, c, memory{}); d.Network != 40 {
		t.Errorf("of three relays the network is %d", d.Network)
	}
	if _, err := EncodeUnit(NetworkUnit(40), service6(0, "prefix-length-mode", `"longest"`)); err == nil {
		t.Error("an unknown mode is accepted")
	}
}

// TestOneHolder6 runs random exchanges and checks that no address or prefix has two holders, and that each is of a range or reserved.
func TestOneHolder6(t *testing.T) {
	c := newPlan6().compile(t)
	dice := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // repeatable
	leases := memory{}
	kinds := []uint8{dhcpmsg.Solicit6, dhcpmsg.Request6, dhcpmsg.Renew6, dhcpmsg.Rebind6, dhcpmsg.Release6, dhcpmsg.Decline6}
	addresses := []string{"2001:db8:1::10", "2001:db8:1::11", "2001:db8:1::12", "2001:db8:1::13", "2001:db8:1::99", "2001:db8:1::500"}
	for range 5000 {
		q := ask6{kind: kinds[dice.IntN(len(kinds))], client: byte(1 + dice.IntN(10))}
		q.options = dhcpmsg.Options6{na(uint32(dice.IntN(2)), addresses[dice.IntN(len(addresses))]),
			pd(uint32(dice.IntN(2)), fmt.Sprintf("2001:db8:1:8%d00::/56", dice.IntN(4)))}
		d := q.decide(t, c, leases)
		for _, change := range d.Changes {
			l, ok := leases[change.Address]
			if change.Action == ActCommit || change.Action == ActOffer {
				if ok && l.State != Free && l.Client != change.Client {
					t.Fatalf("%s is given to another holder: %+v, %s", change.Address, l, summary(t, d))
				}
				for _, r := range c.networks[40].byAddress[change.Address] {
					if len(r.DUID) > 0 && !bytes.Equal(r.DUID, d.DUID) || len(r.MAC) > 0 && !bytes.Equal(r.MAC, d.Hardware) {
						t.Fatalf("%s is reserved for another client", change.Address)
					}
				}
				if change.Pool == 0 && change.Reservation == 0 || change.Address == addr("2001:db8:1::13") {
					t.Fatalf("%s is not of a range", change.Address)
				}
			} else if l.Client != change.Client {
				t.Fatalf("%s is ended for another holder: %+v", change.Address, l)
			}
		}
		leases.apply(d)
		if dice.IntN(20) == 0 { // time passes
			for a, l := range leases {
				if l.State = Free; dice.IntN(3) == 0 {
					leases[a] = l
				}
			}
		}
	}
}

// TestIntervals6 checks the numbers of prefixes, and that each number is another one inside of the range.
func TestIntervals6(t *testing.T) {
	for _, one := range []struct {
		first, last string
		length      int
		count       uint64
	}{
		{"2001:db8::", "2001:db8::ffff:ffff:ffff:ffff", 64, 1},
		{"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", 64, 0},
		{"2001:db8::1", "2001:db8:0:2:ffff:ffff:ffff:ffff", 64, 2},
		{"2001:db8::", "2001:db8:0:2:ffff:ffff:ffff:fffe", 64, 2},
		{"2001:db8::", "2001:db8:ff:ffff:ffff:ffff:ffff:ffff", 56, 65536},
		{"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 64, 1<<64 - 1},
		{"ffff:ffff:ffff:ffff::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 64, 0},
		{"::1", "::5", 64, 0},
		{"2001:db8::", "2001:dbf:ffff:ffff:ffff:ffff:ffff:ffff", 32, 8},
	} {
		i := Interval{addr(one.first), addr(one.last)}
		first, n := i.firstPrefix(one.length)
		if n != one.count {
			t.Errorf("%s has %d prefixes of length %d, want %d", i, n, one.length, one.count)
		}
		p := &pool{Pool: Pool{DelegatedLength: one.length, Ranges: []Interval{i}}}
		if p.measure6(); p.size6 != n || n > 0 && p.nth(0) != first {
			t.Errorf("%s: %d, %s", i, p.size6, p.nth(0))
		}
		if n > 0 {
			last := netip.PrefixFrom(p.nth(n-1), one.length)
			if last.Masked().Addr() != last.Addr() || !i.Contains(last.Addr()) || n < 1<<63 && !i.Contains(lastOf(last)) {
				t.Errorf("%s: the last of %d is %s", i, n, last)
			}
		}
	}
}

// FuzzDecide6 checks that no message makes the decision panic.
func FuzzDecide6(f *testing.F) {
	c := newPlan6().compile(f)
	packet := dhcpmsg.AppendOption6([]byte{dhcpmsg.Solicit6, 1, 2, 3}, dhcpmsg.OptClientID6, duid6(1))
	f.Add(dhcpmsg.AppendOption6(packet, dhcpmsg.OptIANA6, na(1, "2001:db8:1::10").Data))
	f.Fuzz(func(t *testing.T, packet []byte) {
		m, err := dhcpmsg.Parse6(packet)
		if err != nil {
			return
		}
		d := Decide6(c, &Facts6{Message: m, Interface: []netip.Prefix{netip.MustParsePrefix("2001:db8:1::1/64")}}, memory{}, now)
		if d.Reply == 0 && (len(d.Changes) > 0 || d.Reason == Served) {
			t.Errorf("%+v", d)
		}
	})
}
