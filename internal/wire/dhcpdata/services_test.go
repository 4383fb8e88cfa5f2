package dhcpdata

import (
	"encoding/json"
	"slices"
	"testing"
)

// settings are values of a service option to try.
func (o ServiceOption) settings() (all []any) {
	switch o.Value {
	case Boolean:
		return []any{true, false}
	case Number:
		for _, n := range []uint32{0, 1, 4, 10, 60, 4000} {
			if n >= o.Min && (o.Max == 0 || n <= o.Max) {
				all = append(all, n)
			}
		}
	case Address:
		return []any{"10.0.0.77"}
	case IDList:
		return []any{[]int64{21}, []int64{40}}
	case Texts:
		return []any{[]string{"FIXED", "lamp"}}
	case Text:
		for _, one := range o.Values {
			all = append(all, one)
		}
		if all == nil {
			all = []any{"lamp.example"}
		}
	}
	return all
}

// TestServiceOptionsAct checks that each service option of DHCPv4 with an effect changes a decision: one about some message of some client,
// with some other settings. The options of failover pairs and of messages in the log have tests of their own.
func TestServiceOptionsAct(t *testing.T) {
	elsewhere := map[string]string{"load-balance-override": "pairs", "load-balance-split": "pairs", "max-response-delay": "pairs",
		"max-unacked-updates": "pairs", "mclt": "pairs", "log-threshold-high": "TestThresholds", "log-threshold-low": "TestThresholds"}
	named := func(f *Facts) { f.Options[12], f.Options[55] = []byte("PC-1"), []byte{1, 3, 6, 12, 15} }
	fqdn := func(flags byte) func(*Facts) {
		return func(f *Facts) { f.Options[81] = append([]byte{flags, 0, 0}, "\x02pc\x03lab\x07example\x00"...) }
	}
	identified := with(61, "\x01client")
	infinite := func(l *LeaseState) { l.Expires = InfiniteTime }
	other := func(l *LeaseState) { l.Client = Identity(1, mac(1), []byte("\x01other")) }
	moved := func(l *LeaseState) { l.Network, l.Address = 30, addr("10.3.0.10") }
	stashed := func(l *LeaseState) { l.Relay = []byte("\x01\x05port1") }
	long := func(l *LeaseState) { l.Start, l.Expires = now-20, now+86380 }
	bootp := func(f *Facts) { f.Options = nil }
	updates := []Item{service("ddns-updates", true), service("ddns-domainname", "lab.example")}
	scenarios := []struct {
		more   []Item
		facts  *Facts
		leases memory
	}{
		{updates, message(Discover, 1, named), nil}, {updates, message(Discover, 1, named, fqdn(0)), nil},
		{updates, message(Discover, 1, named, fqdn(1)), nil}, {updates, message(Discover, 1, named, fqdn(5)), nil},
		{updates, message(Discover, 8, named), nil}, {updates, message(Request, 8, named, asks("10.0.0.12"), to("10.0.0.2")), nil},
		{append(updates[:1:1], service("ddns-dual-stack-mixed-mode", true), updates[1]), message(Discover, 1, named), nil},
		{[]Item{service("ddns-domainname", "lab.example")}, message(Discover, 1, named), nil},
		{nil, message(Discover, 1, named, identified), nil}, {nil, message(Discover, 1, with(60, "Phone 7")), nil},
		{nil, message(Discover, 4), nil}, {nil, message(Discover, 1, func(f *Facts) { f.Secs = 1 << 8 }), nil},
		{[]Item{service("min-secs", 4)}, message(Discover, 1, func(f *Facts) { f.Secs = 5 << 8 }), nil},
		{nil, message(Request, 1, asks("10.9.0.1")), nil}, {nil, message(Request, 1, asks("10.0.0.11"), to("10.0.0.99")), nil},
		{nil, message(Request, 1, asks("10.0.0.10"), to("10.0.0.2")), lease(1, "10.0.0.13", Leased, other)},
		{nil, message(Request, 1, asks("10.0.0.10"), to("10.0.0.2")), lease(1, "10.3.0.10", Leased, moved)},
		{nil, message(Request, 1, renews("10.0.0.11")), lease(1, "10.0.0.11", Leased, long)},
		{[]Item{service("allow-dhcp-class-members", []int64{22})}, message(Request, 1, renews("10.0.0.11")),
			lease(1, "10.0.0.11", Leased, stashed)},
		{nil, message(Decline, 1, asks("10.0.0.11"), to("10.0.0.2")), lease(1, "10.0.0.11", Leased)},
		{nil, message(Release, 1, renews("10.0.0.11")), lease(1, "10.0.0.11", Leased, infinite)},
		{nil, message(Discover, 1, with(51, "\x00\x00\x00\x3c")), nil},
		{[]Item{Reservation{ID: 70, Address: addr("10.0.0.40"), MAC: Hex(mac(6)), HostName: "crane"}},
			message(Discover, 6, with(55, "\x0c")), nil},
		{nil, message(0, 8), nil}, {nil, message(0, 8, bootp), nil}, {nil, message(0, 1), nil},
		{[]Item{service("dynamic-bootp", true)}, message(0, 1), nil},
		{nil, message(Discover, 1), leases(slices.Concat(held(2, "10.0.0.10"), held(3, "10.0.0.11"), held(5, "10.0.0.13"))...)},
	}
	decide := func(more []Item, extra []Item, f *Facts, m memory) string {
		if m == nil {
			m = memory{}
		}
		facts := *f
		facts.Explain = false
		d := Decide(classes(more...).with(ClassUnit(21), extra...).compile(t), &facts, m, now)
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, o := range services4 {
		if o.Effect == "" || elsewhere[o.Name] != "" {
			continue
		}
		acts := false
		for _, value := range o.settings() {
			for _, s := range scenarios {
				one := service(o.Name, value)
				if slices.Contains(o.Without, AtNetwork) { // it acts at classes alone
					m := memory{}
					at, l := leased(2, "10.0.0.14", Leased)
					m[at] = l
					f := message(Discover, 1, with(60, "Phone"))
					acts = acts || decide(nil, nil, f, m) != decide(nil, []Item{one}, f, m)
					continue
				}
				acts = acts || decide(s.more, nil, s.facts, s.leases) != decide(append(slices.Clip(s.more), one), nil, s.facts, s.leases)
			}
		}
		if !acts {
			t.Errorf("%s changes no decision", o.Name)
		}
	}
}

// held returns a lease of another client, for leases.
func held(n byte, a string) []any {
	at, l := leased(n, a, Leased)
	return []any{at, l}
}
