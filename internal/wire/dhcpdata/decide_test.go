package dhcpdata

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// memory is a view of leases for tests.
type memory map[netip.Addr]LeaseState

func (m memory) Lease(a netip.Addr) (LeaseState, bool) { l, ok := m[a]; return l, ok }

func (m memory) ClientLease(network int64, client string) (found LeaseState, ok bool) {
	for _, l := range m {
		if l.Network == network && l.Client == client && (!ok || l.Start > found.Start) {
			found, ok = l, true
		}
	}
	return found, ok
}

func (m memory) HardwareLeases(network int64, hardware []byte) (all []LeaseState) {
	for _, l := range m {
		if l.Network == network && string(l.Hardware) == string(hardware) {
			all = append(all, l)
		}
	}
	return all
}

func (m memory) OtherLeases(network int64, client string) (all []LeaseState) {
	for _, l := range m {
		if l.Network != network && l.Client == client {
			all = append(all, l)
		}
	}
	return all
}

func (m memory) NextFree(_, _ int64, ranges []Interval, abandoned bool, usable func(netip.Addr) bool) (best netip.Addr, ok bool) {
	for _, i := range ranges {
		for a := i.First; i.Contains(a); a = a.Next() {
			l, known := m[a]
			if usable(a) && (known && abandoned && l.State == Abandoned || !abandoned && (!known || l.State == Free)) &&
				(!ok || l.Expires < m[best].Expires) {
				best, ok = a, true
			}
		}
	}
	return best, ok
}

func (m memory) Exhausted(int64) bool { return false }

func (m memory) CountUsed(int64) (n uint64) {
	for _, l := range m {
		if l.State == Leased {
			n++
		}
	}
	return n
}

func (m memory) Members(class int64, without string) (n int) {
	for _, l := range m {
		if l.State == Leased && l.Client != without && class == 21 {
			n++
		}
	}
	return n
}

func addr(text string) netip.Addr {
	if text == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(text)
}

// now is the time of the tests.
const now = int64(1_000_000)

// plan is content for tests: network 7 is 10.0.0.0/24 with a gateway, the range .10-.14, and .20 and .12 reserved for hardware 9 and 8.
type plan map[string][]Item

func newPlan(more ...Item) plan {
	p := plan{
		ServerUnit: {Server{ID: 1, Name: "buoy", Configuration: 2, Addresses: []netip.Addr{addr("192.0.2.1")}}},
		NetworkUnit(7): {Network{ID: 7, Name: "Quay", Prefix: netip.MustParsePrefix("10.0.0.0/24"), Gateway: addr("10.0.0.1")},
			Pool{ID: 8, Name: "clients", Ranges: []Interval{{addr("10.0.0.10"), addr("10.0.0.14")}}},
			Reservation{ID: 9, Address: addr("10.0.0.20"), MAC: Hex{2, 0, 0, 0, 0, 9}, HostName: "crane"},
			Reservation{ID: 10, Address: addr("10.0.0.12"), MAC: Hex{2, 0, 0, 0, 0, 8}}},
		NetworkUnit(30): {Network{ID: 30, Name: "Pier", Prefix: netip.MustParsePrefix("10.3.0.0/24")},
			Pool{ID: 31, Ranges: []Interval{{addr("10.3.0.10"), addr("10.3.0.19")}}}},
	}
	return p.with(NetworkUnit(7), more...)
}

func (p plan) with(unit string, more ...Item) plan {
	p[unit] = append(p[unit], more...)
	return p
}

func (p plan) compile(t testing.TB) *Content {
	t.Helper()
	units := Units{}
	for id, items := range p {
		one, err := EncodeUnit(id, items...)
		if err != nil {
			t.Fatal(err)
		}
		units[id] = one
	}
	c, err := Compile(units, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// service returns a service option of the network.
func service(name string, value any) Service {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return Service{Name: name, Value: text, From: Source{Level: AtNetwork, ID: 7}}
}

// option returns a client option with a name of its level and code.
func option(at int64, level Level, code uint16, value string) Option {
	return Option{At: at, Code: code, Name: fmt.Sprintf("%s-%d", level, code), Value: Hex(value), From: Source{Level: level, ID: max(at, 1)}}
}

// vendor returns a sub-option of a vendor profile.
func vendor(identifier string, code uint16, value string) Option {
	return Option{Code: code, Vendor: identifier, Name: "v", Value: Hex(value), From: Source{Level: AtNetwork, ID: 7}}
}

// mac returns the hardware address of a test client.
func mac(n byte) []byte { return []byte{2, 0, 0, 0, 0, n} }

// message returns the facts of a message on the link of network 7.
func message(kind uint8, hardware byte, change ...func(*Facts)) *Facts {
	f := &Facts{Type: kind, HardwareType: 1, Hardware: mac(hardware), Options: map[uint8][]byte{53: {kind}}, Explain: true,
		Interface: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}, Local: []netip.Addr{addr("10.0.0.2")}}
	for _, one := range change {
		one(f)
	}
	return f
}

func with(code uint8, value string) func(*Facts) {
	return func(f *Facts) { f.Options[code] = []byte(value) }
}

func asks(a string) func(*Facts) { return with(50, string(addr(a).AsSlice())) }
func to(server string) func(*Facts) {
	return with(54, string(addr(server).AsSlice()))
}

func renews(a string) func(*Facts) {
	return func(f *Facts) { f.Client, f.Unicast = addr(a), true }
}

func rebinds(a string) func(*Facts) { return func(f *Facts) { f.Client = addr(a) } }

func relayed(giaddr, information string) func(*Facts) {
	return func(f *Facts) {
		f.Relay, f.Interface = addr(giaddr), nil
		if information != "" {
			f.Options[82] = []byte(information)
		}
	}
}

// leased returns a lease of an address of network 7.
func leased(hardware byte, a string, state State, change ...func(*LeaseState)) (netip.Addr, LeaseState) {
	l := LeaseState{Network: 7, Address: addr(a), State: state, Client: Identity(1, mac(hardware), nil), Hardware: mac(hardware),
		Start: now - 500, Expires: now + 500}
	if state == Free {
		l.Expires = now - 100
	}
	for _, one := range change {
		one(&l)
	}
	return l.Address, l
}

func leases(all ...any) memory {
	m := memory{}
	for i := 0; i < len(all); i += 2 {
		m[all[i].(netip.Addr)] = all[i+1].(LeaseState)
	}
	return m
}

func lease(hardware byte, a string, state State, change ...func(*LeaseState)) memory {
	return leases(pair(leased(hardware, a, state, change...))...)
}

func pair(a netip.Addr, l LeaseState) []any { return []any{a, l} }

// find returns an option of a decision.
func (d *Decision) find(code uint8) *Sent {
	for i := range d.Options {
		if d.Options[i].Code == code {
			return &d.Options[i]
		}
	}
	return nil
}

func text(d *Decision) string {
	reply := map[uint8]string{0: "-", Offer: "OFFER", Ack: "ACK", Nak: "NAK", BOOTP: "BOOTP"}[d.Reply]
	if d.Address.IsValid() {
		reply += " " + d.Address.String()
	}
	if d.Reason != Served {
		reply += " " + string(d.Reason)
	}
	return reply
}

// TestDecide checks the replies of the rules of DHCPv4, one line for each rule.
func TestDecide(t *testing.T) {
	reserve := func(l *LeaseState) { l.Client = "cother" }
	ended := func(l *LeaseState) { l.Ended = true }
	authoritative := service("authoritative", true)
	for _, one := range []struct {
		rule   string
		plan   plan
		leases memory
		facts  *Facts
		want   string
	}{
		{"a new client gets the first free address", newPlan(), nil, message(Discover, 1), "OFFER 10.0.0.10"},
		{"the current lease comes first", newPlan(), lease(1, "10.0.0.13", Leased), message(Discover, 1, asks("10.0.0.11")), "OFFER 10.0.0.13"},
		{"then the former one", newPlan(), lease(1, "10.0.0.13", Free), message(Discover, 1, asks("10.0.0.11")), "OFFER 10.0.0.13"},
		{"then the requested one", newPlan(), nil, message(Discover, 1, asks("10.0.0.11")), "OFFER 10.0.0.11"},
		{"a requested address outside of the range is ignored", newPlan(), nil, message(Discover, 1, asks("10.0.0.99")), "OFFER 10.0.0.10"},
		{"a requested address of another client is ignored", newPlan(), lease(2, "10.0.0.11", Leased),
			message(Discover, 1, asks("10.0.0.11")), "OFFER 10.0.0.10"},
		{"the gateway is never leased", newPlan(), nil, message(Discover, 1, asks("10.0.0.1")), "OFFER 10.0.0.10"},
		{"a reserved address inside of the range belongs to its client", newPlan(), nil, message(Discover, 8), "OFFER 10.0.0.12"},
		{"and not to other clients", newPlan(), nil, message(Discover, 1, asks("10.0.0.12")), "OFFER 10.0.0.10"},
		{"a reservation outside of the range", newPlan(), nil, message(Discover, 9), "OFFER 10.0.0.20"},
		{"a reservation by MAC ignores option 61", newPlan(), nil, message(Discover, 9, with(61, "\x00rom")), "OFFER 10.0.0.20"},
		{"also if another identifier of the same hardware holds it", newPlan(), lease(9, "10.0.0.20", Leased, reserve),
			message(Discover, 9, with(61, "\x00os")), "OFFER 10.0.0.20"},
		{"a reserved address that another client still holds is not given twice", newPlan(), lease(3, "10.0.0.20", Leased),
			message(Discover, 9), "OFFER 10.0.0.10"},
		{"the holder gets a NAK at its renewal", newPlan(), lease(3, "10.0.0.20", Leased), message(Request, 3, renews("10.0.0.20")),
			"NAK reserved-for-other"},
		{"a client with a new reservation gets a NAK at its renewal", newPlan(), lease(9, "10.0.0.10", Leased),
			message(Request, 9, renews("10.0.0.10")), "NAK has-reservation"},
		{"and at INIT-REBOOT", newPlan(), lease(9, "10.0.0.10", Leased), message(Request, 9, asks("10.0.0.10")), "NAK has-reservation"},
		{"renewal of a reserved address outside of the range", newPlan(), lease(9, "10.0.0.20", Leased),
			message(Request, 9, renews("10.0.0.20")), "ACK 10.0.0.20"},
		{"an abandoned address only if nothing else is left", newPlan(), lease(2, "10.0.0.10", Abandoned), message(Discover, 1),
			"OFFER 10.0.0.11"},
		{"also a reserved one, for its own client", newPlan(), lease(9, "10.0.0.20", Abandoned), message(Discover, 9), "OFFER 10.0.0.10"},
		{"which keeps the other address meanwhile", newPlan(), leases(slices.Concat(pair(leased(9, "10.0.0.20", Abandoned)),
			pair(leased(9, "10.0.0.10", Leased)))...), message(Request, 9, renews("10.0.0.10")), "ACK 10.0.0.10"},
		{"and gets the reserved one if no other is free", newPlan(service("booting", true), service("allow-mac-pool", []int64{77})),
			lease(9, "10.0.0.20", Abandoned), message(Discover, 9), "OFFER 10.0.0.20"},
		{"INIT-REBOOT of an unknown client for an address in no range is silent", newPlan(authoritative), nil,
			message(Request, 1, asks("10.0.0.99")), "- address-not-served"},
		{"and REBINDING", newPlan(), nil, message(Request, 1, rebinds("10.0.0.99")), "- address-not-served"},
		{"a known client gets a NAK", newPlan(), lease(1, "10.0.0.11", Leased), message(Request, 1, asks("10.0.0.99")),
			"NAK address-not-served"},
		{"no network", newPlan(), nil, message(Discover, 1, relayed("10.9.0.1", "")), "- no-network"},
		{"the relay chooses the network", newPlan(), nil, message(Discover, 1, relayed("10.3.0.1", "")), "OFFER 10.3.0.10"},
		{"link selection comes before the relay", newPlan(), nil, message(Discover, 1, relayed("10.3.0.1", "\x05\x04\x0a\x00\x00\x00")),
			"OFFER 10.0.0.10"},
		{"subnet selection comes before the relay", newPlan(), nil,
			message(Discover, 1, relayed("10.3.0.1", ""), with(118, "\x0a\x00\x00\x00")), "OFFER 10.0.0.10"},
		{"link selection comes before subnet selection", newPlan(), nil,
			message(Discover, 1, relayed("10.3.0.1", "\x05\x04\x0a\x03\x00\x00"), with(118, "\x0a\x00\x00\x00")), "OFFER 10.3.0.10"},
		{"an unknown VSS", newPlan(), nil, message(Discover, 1, relayed("10.0.0.1", "\x97\x02\x00a")), "- unknown-vss"},
		{"SELECTING", newPlan(), lease(1, "10.0.0.10", Offered), message(Request, 1, asks("10.0.0.10"), to("10.0.0.2")), "ACK 10.0.0.10"},
		{"SELECTING of another server is silent", newPlan(), lease(1, "10.0.0.10", Offered),
			message(Request, 1, asks("10.0.0.10"), to("10.0.0.3")), "- other-server"},
		{"unless server-id-check is off", newPlan(service("server-id-check", false)), lease(1, "10.0.0.10", Offered),
			message(Request, 1, asks("10.0.0.10"), to("10.0.0.3")), "ACK 10.0.0.10"},
		{"SELECTING an address that another client was offered", newPlan(), lease(2, "10.0.0.10", Offered),
			message(Request, 1, asks("10.0.0.10"), to("10.0.0.2")), "NAK leased-to-other"},
		{"SELECTING after a restart, which forgets offers", newPlan(), nil, message(Request, 1, asks("10.0.0.10"), to("10.0.0.2")),
			"ACK 10.0.0.10"},
		{"SELECTING the gateway", newPlan(), nil, message(Request, 1, asks("10.0.0.1"), to("10.0.0.2")), "NAK address-not-served"},
		{"INIT-REBOOT on the wrong network is silent", newPlan(), nil, message(Request, 1, asks("10.9.0.10")), "- wrong-network"},
		{"or a NAK if authoritative", newPlan(authoritative), nil, message(Request, 1, asks("10.9.0.10")), "NAK wrong-network"},
		{"INIT-REBOOT of an unknown client is silent, also if authoritative", newPlan(authoritative), nil,
			message(Request, 1, asks("10.0.0.10")), "- not-leased"},
		{"INIT-REBOOT of a known client with a wrong address", newPlan(), lease(1, "10.0.0.11", Leased),
			message(Request, 1, asks("10.0.0.10")), "NAK leased-to-other"},
		{"INIT-REBOOT of the holder", newPlan(), lease(1, "10.0.0.11", Leased), message(Request, 1, asks("10.0.0.11")), "ACK 10.0.0.11"},
		{"INIT-REBOOT of an address that another client holds", newPlan(), lease(2, "10.0.0.11", Leased),
			message(Request, 1, asks("10.0.0.11")), "NAK leased-to-other"},
		{"RENEWING", newPlan(), lease(1, "10.0.0.11", Leased), message(Request, 1, renews("10.0.0.11")), "ACK 10.0.0.11"},
		{"RENEWING a free address", newPlan(), nil, message(Request, 1, renews("10.0.0.11")), "ACK 10.0.0.11"},
		{"RENEWING a former lease", newPlan(), lease(1, "10.0.0.11", Free), message(Request, 1, renews("10.0.0.11")), "ACK 10.0.0.11"},
		{"RENEWING an address of another client", newPlan(), lease(2, "10.0.0.11", Leased), message(Request, 1, renews("10.0.0.11")),
			"NAK leased-to-other"},
		{"RENEWING an address that has no range any more", newPlan(), lease(1, "10.0.0.50", Leased),
			message(Request, 1, renews("10.0.0.50")), "NAK address-not-served"},
		{"RENEWING a lease that an operator ended", newPlan(), lease(1, "10.0.0.11", Leased, ended),
			message(Request, 1, renews("10.0.0.11")), "NAK ended-by-operator"},
		{"an ended lease is not given to another client", newPlan(), lease(1, "10.0.0.10", Leased, ended),
			message(Discover, 2, asks("10.0.0.10")), "OFFER 10.0.0.11"},
		{"its client gets another address", newPlan(), lease(1, "10.0.0.10", Leased, ended), message(Discover, 1), "OFFER 10.0.0.11"},
		{"an ended lease of a reserved address", newPlan(), lease(9, "10.0.0.20", Leased, ended), message(Request, 9, renews("10.0.0.20")),
			"NAK ended-by-operator"},
		{"is offered to its client again", newPlan(), lease(9, "10.0.0.20", Leased, ended), message(Discover, 9), "OFFER 10.0.0.20"},
		{"and leased", newPlan(), lease(9, "10.0.0.20", Leased, ended), message(Request, 9, asks("10.0.0.20"), to("10.0.0.2")),
			"ACK 10.0.0.20"},
		{"INIT-REBOOT of a client with a former lease for an address in no range", newPlan(), lease(1, "10.0.0.11", Free),
			message(Request, 1, asks("10.0.0.99")), "NAK address-not-served"},
		{"and for another address", newPlan(), lease(1, "10.0.0.11", Free), message(Request, 1, asks("10.0.0.10")), "NAK leased-to-other"},
		{"REBINDING of a client with a former lease", newPlan(), lease(1, "10.0.0.11", Free),
			message(Request, 1, rebinds("10.0.0.10")), "- not-leased"},
		{"and for an address in no range", newPlan(), lease(1, "10.0.0.11", Free), message(Request, 1, rebinds("10.0.0.99")),
			"- address-not-served"},
		{"INIT-REBOOT for its own", newPlan(), lease(1, "10.0.0.11", Free), message(Request, 1, asks("10.0.0.11")), "ACK 10.0.0.11"},
		{"REBINDING of the holder", newPlan(), lease(1, "10.0.0.11", Leased), message(Request, 1, rebinds("10.0.0.11")), "ACK 10.0.0.11"},
		{"REBINDING of an unknown client is silent", newPlan(), nil, message(Request, 1, rebinds("10.0.0.11")), "- not-leased"},
		{"REQUEST without an address", newPlan(), nil, message(Request, 1), "- bad-message"},
		{"REQUEST for 0.0.0.0", newPlan(), nil, message(Request, 1, asks("0.0.0.0")), "- bad-message"},
		{"a server identifier of 3 octets", newPlan(), nil, message(Request, 1, with(54, "abc")), "- bad-message"},
		{"a multicast server identifier", newPlan(), nil, message(Request, 1, to("224.0.0.1")), "- bad-message"},
		{"a client without hardware address and identifier", newPlan(), nil, message(Discover, 0, func(f *Facts) { f.Hardware = nil }),
			"- bad-message"},
		{"a group address as hardware address", newPlan(), nil, message(Discover, 0, func(f *Facts) { f.Hardware = []byte{1, 0, 0, 0, 0, 1} }),
			"- bad-message"},
		{"a hardware address of zeros with an identifier", newPlan(), nil,
			message(Discover, 0, func(f *Facts) { f.Hardware = make([]byte, 6) }, with(61, "abc")), "OFFER 10.0.0.10"},
		{"INFORM has no address", newPlan(), nil, message(Inform, 1, renews("10.0.0.77")), "ACK"},
		{"INFORM without an address", newPlan(), nil, message(Inform, 1), "- bad-message"},
		{"RELEASE of the holder", newPlan(), lease(1, "10.0.0.11", Leased), message(Release, 1, renews("10.0.0.11")), "- 10.0.0.11"},
		{"RELEASE of another client's address", newPlan(), lease(2, "10.0.0.11", Leased), message(Release, 1, renews("10.0.0.11")),
			"- not-holder"},
		{"DECLINE of the holder", newPlan(), lease(1, "10.0.0.11", Leased), message(Decline, 1, asks("10.0.0.11"), to("10.0.0.2")),
			"- 10.0.0.11"},
		{"DECLINE of another client's address", newPlan(), lease(2, "10.0.0.11", Leased),
			message(Decline, 1, asks("10.0.0.11"), to("10.0.0.2")), "- not-holder"},
		{"DECLINE to another server", newPlan(), lease(1, "10.0.0.11", Leased), message(Decline, 1, asks("10.0.0.11"), to("10.0.0.3")),
			"- other-server"},
		{"declines off", newPlan(service("declines", false)), lease(1, "10.0.0.11", Leased),
			message(Decline, 1, asks("10.0.0.11"), to("10.0.0.2")), "- declines-off"},
		{"an unknown message type", newPlan(), nil, message(77, 1), "- bad-message"},
		{"deny-unknown-mac-addresses", newPlan(service("deny-unknown-mac-addresses", true)), nil, message(Discover, 1), "- unknown-client"},
		{"and its renewals", newPlan(service("deny-unknown-mac-addresses", true)), lease(1, "10.0.0.11", Leased),
			message(Request, 1, renews("10.0.0.11")), "NAK unknown-client"},
		{"and a client with a reservation", newPlan(service("deny-unknown-mac-addresses", true)), nil, message(Discover, 9), "OFFER 10.0.0.20"},
		{"boot-unknown-clients off", newPlan(service("boot-unknown-clients", false)), nil, message(Discover, 1), "- unknown-client"},
		{"booting off", newPlan(service("booting", false)), nil, message(Discover, 1), "- booting-off"},
		{"min-secs", newPlan(service("min-secs", 4)), nil, message(Discover, 1, func(f *Facts) { f.Secs = 3 }), "- min-secs"},
		{"min-secs is reached", newPlan(service("min-secs", 4)), nil, message(Discover, 1, func(f *Facts) { f.Secs = 4 }), "OFFER 10.0.0.10"},
		{"swapped secs", newPlan(service("min-secs", 4), service("check-secs-byte-order", true)), nil,
			message(Discover, 1, func(f *Facts) { f.Secs = 3 << 8 }), "- min-secs"},
		{"BOOTP needs a reservation", newPlan(), nil, message(0, 1), "- bootp-off"},
		{"BOOTP with a reservation", newPlan(), nil, message(0, 9), "BOOTP 10.0.0.20"},
		{"dynamic-bootp", newPlan(service("dynamic-bootp", true)), nil, message(0, 1), "BOOTP 10.0.0.10"},
		{"bootp off", newPlan(service("bootp", false)), nil, message(0, 9), "- bootp-off"},
		{"IPv6-only preferred", newPlan(option(0, AtNetwork, 108, "\x00\x00\x01\x2c")), nil, message(Discover, 1, with(55, "\x01\x6c")),
			"OFFER ipv6-only-preferred"},
		{"IPv6-only preferred at the range", newPlan(option(8, AtRange, 108, "\x00\x00\x01\x2c")), nil,
			message(Discover, 1, with(55, "\x01\x6c")), "OFFER ipv6-only-preferred"},
		{"and a client that does not ask for it", newPlan(option(0, AtNetwork, 108, "\x00\x00\x01\x2c")), nil,
			message(Discover, 1, with(55, "\x01\x03")), "OFFER 10.0.0.10"},
		{"automatic configuration", newPlan(service("deny-unknown-mac-addresses", true), option(0, AtNetwork, 116, "\x00")), nil,
			message(Discover, 1, with(116, "\x01")), "OFFER no-address-auto-configure"},
	} {
		if one.leases == nil {
			one.leases = memory{}
		}
		d := Decide(one.plan.compile(t), one.facts, one.leases, now)
		if got := text(d); got != one.want {
			t.Errorf("%s: %s, want %s\n%v", one.rule, got, one.want, d.Steps)
		}
		if (d.Reply == Offer || d.Reply == Ack) && d.Address.IsValid() && d.LeaseTime == 0 {
			t.Errorf("%s: no lease time", one.rule)
		}
		if len(d.Steps) == 0 {
			t.Errorf("%s: no explanation", one.rule)
		}
	}
}

// TestEndsOfReservedAddresses checks the options of a reservation that act when its client declines or releases the address.
func TestEndsOfReservedAddresses(t *testing.T) {
	at := func(name string, value any) Service {
		s := service(name, value)
		s.At, s.From = 9, Source{Level: AtAddress, ID: 9}
		return s
	}
	c := newPlan(at("abandon-lease-time", 60), at("infinite-is-reserved", true)).compile(t)
	declined := message(Decline, 9, asks("10.0.0.20"), to("10.0.0.2"))
	if d := Decide(c, declined, lease(9, "10.0.0.20", Leased), now); d.Action != ActDecline || d.AbandonSeconds != 60 {
		t.Errorf("a declined address: %s, %d s", text(d), d.AbandonSeconds)
	}
	infinite := lease(9, "10.0.0.20", Leased, func(l *LeaseState) { l.Expires = InfiniteTime })
	if d := Decide(c, message(Release, 9, renews("10.0.0.20")), infinite, now); d.Action == ActRelease {
		t.Errorf("a released address: %s", text(d))
	}
	c = newPlan(service("abandon-lease-time", 90)).compile(t)
	if d := Decide(c, declined, lease(9, "10.0.0.20", Leased), now); d.AbandonSeconds != 90 {
		t.Errorf("a declined address of the network: %d s", d.AbandonSeconds)
	}
}

// TestExhausted checks that a full range is reported, that a client that prefers IPv6 needs none of its addresses, that abandoned addresses
// are used before that, and that they are probed.
func TestExhausted(t *testing.T) {
	m := memory{}
	for i, a := range []string{"10.0.0.10", "10.0.0.11", "10.0.0.13", "10.0.0.14"} { // .12 is reserved
		at, l := leased(byte(40+i), a, Leased)
		m[at] = l
	}
	c := newPlan().compile(t)
	if d := Decide(c, message(Discover, 1), m, now); text(d) != "- "+string(Exhausted) {
		t.Error(text(d))
	}
	ipv6Only := newPlan(option(8, AtRange, 108, "\x00\x00\x01\x2c")).compile(t)
	if d := Decide(ipv6Only, message(Discover, 1, with(55, "\x01\x6c")), m, now); d.Reply != Offer || d.Reason != IPv6OnlyPreferred {
		t.Error("a client that needs no address of a full range:", text(d))
	}
	at, l := leased(41, "10.0.0.11", Abandoned)
	m[at] = l
	if d := Decide(c, message(Discover, 1), m, now); text(d) != "OFFER 10.0.0.11" || !d.Probe {
		t.Error(text(d), d.Probe)
	}
}

// TestProbe checks which addresses are probed before an offer.
func TestProbe(t *testing.T) {
	static := Pool{ID: 8, Ranges: []Interval{{addr("10.0.0.10"), addr("10.0.0.14")}},
		Probed: []Interval{{addr("10.0.0.10"), addr("10.0.0.10")}}}
	for name, one := range map[string]struct {
		plan   plan
		leases memory
		facts  *Facts
		want   bool
	}{
		"never leased":                 {newPlan(), memory{}, message(Discover, 1), true},
		"leased before":                {newPlan(), lease(1, "10.0.0.10", Free), message(Discover, 1), false},
		"reserved":                     {newPlan(), memory{}, message(Discover, 9), false},
		"ping-check off":               {newPlan(service("ping-check", false)), memory{}, message(Discover, 1), false},
		"static, also without a check": {replacePool(newPlan(service("ping-check", false)), static), memory{}, message(Discover, 1), true},
	} {
		if d := Decide(one.plan.compile(t), one.facts, one.leases, now); d.Probe != one.want || d.Reply != Offer {
			t.Errorf("%s: %v %s", name, d.Probe, text(d))
		}
	}
}

func replacePool(p plan, with Pool) plan {
	for i, x := range p[NetworkUnit(7)] {
		if _, ok := x.(Pool); ok {
			p[NetworkUnit(7)][i] = with
		}
	}
	return p
}

// TestLeaseTime checks the limits of the lease time, T1 and T2.
func TestLeaseTime(t *testing.T) {
	limits := []Item{service("default-lease-time", 1000), service("max-lease-time", 2000), service("min-lease-time", 500)}
	for name, one := range map[string]struct {
		services []Item
		wish     string
		want     uint32
	}{
		"no wish":             {limits, "", 1000},
		"a wish":              {limits, "\x00\x00\x06\x40", 1600},
		"too long":            {limits, "\xff\xff\xff\xff", 2000},
		"too short":           {limits, "\x00\x00\x00\x01", 500},
		"a wish of 3 octets":  {limits, "\x00\x00\x01", 1000},
		"defaults":            {nil, "", 86400},
		"defaults and a wish": {nil, "\xff\xff\xff\xff", 86400},
		"a long minimum":      {[]Item{service("min-lease-time", 172800)}, "\x00\x00\x06\x40", 172800},
		"infinite":            {[]Item{service("default-lease-time", Infinite)}, "", Infinite},
		"infinite on request": {[]Item{service("max-lease-time", Infinite)}, "\xff\xff\xff\xff", Infinite},
		"adaptive, above":     {append(limits, service("adaptive-lease-time-threshold", 10)), "", 500},
		"adaptive, below":     {append(limits, service("adaptive-lease-time-threshold", 60)), "", 1000},
	} {
		f := message(Discover, 1)
		if one.wish != "" {
			f.Options[51] = []byte(one.wish)
		}
		d := Decide(newPlan(one.services...).compile(t), f, lease(50, "10.0.0.14", Leased), now)
		if d.LeaseTime != one.want {
			t.Errorf("%s: %d, want %d", name, d.LeaseTime, one.want)
		}
	}
	d := Decide(newPlan(limits...).compile(t), message(Discover, 1), memory{}, now)
	if fmt.Sprintf("%x %x", d.find(58).Value, d.find(59).Value) != "000001f4 0000036b" {
		t.Errorf("T1 %x, T2 %x", d.find(58).Value, d.find(59).Value)
	}
	limits = append(limits, option(0, AtNetwork, 58, "\x00\x00\x00\x64"), option(0, AtNetwork, 59, "\x00\x00\xff\xff"))
	d = Decide(newPlan(limits...).compile(t), message(Discover, 1), memory{}, now)
	if fmt.Sprintf("%x %x", d.find(58).Value, d.find(59).Value) != "00000064 000003e8" {
		t.Errorf("T1 %x, T2 %x", d.find(58).Value, d.find(59).Value)
	}
}

// TestCacheThreshold checks that an early renewal gets the rest of the lease without a new one, and that a later one gets a new lease.
func TestCacheThreshold(t *testing.T) {
	at := func(elapsed int64) memory {
		return lease(1, "10.0.0.11", Leased, func(l *LeaseState) { l.Start, l.Expires = now-elapsed, now-elapsed+86400 })
	}
	f := message(Request, 1, renews("10.0.0.11"))
	if d := Decide(newPlan().compile(t), f, at(1000), now); d.Action != ActRenew || d.LeaseTime != 85400 {
		t.Errorf("early: %d with %d s", d.Action, d.LeaseTime)
	}
	if d := Decide(newPlan().compile(t), f, at(40000), now); d.Action != ActCommit || d.LeaseTime != 86400 {
		t.Errorf("later: %d with %d s", d.Action, d.LeaseTime)
	}
	if d := Decide(newPlan(service("dhcp-cache-threshold", 0)).compile(t), f, at(1000), now); d.Action != ActCommit {
		t.Errorf("turned off: %d", d.Action)
	}
	moved := message(Request, 1, renews("10.0.0.11"), relayed("10.0.0.1", "\x01\x01a"))
	if d := Decide(newPlan().compile(t), moved, at(1000), now); d.Action != ActCommit {
		t.Errorf("from another port: %d", d.Action)
	}
}

// TestEndedLeases checks which other leases of a client end with a new one.
func TestEndedLeases(t *testing.T) {
	other := func(l *LeaseState) { l.Client = "cother" }
	elsewhere := func(l *LeaseState) { l.Network, l.Address = 30, addr("10.3.0.10") }
	f := message(Request, 1, asks("10.0.0.10"), to("10.0.0.2"))
	for name, one := range map[string]struct {
		plan   plan
		leases memory
		want   string
	}{
		"the same client in the network":     {newPlan(), lease(1, "10.0.0.13", Leased), "[10.0.0.13]"},
		"another identifier of the hardware": {newPlan(), lease(1, "10.0.0.13", Leased, other), "[]"},
		"and without duplicates": {newPlan(service("duplicates", false)), lease(1, "10.0.0.13", Leased, other),
			"[10.0.0.13]"},
		"another network": {newPlan(), lease(1, "10.3.0.10", Leased, elsewhere), "[]"},
		"another network, with one lease per client": {newPlan(service("one-lease-per-client", true)),
			lease(1, "10.3.0.10", Leased, elsewhere), "[10.3.0.10]"},
	} {
		if d := Decide(one.plan.compile(t), f, one.leases, now); fmt.Sprint(d.Ends) != one.want || d.Reply != Ack {
			t.Errorf("%s: %v %s, want %s", name, d.Ends, text(d), one.want)
		}
	}
}

// TestSharedNetwork checks that a client may hold an address of any network of its shared network, that the first one is full first, and
// which of two reservations a client gets.
func TestSharedNetwork(t *testing.T) {
	p := newPlan()
	p[NetworkUnit(7)][0] = Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/24"), Shared: 5}
	p[NetworkUnit(30)][0] = Network{ID: 30, Prefix: netip.MustParsePrefix("10.3.0.0/24"), Shared: 5}
	c := p.compile(t)
	if d := Decide(c, message(Request, 1, renews("10.3.0.15")), memory{}, now); text(d) != "ACK 10.3.0.15" {
		t.Error(text(d))
	}
	if d := Decide(c, message(Discover, 1, asks("10.3.0.15")), memory{}, now); text(d) != "OFFER 10.3.0.15" || d.Network != 30 {
		t.Error(text(d))
	}
	if d := Decide(c, message(Discover, 9, relayed("10.3.0.1", "")), memory{}, now); text(d) != "OFFER 10.0.0.20" {
		t.Error(text(d))
	}
	p[NetworkUnit(30)] = append(p[NetworkUnit(30)], Reservation{ID: 31, Address: netip.MustParseAddr("10.3.0.20"), MAC: Hex(mac(9))})
	c = p.compile(t)
	for _, one := range []struct{ relay, leased, want string }{
		{"10.3.0.1", "", "OFFER 10.3.0.20"}, {"10.0.0.1", "", "OFFER 10.0.0.20"}, {"10.3.0.1", "10.3.0.20", "OFFER 10.3.0.20"},
		{"10.3.0.1", "10.0.0.20", "OFFER 10.0.0.20"}, {"10.0.0.1", "10.3.0.20", "OFFER 10.3.0.20"}, {"10.3.0.1", "10.0.0.15", "OFFER 10.3.0.20"},
	} {
		leases := memory{}
		if one.leased != "" {
			leases = lease(9, one.leased, Leased)
		}
		if d := Decide(c, message(Discover, 9, relayed(one.relay, "")), leases, now); text(d) != one.want {
			t.Errorf("a client at %s with a lease of %q gets %s, not %s", one.relay, one.leased, text(d), one.want)
		}
	}
}

// classes returns a plan with a class by condition (21) and one with a subclass (22, 23), and MAC pools 40, 41 and the one that denies.
func classes(more ...Item) plan {
	condition, _, err := ParseMatch(`if substring(option vendor-class-identifier, 0, 5) = "Phone"`, nil)
	if err != nil {
		panic(err)
	}
	circuit, err := MatchOf("agent.circuit-id", 0, 20)
	if err != nil {
		panic(err)
	}
	return newPlan(more...).with(ClassUnit(21), Class{ID: 21, Name: "phones", If: condition}).
		with(ClassUnit(22), Class{ID: 22, Name: "ports", Match: circuit}, Subclass{ID: 23, Value: Hex("port1")}).
		with(MACPoolUnit(40), MACPool{ID: 40, Name: "printers"}, MACAddress{ID: 42, MAC: Hex(mac(4))}).
		with(MACPoolUnit(41), MACPool{ID: 41, Name: "DENY", Deny: true}, MACAddress{ID: 43, MAC: Hex(mac(5))},
			MACAddress{ID: 44, MAC: Hex(mac(9))})
}

// TestMembers checks who is served by members of classes and MAC pools, and the limits of classes.
func TestMembers(t *testing.T) {
	limit := service("dhcp-class-lease-limit", 1)
	for _, one := range []struct {
		rule   string
		plan   plan
		leases memory
		facts  *Facts
		want   string
	}{
		{"the deny pool", classes(), memory{}, message(Discover, 5), "- denied-mac-pool"},
		{"the deny pool wins over a reservation", classes(), memory{}, message(Discover, 9), "- denied-mac-pool"},
		{"deny-mac-pool", classes(service("deny-mac-pool", []int64{40})), memory{}, message(Discover, 4), "- denied-mac-pool"},
		{"deny-mac-pool and others", classes(service("deny-mac-pool", []int64{40})), memory{}, message(Discover, 1), "OFFER 10.0.0.10"},
		{"allow-mac-pool", classes(service("allow-mac-pool", []int64{40})), memory{}, message(Discover, 4), "OFFER 10.0.0.10"},
		{"allow-mac-pool and others", classes(service("allow-mac-pool", []int64{40})), memory{}, message(Discover, 1), "- denied-mac-pool"},
		{"allow class", classes(service("allow-dhcp-class-members", []int64{21})), memory{}, message(Discover, 1, with(60, "Phone 7")),
			"OFFER 10.0.0.10"},
		{"allow class and others", classes(service("allow-dhcp-class-members", []int64{21})), memory{}, message(Discover, 1, with(60, "Fax")),
			"- denied-class"},
		{"deny class", classes(service("deny-dhcp-class-members", []int64{21})), memory{}, message(Discover, 1, with(60, "Phone 7")),
			"- denied-class"},
		{"a subclass by circuit id", classes(service("allow-dhcp-class-members", []int64{22})), memory{},
			message(Discover, 1, relayed("10.0.0.1", "\x01\x05port1")), "OFFER 10.0.0.10"},
		{"another circuit id", classes(service("allow-dhcp-class-members", []int64{22})), memory{},
			message(Discover, 1, relayed("10.0.0.1", "\x01\x05port2")), "- denied-class"},
		{"stashed relay information at a renewal", classes(service("allow-dhcp-class-members", []int64{22})),
			lease(1, "10.0.0.11", Leased, func(l *LeaseState) { l.Relay = []byte("\x01\x05port1") }), message(Request, 1, renews("10.0.0.11")),
			"ACK 10.0.0.11"},
		{"without stash-agent-options", classes(service("allow-dhcp-class-members", []int64{22}), service("stash-agent-options", false)),
			lease(1, "10.0.0.11", Leased, func(l *LeaseState) { l.Relay = []byte("\x01\x05port1") }), message(Request, 1, renews("10.0.0.11")),
			"NAK denied-class"},
		{"the limit of a class", classes().with(ClassUnit(21), limit), lease(2, "10.0.0.14", Leased), message(Discover, 1, with(60, "Phone")),
			"- class-lease-limit"},
		{"the limit and the client's own lease", classes().with(ClassUnit(21), limit), lease(1, "10.0.0.14", Leased),
			message(Discover, 1, with(60, "Phone")), "OFFER 10.0.0.14"},
		{"the limit and others", classes().with(ClassUnit(21), limit), lease(2, "10.0.0.14", Leased), message(Discover, 1), "OFFER 10.0.0.10"},
		{"booting off at a class", classes().with(ClassUnit(21), service("booting", false)), memory{}, message(Discover, 1, with(60, "Phone")),
			"- booting-off"},
	} {
		if d := Decide(one.plan.compile(t), one.facts, one.leases, now); text(d) != one.want {
			t.Errorf("%s: %s, want %s\n%v", one.rule, text(d), one.want, d.Steps)
		}
	}
}

// TestLoweredLimitCountsHolders checks that a lease counts for a class whose limit was lowered below the number of its leases.
func TestLoweredLimitCountsHolders(t *testing.T) {
	c := classes().with(ClassUnit(21), service("dhcp-class-lease-limit", 1)).compile(t)
	leases := memory{}
	for n, a := range map[byte]string{1: "10.0.0.10", 2: "10.0.0.11", 3: "10.0.0.13"} {
		at, l := leased(n, a, Leased)
		leases[at] = l
	}
	d := Decide(c, message(Request, 1, renews("10.0.0.10"), with(60, "Phone")), leases, now)
	if text(d) != "ACK 10.0.0.10" || !slices.Equal(d.Counted, []int64{21}) {
		t.Errorf("%s, counted for %d", text(d), d.Counted)
	}
}

// TestPrecedence checks that the most specific object wins for options: address, MAC address, subclass, class, MAC pool, range, network and
// the levels above.
func TestPrecedence(t *testing.T) {
	all := []struct {
		unit string
		item Option
	}{
		{ServerUnit, option(0, AtConfiguration, 15, "a")},
		{NetworkUnit(7), option(0, AtNetwork, 15, "b")},
		{NetworkUnit(7), option(8, AtRange, 15, "c")},
		{MACPoolUnit(40), option(0, AtMACPool, 15, "d")},
		{ClassUnit(21), option(0, AtClass, 15, "e")},
		{ClassUnit(22), option(23, AtSubclass, 15, "f")},
		{MACPoolUnit(40), option(42, AtMACAddress, 15, "g")},
		{NetworkUnit(7), option(50, AtAddress, 15, "h")},
	}
	p := classes(Reservation{ID: 50, Address: addr("10.0.0.13"), MAC: Hex(mac(4))})
	for i, one := range all {
		p.with(one.unit, one.item)
		f := message(Discover, 4, relayed("10.0.0.1", "\x01\x05port1"), with(60, "Phone"), with(55, "\x0f"))
		d := Decide(p.compile(t), f, memory{}, now)
		if got := d.find(15); got == nil || string(got.Value) != string(one.item.Value) || got.From.Level != one.item.From.Level {
			t.Errorf("%d %s: %+v", i, one.item.From.Level, got)
		}
	}
	// The class beats the network, which is the reverse in Kea.
	d := Decide(p.compile(t), message(Discover, 1, with(60, "Phone"), with(55, "\x0f")), memory{}, now)
	if got := d.find(15); got == nil || string(got.Value) != "e" {
		t.Errorf("the class gives %+v", got)
	}
}

// TestOptions checks the options of replies.
func TestOptions(t *testing.T) {
	codes := func(d *Decision) string {
		var out []string
		for _, s := range d.Options {
			out = append(out, fmt.Sprintf("%d=%x", s.Code, s.Value))
		}
		return strings.Join(out, " ")
	}
	fixed := "54=0a000002 51=00015180 58=0000a8c0 59=00012750"
	for _, one := range []struct {
		rule  string
		items []Item
		facts *Facts
		want  string
	}{
		{"in the order of the request", []Item{option(0, AtNetwork, 15, "x"), option(0, AtNetwork, 6, "\x01\x02\x03\x04")},
			message(Discover, 1, with(55, "\x0f\x06\x01")), fixed + " 15=78 6=01020304 1=ffffff00"},
		{"only those that were requested", []Item{option(0, AtNetwork, 15, "x")}, message(Discover, 1, with(55, "\x01")), fixed + " 1=ffffff00"},
		{"all without a request list", []Item{option(0, AtNetwork, 15, "x")}, message(Discover, 1), fixed + " 1=ffffff00 3=0a000001 15=78"},
		{"the mask before the routers", nil, message(Discover, 1, with(55, "\x03\x01")), fixed + " 1=ffffff00 3=0a000001"},
		{"a code that is requested 255 times", nil, message(Discover, 1, with(55, strings.Repeat("\x03", 255))), fixed + " 3=0a000001"},
		{"the routers of an option", []Item{option(0, AtNetwork, 3, "\x0a\x00\x00\xfe")},
			message(Discover, 1, with(55, "\x03")), fixed + " 3=0a0000fe"},
		{"classless routes replace routers", []Item{option(0, AtNetwork, 121, "\x00\x0a\x00\x00\x01")},
			message(Discover, 1, with(55, "\x79\x03\x01")), fixed + " 121=000a000001 1=ffffff00"},
		{"routers for clients that ask for them alone", []Item{option(0, AtNetwork, 121, "\x00\x0a\x00\x00\x01")},
			message(Discover, 1, with(55, "\x03")), fixed + " 3=0a000001"},
		{"the client identifier is echoed", nil, message(Discover, 1, with(55, "\x01"), with(61, "\x00me")), fixed + " 1=ffffff00 61=006d65"},
		{"unless echo-client-id is off", []Item{service("echo-client-id", false)}, message(Discover, 1, with(55, "\x01"), with(61, "\x00me")),
			fixed + " 1=ffffff00"},
		{"the relay information is last", nil, message(Discover, 1, with(55, "\x01"), with(82, "\x01\x01a"), with(61, "me")),
			fixed + " 1=ffffff00 61=6d65 82=010161"},
		{"the server identifier of the relay (RFC 5107)", nil, message(Discover, 1, with(55, "\x01"),
			relayed("10.0.0.1", "\x0b\x04\x0a\x00\x00\x09")), strings.Replace(fixed, "0a000002", "0a000009", 1) + " 1=ffffff00 82=0b040a000009"},
		{"server-identifier", []Item{service("server-identifier", "10.0.0.7")}, message(Discover, 1, with(55, "\x01")),
			strings.Replace(fixed, "0a000002", "0a000007", 1) + " 1=ffffff00"},
		{"option 81: the server updates nothing", nil, message(Discover, 1, with(55, "\x01"), with(81, "\x05\x00\x00\x02pc")),
			fixed + " 1=ffffff00 81=0effff027063"},
		{"option 81 with bits that must be zero", nil, message(Discover, 1, with(55, "\x01"), with(81, "\xf4\x00\x00\x02pc")),
			fixed + " 1=ffffff00 81=0cffff027063"},
		{"a truncated option 81", nil, message(Discover, 1, with(55, "\x01"), with(81, "\x01")), fixed + " 1=ffffff00"},
		{"use-lease-addr-for-default-route", []Item{service("use-lease-addr-for-default-route", true)}, message(Discover, 1, with(55, "\x03")),
			fixed + " 3=0a00000a"},
		{"the name of a reservation", []Item{service("use-host-decl-names", true)},
			message(Discover, 9, with(55, "\x0c")), fixed + " 12=6372616e65"},
		{"no name of a reservation", nil, message(Discover, 9, with(55, "\x0c")), fixed},
		{"raw option 43", []Item{option(0, AtNetwork, 43, "\x01\x02\x03")}, message(Discover, 1, with(55, "\x2b")), fixed + " 43=010203"},
		{"vendor options by option 60", []Item{option(0, AtNetwork, 43, "\x01"), vendor("Acme", 2, "q"),
			vendor("Acme", 1, "p"), vendor("A", 9, "r")},
			message(Discover, 1, with(60, "Acme.phone"), with(55, "\x2b")), fixed + " 43=010170020171"},
		{"vendor options of another vendor", []Item{vendor("Acme", 2, "q")},
			message(Discover, 1, with(60, "Other"), with(55, "\x2b")), fixed},
		{"option 125", []Item{option(0, AtNetwork, 125, "\x00\x00\x0d\xe9\x04\x01\x02ab")},
			message(Discover, 1, with(55, "\x7d")), fixed + " 125=00000de90401026162"},
		{"the selected subnet is echoed", nil, message(Discover, 1, with(55, "\x01"), with(118, "\x0a\x00\x00\x00")),
			fixed + " 1=ffffff00 118=0a000000"},
		{"INFORM has no lease time", nil, message(Inform, 1, renews("10.0.0.77"), with(55, "\x01\x03")), "54=0a000002 1=ffffff00 3=0a000001"},
		{"a NAK has a message only", nil,
			message(Request, 1, to("10.0.0.2"), asks("10.0.0.99"), with(55, "\x01"), with(61, "me"), with(82, "\x01\x01a")),
			"54=0a000002 56=616464726573732d6e6f742d736572766564 61=6d65 82=010161"},
	} {
		d := Decide(newPlan(one.items...).compile(t), one.facts, memory{}, now)
		if got := codes(d); got != one.want {
			t.Errorf("%s:\n%s, want\n%s", one.rule, got, one.want)
		}
	}
}

// TestBootFields checks siaddr, file and sname, by service options and by options 66 and 67 of a class.
func TestBootFields(t *testing.T) {
	d := Decide(newPlan(service("next-server", "10.0.0.5"), service("filename", "a.efi"), service("server-name", "boot")).compile(t),
		message(Discover, 1), memory{}, now)
	if d.NextServer != addr("10.0.0.5") || d.File != "a.efi" || d.ServerName != "boot" {
		t.Errorf("%+v", d)
	}
	d = Decide(classes().with(ClassUnit(21), option(0, AtClass, 66, "10.0.0.6"), option(0, AtClass, 67, "b.efi")).compile(t),
		message(Discover, 1, with(60, "Phone")), memory{}, now)
	if d.NextServer != addr("10.0.0.6") || d.File != "b.efi" || d.ServerName != "10.0.0.6" {
		t.Errorf("%+v", d)
	}
}

// TestIdentity checks ignore-client-uids, and that a lease of a reservation by MAC belongs to the hardware address.
func TestIdentity(t *testing.T) {
	f := message(Discover, 1, with(61, "me"))
	if d := Decide(newPlan().compile(t), f, memory{}, now); d.Client != "cme" {
		t.Errorf("%q", d.Client)
	}
	if d := Decide(newPlan(service("ignore-client-uids", true)).compile(t), f, memory{}, now); d.Client != Identity(1, mac(1), nil) {
		t.Errorf("%q", d.Client)
	}
	if d := Decide(newPlan().compile(t), message(Discover, 9, with(61, "me")), memory{}, now); d.Client != Identity(1, mac(9), nil) {
		t.Errorf("%q", d.Client)
	}
}

// TestBroadcast checks when a reply is broadcast.
func TestBroadcast(t *testing.T) {
	flag := func(f *Facts) { f.Broadcast = true }
	for name, one := range map[string]struct {
		plan  plan
		facts *Facts
		want  bool
	}{
		"no flag":          {newPlan(), message(Discover, 1), false},
		"the flag":         {newPlan(), message(Discover, 1, flag), true},
		"always-broadcast": {newPlan(service("always-broadcast", true)), message(Discover, 1), true},
	} {
		if d := Decide(one.plan.compile(t), one.facts, memory{}, now); d.Broadcast != one.want {
			t.Errorf("%s: %v", name, d.Broadcast)
		}
	}
}

// TestCleanHostName checks the names that clients send.
func TestCleanHostName(t *testing.T) {
	for in, want := range map[string]string{"pc": "pc",
		"my pc.example.": "my-pc.example", "a\x00b": "a", "..": "", "-x-": "x", "ümlaut": "mlaut",
		strings.Repeat("a", 64): strings.Repeat("a", 63), "\xff\xfe": ""} {
		if got := CleanHostName([]byte(in)); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestCompileRejects checks that contradictory content is rejected with its unit.
func TestCompileRejects(t *testing.T) {
	for want, p := range map[string]plan{
		"one record of the server":  newPlan().with(ServerUnit, Server{ID: 2, Name: "b", Configuration: 2}),
		"outside of 10.0.0.0/24":    newPlan(Pool{ID: 60, Ranges: []Interval{{addr("10.1.0.1"), addr("10.1.0.2")}}}),
		"overlap at 10.0.0.14":      newPlan(Pool{ID: 60, Ranges: []Interval{{addr("10.0.0.14"), addr("10.0.0.16")}}}),
		"two reservations":          newPlan(Reservation{ID: 60, Address: addr("10.0.0.33"), MAC: Hex(mac(9))}),
		"is outside of 10.0.0.0/24": newPlan(Reservation{ID: 60, Address: addr("10.1.0.33"), MAC: Hex(mac(7))}),
		"which does not exist":      newPlan(option(99, AtRange, 15, "x")),
		"has no effect there":       newPlan(Subclass{ID: 60, Value: Hex("a")}),
		"listed twice":              classes().with(MACPoolUnit(0), MACAddress{ID: 99, MAC: Hex(mac(4))}),
		"served twice":              newPlan().with(NetworkUnit(99), Network{ID: 99, Prefix: netip.MustParsePrefix("10.0.0.0/24")}),
		"has no subclasses":         classes().with(ClassUnit(21), Subclass{ID: 60, Value: Hex("a")}),
	} {
		units := Units{}
		for id, items := range p {
			one, err := EncodeUnit(id, items...)
			if err != nil {
				t.Fatal(err)
			}
			units[id] = one
		}
		if _, err := Compile(units, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestSharedReservation checks an address that is reserved for several hardware addresses of one machine: only one holds it at a time.
func TestSharedReservation(t *testing.T) {
	c := newPlan(Reservation{ID: 60, Address: addr("10.0.0.20"), MAC: Hex(mac(7))}).compile(t)
	if d := Decide(c, message(Discover, 7), memory{}, now); text(d) != "OFFER 10.0.0.20" {
		t.Error(text(d))
	}
	if d := Decide(c, message(Discover, 7), lease(9, "10.0.0.20", Leased), now); slices.Contains([]string{"OFFER 10.0.0.20"}, text(d)) {
		t.Error(text(d))
	}
}
