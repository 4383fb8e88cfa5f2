package resolver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/zonedata"
)

// upstream starts a server that answers with records and follows aliases. It returns the address and port.
func upstream(t *testing.T, records ...string) string {
	t.Helper()
	byName := map[string][]dns.RR{}
	for _, text := range records {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		byName[rr.Header().Name] = append(byName[rr.Header().Name], rr)
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		q := r.Question[0]
		for at, next := q.Name, true; next; {
			next = false
			for _, rr := range byName[at] {
				alias, is := rr.(*dns.CNAME)
				if is && q.Qtype != dns.TypeCNAME {
					at, next = alias.Target, true
				}
				if is || rr.Header().Rrtype == q.Qtype {
					m.Answer = append(m.Answer, rr)
				}
			}
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	return packets.LocalAddr().String()
}

// deployment is the deployed content of a test.
type deployment struct {
	number   int64
	settings zonedata.Settings
	zones    map[string][]string
	last     string
	before   map[string][]zonedata.Record
}

// give sends a resolver the changes of the deployment.
func (d *deployment) give(t *testing.T, app *resolver) {
	t.Helper()
	if err := app.ApplyContent(d.stream(t)); err != nil {
		t.Fatal(err)
	}
}

// stream returns the stream with the changes since the last call.
func (d *deployment) stream(t *testing.T) *bytes.Buffer {
	t.Helper()
	settings, err := json.Marshal(d.settings)
	if err != nil {
		t.Fatal(err)
	}
	now, hashes := map[string][]zonedata.Record{}, map[string]string{}
	for id, lines := range d.zones {
		var h zonedata.Hash
		for _, line := range lines {
			rr, err := dns.NewRR(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			r, err := zonedata.NewRecord(rr)
			if err != nil {
				t.Fatal(err)
			}
			now[id] = append(now[id], r)
			h.Add(r)
		}
		hashes[id] = h.String()
	}
	d.number++
	to := zonedata.Revision{Number: d.number, Hash: zonedata.Total(settings, hashes)}.String()
	var out bytes.Buffer
	w := zonedata.NewWriter(&out, zonedata.Header{From: d.last, To: to})
	w.Settings(settings)
	for id, records := range now {
		var h zonedata.Hash
		for _, r := range d.before[id] {
			h.Add(r)
		}
		c := zonedata.Change{ID: id, To: hashes[id]}
		if d.before[id] != nil {
			c.From = h.String()
		}
		w.Zone(c)
		has := func(all []zonedata.Record, one zonedata.Record) bool {
			return slices.ContainsFunc(all, func(r zonedata.Record) bool { return bytes.Equal(r, one) })
		}
		for _, r := range d.before[id] {
			if !has(records, r) {
				w.Removed(r)
			}
		}
		for _, r := range records {
			if !has(d.before[id], r) {
				w.Added(r)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d.last, d.before = to, now
	return &out
}

// policyZoneOf returns the records of a policy by its name and the rest of each record.
func policyZoneOf(name string, rules ...string) []string {
	all := []string{name + " 60 IN SOA localhost. hostmaster." + name + " 1 60 60 60 60", name + " 60 IN NS localhost."}
	for _, r := range rules {
		owner, rest, _ := strings.Cut(r, " ")
		all = append(all, owner+"."+name+" 30 IN "+rest)
	}
	return all
}

// startResolver starts a resolver with an upstream and returns it with its address.
func startResolver(t *testing.T, upstream string, log *lines, more string) (app *resolver, at string) {
	t.Helper()
	at = freeport.Reserve(t).String()
	host, port, _ := net.SplitHostPort(at)
	app, _ = Kind().New(slog.New(slog.NewTextHandler(log, nil))).(*resolver)
	t.Cleanup(func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := app.Configure(fmt.Appendf(nil, `{"listen":[{"address":%q,"port":%s}],"upstreams":[{"address":%q}]%s}`, host, port, upstream,
		more)); err != nil {
		t.Fatal(err)
	}
	return app, at
}

// asked returns an answer as text: the code, then the data of the records; "nothing" without an answer.
func asked(t *testing.T, network, at, name string, kind uint16) string {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	m.SetEdns0(1232, false)
	answer, _, err := (&dns.Client{Net: network, Timeout: 10 * time.Second}).Exchange(m, at)
	if err != nil {
		return "nothing"
	}
	parts := []string{dns.RcodeToString[answer.Rcode]}
	if answer.Truncated {
		parts = append(parts, "TC")
	}
	for _, rr := range answer.Answer {
		parts = append(parts, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	if opt := answer.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, is := o.(*dns.EDNS0_EDE); is {
				parts = append(parts, fmt.Sprintf("EDE%d", e.InfoCode))
			}
		}
	}
	return strings.Join(parts, " ")
}

// TestPolicies checks each trigger and action, and the order of policies. Changes take effect immediately. Void and deleted policies, and
// those of other views, have no effect.
func TestPolicies(t *testing.T) {
	server := upstream(t, "good.test. 60 IN A 192.0.2.1", "bad.test. 60 IN A 192.0.2.2", "www.bad.test. 60 IN A 192.0.2.3",
		"alias.test. 60 IN CNAME www.bad.test.", "evil.test. 60 IN A 198.51.100.66", "six.test. 60 IN AAAA 2001:db8::66",
		"hosted.test. 60 IN A 192.0.2.4", "hosted.test. 60 IN NS ns.crooks.test.", "ns.crooks.test. 60 IN A 203.0.113.66",
		"other.test. 60 IN A 192.0.2.5", "other.test. 60 IN NS ns.other.test.", "ns.other.test. 60 IN A 203.0.113.77",
		"walled.test. 60 IN A 192.0.2.6", "x.garden.test. 60 IN A 192.0.2.7")
	var log lines
	app, at := startResolver(t, server, &log, `,"queryLog":{"every":1000000}`)
	d := &deployment{settings: zonedata.Settings{
		Views: []zonedata.View{{ID: 1, Name: "v", Policies: []zonedata.Policy{{Zone: "allow"}, {Zone: "block"}}}},
		Zones: []zonedata.Zone{{ID: "allow", View: 1, Name: "allow.rpz."}, {ID: "block", View: 1, Name: "block.rpz."},
			{ID: "plain", View: 1, Name: "plain.test."}}},
		zones: map[string][]string{
			"allow": policyZoneOf("allow.rpz.", "ok.bad.test CNAME rpz-passthru."),
			"block": policyZoneOf("block.rpz.", "bad.test CNAME .", "*.bad.test CNAME .", "empty.test CNAME *.", "drop.test CNAME rpz-drop.",
				"tcp.test CNAME rpz-tcp-only.", "moved.test CNAME good.test.", "*.sub.test CNAME *.garden.test.",
				"local.test A 10.0.0.1", "local.test A 10.0.0.2", "local.test TXT here",
				"32.66.100.51.198.rpz-ip CNAME .", "128.66.zz.db8.2001.rpz-ip A 10.0.0.3", "ns.crooks.test.rpz-nsdname CNAME .",
				"24.0.113.0.203.rpz-nsip CNAME *.", "32.66.113.0.203.rpz-nsip CNAME rpz-passthru."),
			"plain": {"plain.test. 60 IN SOA a. b. 1 1 1 1 1"}}}
	check := func(what string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			fields := strings.SplitN(want, " ", 3)
			network, name := "udp", fields[0]
			if rest, is := strings.CutPrefix(name, "tcp:"); is {
				network, name = "tcp", rest
			}
			if got := asked(t, network, at, name, dns.StringToType[fields[1]]); got != fields[2] {
				t.Errorf("%s: %s %s: %s, want %s", what, name, fields[1], got, fields[2])
			}
		}
	}
	check("before", "bad.test. A NOERROR 192.0.2.2")
	d.give(t, app)
	check("policies", "good.test. A NOERROR 192.0.2.1", "bad.test. A NXDOMAIN EDE15", "BAD.test. A NXDOMAIN EDE15",
		"a.www.bad.test. A NXDOMAIN EDE15",
		"ok.bad.test. A NOERROR", "alias.test. A NXDOMAIN www.bad.test. EDE15", "empty.test. A NOERROR EDE15", "drop.test. A nothing",
		"tcp.test. A NOERROR TC EDE15", "tcp:tcp.test. A NOERROR", "moved.test. A NOERROR good.test. 192.0.2.1 EDE4",
		"x.sub.test. A NOERROR x.sub.test.garden.test. EDE4", "local.test. A NOERROR 10.0.0.1 10.0.0.2 EDE4", `local.test. TXT NOERROR "here" EDE4`,
		"local.test. AAAA NOERROR EDE4", "evil.test. A NXDOMAIN EDE15", "six.test. AAAA NOERROR EDE4", "hosted.test. A NXDOMAIN EDE15",
		"other.test. A NOERROR EDE15")
	if !strings.Contains(log.String(), "policy=block.rpz. trigger=question action=nxdomain") {
		t.Errorf("no match is logged: %s", log.String())
	}
	d.zones["block"] = policyZoneOf("block.rpz.", "*.bad.test CNAME .", "good.test CNAME .", "local.test A 10.0.0.2")
	d.give(t, app)
	check("a change", "bad.test. A NOERROR 192.0.2.2", "good.test. A NXDOMAIN EDE15", "www.bad.test. A NXDOMAIN EDE15",
		"evil.test. A NOERROR 198.51.100.66",
		"local.test. A NOERROR 10.0.0.2 EDE4", "hosted.test. A NOERROR 192.0.2.4")
	if got := fmt.Sprint(app.content.Load().sizes()); got != "map[allow.rpz.:1 block.rpz.:3]" {
		t.Errorf("rules: %s", got)
	}
	d.settings.Views[0].Policies[1] = zonedata.Policy{Zone: "block", Override: "REDIRECT", Target: "10.9.9.9"}
	d.give(t, app)
	check("an override", "good.test. A NOERROR 10.9.9.9 EDE4", "good.test. AAAA NOERROR EDE4", "bad.test. A NOERROR 192.0.2.2")
	d.settings.Views[0].Clients = []zonedata.Match{{Prefix: netip.MustParsePrefix("192.0.2.0/24")}}
	d.give(t, app)
	check("clients of no view", "good.test. A REFUSED EDE18")
	d.settings.Views[0].Clients, d.settings.Zones[1].Void = nil, true
	d.give(t, app)
	check("a policy that has expired", "good.test. A NOERROR 192.0.2.1", "local.test. A NOERROR")
	d.settings.Zones[1].Void = false
	d.settings.Views[0].Recursion = &zonedata.Recursion{Clients: []zonedata.Match{{Prefix: netip.MustParsePrefix("192.0.2.0/24")}}}
	d.give(t, app)
	check("clients that may not ask", "good.test. A REFUSED EDE18")
}

// TestForwardingRoles checks that roles set the forwarders, and that an inconsistent stream changes nothing.
func TestForwardingRoles(t *testing.T) {
	var log lines
	usual := upstream(t, "a.test. 60 IN A 192.0.2.1", "a.corp. 60 IN A 192.0.2.1")
	others, corporate := upstream(t, "a.test. 60 IN A 192.0.2.2"), upstream(t, "a.corp. 60 IN A 192.0.2.3")
	app, at := startResolver(t, usual, &log, "")
	check := func(what, name, want string) {
		t.Helper()
		if got := asked(t, "udp", at, name, dns.TypeA); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("before", "a.test.", "NOERROR 192.0.2.1")
	d := &deployment{settings: zonedata.Settings{Views: []zonedata.View{{ID: 1, Name: "v", Recursion: &zonedata.Recursion{
		Forwarders: []netip.AddrPort{netip.MustParseAddrPort(at), netip.MustParseAddrPort(others)},
		Zones:      []zonedata.Forwarded{{Name: "corp.", To: []netip.AddrPort{netip.MustParseAddrPort(corporate)}}}}}}}}
	d.give(t, app)
	check("forwarders", "a.test.", "NOERROR 192.0.2.2")
	check("a zone", "a.corp.", "NOERROR 192.0.2.3")
	now := app.Content()
	d.settings.Views = nil
	stream := d.stream(t).Bytes()
	for cut := range len(stream) {
		if app.ApplyContent(bytes.NewReader(stream[:cut])) == nil {
			t.Fatalf("a stream that is cut after %d of %d bytes is taken", cut, len(stream))
		}
	}
	for _, at := range []int{len(stream) / 2, len(stream) - 10} {
		other := slices.Clone(stream)
		other[at] ^= 1
		if app.ApplyContent(bytes.NewReader(other)) == nil {
			t.Errorf("a stream with another byte %d is taken", at)
		}
	}
	if app.Content() != now {
		t.Error("something has changed")
	}
	check("as before", "a.corp.", "NOERROR 192.0.2.3")
	if err := app.ApplyContent(bytes.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	check("without an explanation", "a.test.", "NOERROR 192.0.2.1")
	var nothing bytes.Buffer
	if err := zonedata.WriteEmpty(&nothing); err != nil {
		t.Fatal(err)
	}
	if err := app.ApplyContent(&nothing); err != nil || app.Content() != zonedata.EmptyRevision() {
		t.Error(err)
	}
}

// TestNameServersAreFound checks that the operator of a zone can neither prevent the check of its name servers nor cause endless queries.
func TestNameServersAreFound(t *testing.T) {
	var questions atomic.Int64
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		name := r.Question[0].Name
		if name != "." { // the name of the upstream check
			questions.Add(1)
		}
		switch {
		case strings.HasSuffix(name, "lame.test.") && r.Question[0].Qtype == dns.TypeNS:
			m.Rcode = dns.RcodeServerFailure
		case r.Question[0].Qtype == dns.TypeA:
			m.Answer = rrs(t, name+" 60 IN A 192.0.2.1")
		case strings.HasSuffix(name, ".apex.test."):
			m.Ns = rrs(t, "apex.test. 60 IN SOA a. b. 1 1 1 1 1")
		case name == "apex.test.":
			m.Answer = rrs(t, "apex.test. 60 IN NS ns.crooks.test.")
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	var log lines
	app, at := startResolver(t, packets.LocalAddr().String(), &log, "")
	d := &deployment{settings: zonedata.Settings{Views: []zonedata.View{{ID: 1, Name: "v", Policies: []zonedata.Policy{{Zone: "block"}}}},
		Zones: []zonedata.Zone{{ID: "block", View: 1, Name: "block.rpz."}}},
		zones: map[string][]string{"block": policyZoneOf("block.rpz.", "ns.crooks.test.rpz-nsdname CNAME .")}}
	d.give(t, app)
	deep := strings.Repeat("a.", 60)
	for _, c := range []struct {
		name, want string
		most       int64
	}{{"www.lame.test.", "SERVFAIL", 2}, {deep + "apex.test.", "NXDOMAIN EDE15", 3},
		{strings.Repeat("a.", 124) + "test.", "SERVFAIL", maxLookUps + 1}} {
		before := questions.Load()
		if got := asked(t, "udp", at, c.name, dns.TypeA); got != c.want {
			t.Errorf("%s is %s, want %s", c.name, got, c.want)
		}
		if n := questions.Load() - before; n > c.most {
			t.Errorf("%s led to %d questions, more than %d", c.name, n, c.most)
		}
	}
}

// TestPrefixesOfTriggers checks that only one spelling of a prefix is a rule, so that each rule can be removed separately.
func TestPrefixesOfTriggers(t *testing.T) {
	z, err := newPolicyZone("p.rpz.")
	if err != nil {
		t.Fatal(err)
	}
	record := func(text string) zonedata.Record {
		r, err := zonedata.NewRecord(rrs(t, text)[0])
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	z.add(record("24.0.2.0.192.rpz-ip.p.rpz. 60 CNAME ."))
	z.add(record("24.1.2.0.192.rpz-ip.p.rpz. 60 CNAME ."))
	z.change([]zonedata.Record{record("24.1.2.0.192.rpz-ip.p.rpz. 60 CNAME .")}, nil)
	if _, ok := (activePolicy{policyZone: z}).ruleForAddress(netip.MustParseAddr("192.0.2.7")); !ok || z.size() != 1 {
		t.Errorf("the rule is there: %t, of %d", ok, z.size())
	}
}

// TestUnusableContent checks that content that cannot be applied is not reported as applied, and that the previous content remains
// in use.
func TestUnusableContent(t *testing.T) {
	server := upstream(t, "bad.test. 60 IN A 192.0.2.2")
	var log lines
	app, at := startResolver(t, server, &log, "")
	d := &deployment{settings: zonedata.Settings{Views: []zonedata.View{{ID: 1, Name: "v", Policies: []zonedata.Policy{{Zone: "block"}}}},
		Zones: []zonedata.Zone{{ID: "block", View: 1, Name: "block.rpz."}}},
		zones: map[string][]string{"block": policyZoneOf("block.rpz.", "bad.test CNAME .")}}
	d.give(t, app)
	now := app.Content()
	d.zones["block"] = policyZoneOf("block.rpz.", "other.test CNAME .")
	d.settings.Views[0].Recursion = &zonedata.Recursion{Zones: []zonedata.Forwarded{{Name: "not a name.",
		To: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")}}}}
	if err := app.ApplyContent(d.stream(t)); err == nil {
		t.Error("what cannot be started is taken")
	}
	if got := asked(t, "udp", at, "bad.test.", dns.TypeA); app.Content() != now || got != "NXDOMAIN EDE15" {
		t.Errorf("in force is %s, which was %s; %s", app.Content(), now, got)
	}
}

// rrs parses records.
func rrs(t *testing.T, texts ...string) (all []dns.RR) {
	t.Helper()
	for _, text := range texts {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rr)
	}
	return all
}

// TestAnswersAreAResolvers checks the flags of answers, that policies apply to the targets of aliases and their name servers, and that
// other classes are refused.
func TestAnswersAreAResolvers(t *testing.T) {
	server := upstream(t, "good.test. 60 IN A 192.0.2.1", "hosted.test. 60 IN A 192.0.2.4", "hosted.test. 60 IN NS ns.crooks.test.",
		"alias.test. 60 IN CNAME hosted.test.")
	var log lines
	app, at := startResolver(t, server, &log, "")
	long := strings.Repeat(strings.Repeat("a", 60)+".", 3)
	d := &deployment{settings: zonedata.Settings{Views: []zonedata.View{{ID: 1, Name: "v", Policies: []zonedata.Policy{{Zone: "block"}}}},
		Zones: []zonedata.Zone{{ID: "block", View: 1, Name: "block.rpz."}}},
		zones: map[string][]string{"block": policyZoneOf("block.rpz.", "ns.crooks.test.rpz-nsdname CNAME .", "*.sub.test CNAME *."+long)}}
	d.give(t, app)
	for name, want := range map[string]string{"alias.test.": "NXDOMAIN EDE15", "good.test.": "NOERROR 192.0.2.1",
		long + "sub.test.": "YXDOMAIN EDE4"} {
		if got := asked(t, "udp", at, name, dns.TypeA); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	m := new(dns.Msg)
	m.SetQuestion("good.test.", dns.TypeA)
	r, _, err := new(dns.Client).Exchange(m, at)
	if err != nil || !r.RecursionAvailable || r.Authoritative {
		t.Errorf("%v %v", r, err)
	}
	for _, class := range []uint16{dns.ClassANY, dns.ClassCHAOS, dns.ClassHESIOD} {
		m.Question[0].Qclass = class
		if r, _, err := new(dns.Client).Exchange(m, at); err != nil || r.Rcode != dns.RcodeRefused {
			t.Errorf("class %d: %v %v", class, r, err)
		}
	}
}

// TestUnusualTriggers checks that unusual owner names become either a rule or none.
func TestUnusualTriggers(t *testing.T) {
	z, err := newPolicyZone("p.rpz.")
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range []string{`a\006rpz-ip`, `a\013rpz-client-ip`, `\008rpz-nsip`, "rpz-ip", "x.rpz-ip", `a\.rpz-nsdname`, "rpz-nsdname", "*"} {
		r, err := zonedata.NewRecord(rrs(t, owner+".p.rpz. 60 CNAME .")[0])
		if err != nil {
			t.Fatal(err)
		}
		z.add(r)
		z.change([]zonedata.Record{r}, nil)
		if n := z.size(); n != 0 {
			t.Errorf("%s leaves %d rules", owner, n)
		}
	}
}

// TestForwardingLoopIsRefused checks that a configuration with a forwarding loop is rejected, also for a listener at all addresses.
func TestForwardingLoopIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"listen":[{"address":"0.0.0.0","port":5353}],"upstreams":[{"address":"127.0.0.1:5353"}]}`,
		`{"listen":[{"address":"::","port":5353}],"upstreams":[{"address":"127.0.0.9:5353"}]}`,
		`{"listen":[{"address":"0.0.0.0","port":5353}],"upstreams":[{"address":"192.0.2.1"}],"zones":[{"name":"a.test","upstreams":["127.0.0.1:5353"]}]}`,
	} {
		if _, err := read([]byte(text)); err == nil || !strings.Contains(err.Error(), "itself") {
			t.Errorf("%s: %v", text, err)
		}
	}
	c, err := read([]byte(`{"listen":[{"address":"0.0.0.0","port":53}],"upstreams":[{"address":"192.0.2.1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	of := &content{views: []*view{{View: zonedata.View{Recursion: &zonedata.Recursion{
		Zones: []zonedata.Forwarded{{Name: "a.test.", To: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")}}}}}}}}
	if asked := of.configurationFor(c); len(asked.Zones) != 0 {
		t.Errorf("it would ask itself for %v", asked.Zones)
	}
}

// TestQuestionsDuringAChange checks that queries are answered while many names of a policy change, and that a replaced rule is never
// missing.
func TestQuestionsDuringAChange(t *testing.T) {
	z, err := newPolicyZone("p.rpz")
	if err != nil {
		t.Fatal(err)
	}
	const names = 40_000
	var before, after []zonedata.Record
	for i := range names {
		for ttl, list := range map[string]*[]zonedata.Record{"60": &before, "61": &after} {
			rr, err := dns.NewRR(fmt.Sprintf("n%d.example.p.rpz. %s CNAME .", i, ttl))
			if err != nil {
				t.Fatal(err)
			}
			r, err := zonedata.NewRecord(rr)
			if err != nil {
				t.Fatal(err)
			}
			*list = append(*list, r)
		}
	}
	z.change(nil, before)
	policy := activePolicy{policyZone: z}
	done := make(chan struct{})
	go func() {
		defer close(done)
		z.change(before, after)
	}()
	asked := 0
	for changing := true; changing; asked++ {
		select {
		case <-done:
			changing = false
		default:
		}
		name := fmt.Sprintf("n%d.example.", asked*7919%names)
		wire, err := zonedata.WireName(name)
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := policy.ruleForQuestion(netip.MustParseAddr("192.0.2.1"), wire[:len(wire)-1]); !ok || r.action != nameError {
			t.Fatalf("%s has no rule while the policy changes", name)
		}
	}
	if asked < 20 {
		t.Errorf("%d questions were answered while %d names changed", asked, names)
	}
	if z.size() != names || z.names["\x02n0\x07example"].ttl != 61 {
		t.Errorf("the policy has %d rules, the first one %+v", z.size(), z.names["\x02n0\x07example"])
	}
}
