package dhcpdata

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"portolan/internal/base/dhcpmsg"
)

// TestGuardValues checks DHCID records with the examples of RFC 4701 section 3.6, and the texts of earlier servers.
func TestGuardValues(t *testing.T) {
	duid := []byte{0, 1, 0, 6, 0x41, 0x2d, 0xf1, 0x66, 1, 2, 3, 4, 5, 6}
	for _, one := range []struct {
		rule, host, want string
		of               []identifier
	}{
		{"a DUID", "chi6.example.com.", "AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=", identifiers6(duid, 0, nil)},
		{"a client identifier", "chi.example.com.", "AAEBOSD+XR3Os/0LozeXVqcNc7FwCfQdWL3b/NaiUDlW2No=",
			identifiers4(1, []byte{1, 2, 3, 4, 5, 6}, []byte{1, 7, 8, 9, 0xa, 0xb, 0xc})},
		{"a hardware address", "client.example.com.", "AAABxLmlskllE0MVjd57zHcWmEH3pCQ6VytcKD//7es/deY=",
			identifiers4(1, []byte{1, 2, 3, 4, 5, 6}, nil)},
		{"a client identifier with a DUID (RFC 4361)", "chi6.example.com.", "AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=",
			identifiers4(1, []byte{1, 2, 3, 4, 5, 6}, append([]byte{255, 9, 9, 9, 9}, duid...))},
	} {
		got := guardValues(GuardStandard, one.host, one.of, true)
		if len(got) != 1 || base64.StdEncoding.EncodeToString(got[0]) != one.want {
			t.Errorf("%s: %x, want %s", one.rule, got, one.want)
		}
	}
	if got := guardValues(GuardInterim, "x.", identifiers4(1, mac(1), nil), true); !strings.HasPrefix(string(got[0]), "00") ||
		len(got[0]) != 34 {
		t.Errorf("the text is %q", got)
	}
	if got := guardValues(GuardInterim, "x.", identifiers4(1, mac(1), []byte("id")), true); !strings.HasPrefix(string(got[0]), "31") {
		t.Errorf("the text of a client identifier is %q", got)
	}
	// The same machine has one value in common in both families.
	four := guardValues(GuardStandard, "x.example.", identifiers4(1, mac(1), nil), false)
	six := guardValues(GuardStandard, "x.example.", identifiers6(duid6(1), 1, mac(1)), false)
	if fmt.Sprint(four[1]) != fmt.Sprint(six[0]) || fmt.Sprint(four[0]) != fmt.Sprint(six[2]) {
		t.Errorf("DHCPv4 has %v, DHCPv6 %v", four, six)
	}
}

// on are the options that enable updates of DNS.
func on(more ...Item) []Item {
	return append([]Item{service("ddns-updates", true), service("ddns-domainname", "Lab.Example.")}, more...)
}

// answered returns the answer to option 81: the flags, and the name.
func answered(d *Decision) string {
	s := d.find(optFQDN)
	if s == nil {
		return "-"
	}
	name := string(s.Value[3:])
	if s.Value[0]&fqdnEncoded != 0 {
		name, _ = nameOfWire(s.Value[3:])
	}
	var flags string
	for i, letter := range "SOEN" {
		if s.Value[0]&(1<<i) != 0 {
			flags += string(letter)
		}
	}
	return flags + " " + name
}

// TestNames checks the names of clients of DHCPv4, one line for each rule. "PTR" means the usual PTR record of 10.0.0.10.
func TestNames(t *testing.T) {
	host := with(12, "Desk_1.home")
	fqdn := func(flags byte, name string) func(*Facts) { return with(81, string([]byte{flags, 0, 0})+name) }
	static := service("update-static-leases", true)
	const both = "desk-1.lab.example. A PTR"
	for _, one := range []struct {
		rule   string
		plan   plan
		facts  *Facts
		want   string
		answer string
	}{
		{"no updates by default", newPlan(service("ddns-domainname", "lab.example")), message(Discover, 1, host), "", "-"},
		{"the host name", newPlan(on()...), message(Discover, 1, host), both, "-"},
		{"a style turns updates on", newPlan(service("ddns-update-style", "interim"), service("ddns-domainname", "lab.example")),
			message(Discover, 1, host), both + " interim", "-"},
		{"ddns-updates off", newPlan(service("ddns-updates", false), service("ddns-update-style", "standard"),
			service("ddns-domainname", "lab.example")), message(Discover, 1, host), "", "-"},
		{"the style none", newPlan(on(service("ddns-update-style", "none"))...), message(Discover, 1, host), "", "-"},
		{"no domain", newPlan(service("ddns-updates", true)), message(Discover, 1, host), "", "-"},
		{"the option domain-name", newPlan(service("ddns-updates", true), option(0, AtNetwork, 15, "Quay.Example")), message(Discover, 1, host),
			"desk-1.quay.example. A PTR", "-"},
		{"no name", newPlan(on()...), message(Discover, 1), "", "-"},
		{"a name without letters", newPlan(on()...), message(Discover, 1, with(12, "..--\xff.x")), "x.lab.example. A PTR", "-"},
		{"option 81 comes before the host name", newPlan(on()...), message(Discover, 1, host, fqdn(fqdnServer, "pc.elsewhere.example")),
			"pc.lab.example. A PTR", "S pc.lab.example"},
		{"in wire format", newPlan(on()...), message(Discover, 1, fqdn(fqdnServer|fqdnEncoded, "\x02PC\x03lab\x00")),
			"pc.lab.example. A PTR", "SE pc.lab.example"},
		{"a name without its root", newPlan(on()...), message(Discover, 1, fqdn(fqdnServer|fqdnEncoded, "\x02pc")), "pc.lab.example. A PTR",
			"SE pc.lab.example"},
		{"an empty name", newPlan(on()...), message(Discover, 1, host, fqdn(fqdnServer, "")), both, "S desk-1.lab.example"},
		{"a malformed option 81 is ignored", newPlan(on()...), message(Discover, 1, host, with(81, "\x01")), both, "-"},
		{"a label over its end", newPlan(on()...), message(Discover, 1, host, fqdn(fqdnServer|fqdnEncoded, "\x09pc")), both, "-"},
		{"a compressed name", newPlan(on()...), message(Discover, 1, host, fqdn(fqdnServer|fqdnEncoded, "\x02pc\xc0\x00")), both, "-"},
		{"255 labels", newPlan(on()...), message(Discover, 1, host, fqdn(fqdnServer|fqdnEncoded, strings.Repeat("\x01a", 128))), both, "-"},
		{"the client updates its address record", newPlan(on()...), message(Discover, 1, fqdn(0, "pc.home.example")),
			"pc.home.example. PTR", " pc.home.example"},
		{"unless client-updates is off", newPlan(on(service("client-updates", false))...), message(Discover, 1, fqdn(0, "pc.home.example")),
			"pc.lab.example. A PTR", "SO pc.lab.example"},
		{"the flag N", newPlan(on()...), message(Discover, 1, fqdn(fqdnNone, "pc")), "", "N pc"},
		{"without updates the server sets N", newPlan(), message(Discover, 1, fqdn(fqdnServer, "pc")), "", "ON pc"},
		{"do-forward-updates off", newPlan(on(service("do-forward-updates", false))...), message(Discover, 1, fqdn(fqdnServer, "pc")),
			"pc.lab.example. PTR", "O pc.lab.example"},
		{"do-reverse-updates off", newPlan(on(service("do-reverse-updates", false))...), message(Discover, 1, host),
			"desk-1.lab.example. A", "-"},
		{"ddns-rev-domainname", newPlan(on(service("ddns-rev-domainname", "rev.example"))...), message(Discover, 1, host),
			"desk-1.lab.example. A 10.0.0.10.rev.example.", "-"},
		{"ddns-hostname by address", newPlan(on(service("ddns-hostname", []string{"IP", "PREPEND", "pc-"}))...), message(Discover, 1, host),
			"pc-10-0-0-10.lab.example. A PTR", "-"},
		{"ddns-hostname by hardware address", newPlan(on(service("ddns-hostname", []string{"MAC", "APPEND", "-pc"}))...),
			message(Discover, 1), "02-00-00-00-00-01-pc.lab.example. A PTR", "-"},
		{"a fixed ddns-hostname", newPlan(on(service("ddns-hostname", []string{"FIXED", "Kiosk"}))...), message(Discover, 1, host),
			"kiosk.lab.example. A PTR", "-"},
		{"a reservation has no name by default", newPlan(on()...), message(Discover, 9, host), "", "-"},
		{"with update-static-leases it has that of the client", newPlan(on(static)...), message(Discover, 9, host),
			strings.ReplaceAll(both, "PTR", "20.0.0.10.in-addr.arpa."), "-"},
		{"or its own", newPlan(on(static)...), message(Discover, 9), "crane.lab.example. A 20.0.0.10.in-addr.arpa.", "-"},
		{"which comes first with use-host-decl-names", newPlan(on(static, service("use-host-decl-names", true))...),
			message(Discover, 9, host), "crane.lab.example. A 20.0.0.10.in-addr.arpa.", "-"},
		{"a reservation with an absolute name", newPlan(on(static, Reservation{ID: 11, Address: addr("10.0.0.21"), MAC: mac(7),
			HostName: "Lamp.office.example"})...), message(Discover, 7), "lamp.office.example. A 21.0.0.10.in-addr.arpa.", "-"},
		{"no update-conflict-detection", newPlan(on(service("update-conflict-detection", false))...), message(Discover, 1, host),
			both + " overwrite", "-"},
		{"ddns-guard-id-must-match off", newPlan(on(service("ddns-guard-id-must-match", false))...), message(Discover, 1, host),
			both + " any-guard", "-"},
		{"ddns-dual-stack-mixed-mode", newPlan(on(service("ddns-dual-stack-mixed-mode", true))...), message(Discover, 1, host),
			both + " mixed", "-"},
		{"ddns-other-guard-is-dynamic", newPlan(on(service("ddns-dual-stack-mixed-mode", true),
			service("ddns-other-guard-is-dynamic", true))...), message(Discover, 1, host), both + " mixed other-guard", "-"},
		{"it has no effect alone", newPlan(on(service("ddns-other-guard-is-dynamic", true))...), message(Discover, 1, host), both, "-"},
		{"update-optimization off", newPlan(on(service("update-optimization", false))...), message(Discover, 1, host), both + " always", "-"},
		{"ddns-ttl", newPlan(on(service("ddns-ttl", 77))...), message(Discover, 1, host), both + " 77", "-"},
		{"a third of the lease", newPlan(on(service("default-lease-time", 3000))...), message(Discover, 1, host), both + " 1000", "-"},
		{"at least ten minutes", newPlan(on(service("default-lease-time", 600))...), message(Discover, 1, host), both + " 600", "-"},
		{"ddns-local-address4", newPlan(on(service("ddns-local-address4", "10.0.0.2"))...), message(Discover, 1, host),
			both + " from 10.0.0.2", "-"},
	} {
		d := Decide(one.plan.compile(t), one.facts, memory{}, now)
		if d.Reply != Offer {
			t.Errorf("%s: %s", one.rule, text(d))
		}
		if got := strings.ReplaceAll(described(d.Names), "10.0.0.10.in-addr.arpa.", "PTR"); got != one.want {
			t.Errorf("%s: %q, want %q", one.rule, got, one.want)
		}
		if got := answered(d); got != one.answer {
			t.Errorf("%s: the answer is %q, want %q", one.rule, got, one.answer)
		}
	}
}

// described returns the members of names that differ from the usual ones. The usual TTL is that of a lease of a day.
func described(n *Names) string {
	if n == nil {
		return ""
	}
	all := []string{n.Host}
	for _, one := range []struct {
		text string
		is   bool
	}{{"A", n.Forward}, {n.Reverse, n.Reverse != ""}, {string(n.Guard), n.Guard != GuardStandard}, {"overwrite", n.Overwrite},
		{"any-guard", n.AnyGuard}, {"mixed", n.Mixed}, {"other-guard", n.OtherGuard}, {"always", n.Always}, {fmt.Sprint(n.TTL), n.TTL != 28800},
		{"from " + n.Source.String(), n.Source.IsValid()}} {
		if one.is {
			all = append(all, one.text)
		}
	}
	return strings.Join(all, " ")
}

// TestNamesAtRenewal checks that an early renewal with another name is stored, and one with the same name is not.
func TestNamesAtRenewal(t *testing.T) {
	c := newPlan(on()...).compile(t)
	first := Decide(c, message(Request, 1, asks("10.0.0.10"), to("10.0.0.2"), with(12, "one")), memory{}, now)
	held := func(l *LeaseState) { l.Names, l.Start, l.Expires = first.Names, now, now+86400 }
	for name, want := range map[string]Action{"one": ActRenew, "two": ActCommit, "": ActCommit} {
		d := Decide(c, message(Request, 1, renews("10.0.0.10"), with(12, name)), lease(1, "10.0.0.10", Leased, held), now+10)
		if d.Action != want {
			t.Errorf("%q: the action is %d, want %d", name, d.Action, want)
		}
	}
	if !first.Names.Same(first.Names) || first.Names.Same(nil) || !(*Names)(nil).Same(&Names{}) {
		t.Error("names are compared wrongly")
	}
	text, err := json.Marshal(first.Names)
	if err != nil {
		t.Fatal(err)
	}
	var again Names
	if err := json.Unmarshal(text, &again); err != nil || !again.Same(first.Names) || again.TTL != first.Names.TTL {
		t.Errorf("%s becomes %v, %v", text, again, err)
	}
}

// TestNames6 checks the names of clients of DHCPv6.
func TestNames6(t *testing.T) {
	base := []Item{service6(0, "ddns-updates", "true"), service6(0, "ddns-domainname", `"lab.example"`)}
	fqdn := func(flags byte, name string) dhcpmsg.Option6 {
		return dhcpmsg.Option6{Code: dhcpmsg.OptFQDN6, Data: append([]byte{flags}, name...)}
	}
	const ptr = "0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."
	const pc = "\x02PC"
	for _, one := range []struct {
		rule    string
		more    []Item
		options dhcpmsg.Options6
		want    string
		flags   int // -1: no option
	}{
		{"no updates by default", nil, dhcpmsg.Options6{fqdn(1, pc)}, "", 6},
		{"the name of the client", base, dhcpmsg.Options6{fqdn(1, pc)}, "pc.lab.example. A PTR", 1},
		{"without a name", base, nil, "", -1},
		{"a malformed option 39 is ignored", base, dhcpmsg.Options6{fqdn(1, "\x09pc")}, "", -1},
		{"the client updates its address record", base, dhcpmsg.Options6{fqdn(0, "\x02pc\x04home\x00")}, "pc.home. PTR", 0},
		{"unless client-updates is off", append(base[:2:2], service6(0, "client-updates", "false")), dhcpmsg.Options6{fqdn(0, pc)},
			"pc.lab.example. A PTR", 3},
		{"the flag N", base, dhcpmsg.Options6{fqdn(4, pc)}, "", 4},
		{"ddns-hostname by DUID", append(base[:2:2], service6(0, "ddns-hostname", `["DUID","PREPEND","d-"]`)), nil,
			"d-00030001020000000001.lab.example. A PTR", -1},
		{"ddns-hostname by address", append(base[:2:2], service6(0, "ddns-hostname", `["IP","APPEND","-h"]`)), nil,
			"2001-0db8-0001-0000-0000-0000-0000-0010-h.lab.example. A PTR", -1},
		{"ddns-rev-domainname", append(base[:2:2], service6(0, "ddns-rev-domainname", `"rev.example"`)), dhcpmsg.Options6{fqdn(1, pc)},
			"pc.lab.example. A " + strings.TrimSuffix(ptr, "ip6.arpa.") + "rev.example.", 1},
		{"ddns-local-address6", append(base[:2:2], service6(0, "ddns-local-address6", `"2001:db8::1"`)), dhcpmsg.Options6{fqdn(1, pc)},
			"pc.lab.example. A PTR from 2001:db8::1", 1},
		{"the style interim", append(base[:2:2], service6(0, "ddns-update-style", `"interim"`)), dhcpmsg.Options6{fqdn(1, pc)},
			"pc.lab.example. A PTR interim", 1},
	} {
		d := ask6{kind: dhcpmsg.Request6, client: 1, options: append(dhcpmsg.Options6{na(1, "2001:db8:1::10"), pd(2)}, one.options...)}.
			decide(t, newPlan6(one.more...).compile(t), memory{})
		if len(d.Changes) != 2 || d.Changes[1].Names != nil {
			t.Fatalf("%s: %+v", one.rule, d.Changes)
		}
		if got := strings.ReplaceAll(described(d.Changes[0].Names), ptr, "PTR"); got != one.want {
			t.Errorf("%s: %q, want %q", one.rule, got, one.want)
		}
		flags := -1
		for _, o := range d.Options {
			if o.Code == dhcpmsg.OptFQDN6 {
				flags = int(o.Value[0])
			}
		}
		if flags != one.flags {
			t.Errorf("%s: the flags are %d, want %d", one.rule, flags, one.flags)
		}
	}
}

// TestZoneOf checks that the zone with the longest name of the family is chosen.
func TestZoneOf(t *testing.T) {
	p := newPlan()
	p.with(ServerUnit, Zone{ID: 1, Name: "example.", Primary: addr("10.0.0.3")}, Zone{ID: 2, Name: "lab.example.", Primary: addr("10.0.0.3")},
		Zone{ID: 3, Name: "a.lab.example.", V6: true, Primary: addr("10.0.0.3")})
	c := p.compile(t)
	for name, want := range map[string]int64{"a.lab.example.": 2, "x.a.lab.example.": 2, "lab.example.": 2, "collab.example.": 1,
		"example.": 1, "other.": 0} {
		if z, _ := c.ZoneOf(name, false); z.ID != want {
			t.Errorf("the zone of %s is %d, want %d", name, z.ID, want)
		}
	}
	if z, ok := c.ZoneOf("x.a.lab.example.", true); !ok || z.ID != 3 {
		t.Errorf("the zone of DHCPv6 is %d", z.ID)
	}
}
