package nameserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/zonedata"
)

// given is a zone of a test.
type given struct {
	name, records string
	view          int64
	query         []zonedata.Match
	transfer      []zonedata.Match
	update        []zonedata.Match
	notify        []netip.AddrPort
	keys          []zonedata.SigningKey
	signing       *zonedata.Signing
	optOut        bool // opt-out of NSEC3, if BIND's program signs
	primaries     []netip.Addr
}

// entries returns the records of a zone, the SOA first.
func (g given) entries(t testing.TB) (all []zonedata.Entry) {
	t.Helper()
	p := dns.NewZoneParser(strings.NewReader(g.records), g.name, "")
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		r, err := zonedata.NewRecord(rr)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, zonedata.NewEntry(r))
	}
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, zonedata.Entry.Compare)
	return all
}

// content returns a stream with zones and its revision.
func content(t testing.TB, views []zonedata.View, zones ...given) ([]byte, string) {
	t.Helper()
	settings := zonedata.Settings{Views: views}
	hashes := map[string]string{}
	for i, z := range zones {
		var h zonedata.Hash
		for _, e := range z.entries(t) {
			h.Add(e.Record())
		}
		id := fmt.Sprint(i)
		hashes[id] = h.String()
		settings.Zones = append(settings.Zones, zonedata.Zone{ID: id, View: z.view, Name: z.name, Query: z.query, Transfer: z.transfer,
			Update: z.update,
			Notify: z.notify, Signing: z.signing, Primaries: z.primaries})
		settings.Keys = append(settings.Keys, z.keys...)
	}
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	revision := zonedata.Revision{Number: 1, Hash: zonedata.Total(text, hashes)}.String()
	var out bytes.Buffer
	w := zonedata.NewWriter(&out, zonedata.Header{To: revision})
	w.Settings(text)
	for i, z := range zones {
		w.Zone(zonedata.Change{ID: fmt.Sprint(i), To: hashes[fmt.Sprint(i)]})
		for _, e := range z.entries(t) {
			w.Added(e.Record())
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), revision
}

// delta returns the stream from one content of the only zone to another one with the revision to.
func delta(t testing.TB, a *nameServer, before, after given, to string) []byte {
	t.Helper()
	removed, added := zonedata.Diff(before.entries(t), after.entries(t))
	s := a.served.Load()
	var out bytes.Buffer
	w := zonedata.NewWriter(&out, zonedata.Header{From: s.revision, To: to})
	var h zonedata.Hash
	for _, e := range after.entries(t) {
		h.Add(e.Record())
	}
	w.Zone(zonedata.Change{ID: "0", From: s.zones["0"].hash.String(), To: h.String()})
	for _, e := range removed {
		w.Removed(e.Record())
	}
	for _, e := range added {
		w.Added(e.Record())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// start returns an application that serves zones, in one view if views is empty.
func start(t testing.TB, views []zonedata.View, zones ...given) *nameServer {
	t.Helper()
	if views == nil {
		views = []zonedata.View{{ID: 0, Name: "default"}}
	}
	a := newNameServer(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = a.Close() })
	text, revision := content(t, views, zones...)
	if err := a.ApplyContent(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if a.Content() != revision {
		t.Fatalf("%s is served, not %s", a.Content(), revision)
	}
	return a
}

var loopback = netip.MustParseAddr("127.0.0.1")

// question sends a query over UDP without EDNS.
func (a *nameServer) question(t testing.TB, name string, kind uint16, with ...func(*dns.Msg)) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	for _, fn := range with {
		fn(m)
	}
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	got := a.answer(wire, nil, loopback, false)
	answer := new(dns.Msg)
	if err := answer.Unpack(got); err != nil {
		t.Fatalf("%s %s: %v in % x", name, dns.TypeToString[kind], err, got)
	}
	if answer.Id != m.Id || !answer.Response || len(answer.Question) != 1 || answer.Question[0] != m.Question[0] {
		t.Fatalf("%s %s: %s", name, dns.TypeToString[kind], answer)
	}
	return answer
}

// words returns an answer as text: code, flags and sections.
func words(m *dns.Msg) string {
	var b strings.Builder
	b.WriteString(dns.RcodeToString[m.Rcode])
	if m.Authoritative {
		b.WriteString(" aa")
	}
	if m.Truncated {
		b.WriteString(" tc")
	}
	for i, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		var texts []string
		for _, rr := range section {
			if rr.Header().Rrtype == dns.TypeOPT {
				continue
			}
			texts = append(texts, fmt.Sprint(strings.Join(strings.Fields(strings.Replace(rr.String(), "\tIN\t", " ", 1)), " ")))
		}
		slices.Sort(texts)
		if len(texts) > 0 {
			fmt.Fprintf(&b, " |%d| %s", i, strings.Join(texts, "; "))
		}
	}
	return b.String()
}

const harbour = `
@ 3600 SOA ns hostmaster 7 10800 3600 604800 300
@ 3600 NS ns
@ 3600 MX 10 mail
ns 3600 A 192.0.2.1
mail 3600 A 192.0.2.2
mail 3600 AAAA 2001:db8::2
a.b.deep 60 A 192.0.2.3
*.wild 60 A 192.0.2.4
x.wild 60 TXT "x"
www 60 CNAME mail
chain 60 CNAME www
away 60 CNAME elsewhere.example.
nowhere 60 CNAME missing
round 60 CNAME round2
round2 60 CNAME round
over 60 CNAME host.quay
sub 3600 NS ns.sub
sub 3600 NS ns
sub 3600 DS 1 8 2 AB
ns.sub 3600 A 192.0.2.5
under.sub 60 A 192.0.2.6
old 60 DNAME new
x.new 60 A 192.0.2.7
up 60 DNAME @
_sip._tcp 60 SRV 0 0 5060 mail
`

// TestAnswers checks the answers of the name server (RFC 1034, 2308, 4592, 6604, 6672, 9471).
func TestAnswers(t *testing.T) {
	a := start(t, nil, given{name: "harbour.example.", records: harbour}, given{name: "quay.harbour.example.", records: `
@ 3600 SOA ns hostmaster 1 1 1 1 60
@ 3600 NS ns.harbour.example.
host 60 A 192.0.2.9
`})
	const soa = "|1| harbour.example. 300 SOA ns.harbour.example. hostmaster.harbour.example. 7 10800 3600 604800 300"
	for _, c := range []struct {
		name string
		kind uint16
		want string
	}{
		{"mail", dns.TypeA, "NOERROR aa |0| mail.harbour.example. 60 A"},
		{"MaIl", dns.TypeAAAA, "NOERROR aa |0| MaIl.harbour.example. 3600 AAAA 2001:db8::2"},
		{"mail", dns.TypeTXT, "NOERROR aa " + soa},
		{"none", dns.TypeA, "NXDOMAIN aa " + soa},
		{"deep", dns.TypeA, "NOERROR aa " + soa},
		{"b.deep", dns.TypeA, "NOERROR aa " + soa},
		{"c.deep", dns.TypeA, "NXDOMAIN aa " + soa},
		{"any.wild", dns.TypeA, "NOERROR aa |0| any.wild.harbour.example. 60 A 192.0.2.4"},
		{"a.b.wild", dns.TypeA, "NOERROR aa |0| a.b.wild.harbour.example. 60 A 192.0.2.4"},
		{"any.wild", dns.TypeTXT, "NOERROR aa " + soa},
		{"x.wild", dns.TypeA, "NOERROR aa " + soa},
		{"a.x.wild", dns.TypeA, "NXDOMAIN aa " + soa},
		{"*.wild", dns.TypeA, "NOERROR aa |0| *.wild.harbour.example. 60 A 192.0.2.4"},
		{"chain", dns.TypeAAAA, "NOERROR aa |0| chain.harbour.example. 60 CNAME www.harbour.example.; " +
			"mail.harbour.example. 3600 AAAA 2001:db8::2; www.harbour.example. 60 CNAME mail.harbour.example."},
		{"chain", dns.TypeCNAME, "NOERROR aa |0| chain.harbour.example. 60 CNAME www.harbour.example."},
		{"away", dns.TypeA, "NOERROR aa |0| away.harbour.example. 60 CNAME elsewhere.example."},
		{"nowhere", dns.TypeA, "NXDOMAIN aa |0| nowhere.harbour.example. 60 CNAME missing.harbour.example. " + soa},
		{"round", dns.TypeA, "SERVFAIL aa |0| round.harbour.example. 60 CNAME round2.harbour.example.; " +
			"round2.harbour.example. 60 CNAME round.harbour.example."},
		{"over", dns.TypeA, "NOERROR aa |0| host.quay.harbour.example. 60 A 192.0.2.9; " +
			"over.harbour.example. 60 CNAME host.quay.harbour.example."},
		{"sub", dns.TypeA, "NOERROR |1| sub.harbour.example. 3600 NS ns.harbour.example.; sub.harbour.example. 3600 NS ns.sub.harbour.example. " +
			"|2| ns.harbour.example. 3600 A 192.0.2.1; ns.sub.harbour.example. 3600 A 192.0.2.5"},
		{"under.sub", dns.TypeA, "NOERROR |1| sub.harbour.example. 3600 NS ns.harbour.example.; sub.harbour.example. 3600 NS " +
			"ns.sub.harbour.example. |2| ns.harbour.example. 3600 A 192.0.2.1; ns.sub.harbour.example. 3600 A 192.0.2.5"},
		{"sub", dns.TypeDS, "NOERROR aa |0| sub.harbour.example. 3600 DS 1 8 2 AB"},
		{"quay", dns.TypeDS, "NXDOMAIN aa " + soa},
		{"host.quay", dns.TypeA, "NOERROR aa |0| host.quay.harbour.example. 60 A 192.0.2.9"},
		{"x.old", dns.TypeA, "NOERROR aa |0| old.harbour.example. 60 DNAME new.harbour.example.; x.new.harbour.example. 60 A 192.0.2.7; " +
			"x.old.harbour.example. 60 CNAME x.new.harbour.example."},
		{"x.new.up.up", dns.TypeA, "NOERROR aa |0| up.harbour.example. 60 DNAME harbour.example.; x.new.harbour.example. 60 A 192.0.2.7; " +
			"x.new.up.harbour.example. 60 CNAME x.new.harbour.example.; x.new.up.up.harbour.example. 60 CNAME x.new.up.harbour.example."},
		{"old", dns.TypeDNAME, "NOERROR aa |0| old.harbour.example. 60 DNAME new.harbour.example."},
		{"old", dns.TypeA, "NOERROR aa " + soa},
		{"_sip._tcp", dns.TypeSRV, "NOERROR aa |0| _sip._tcp.harbour.example. 60 SRV 0 0 5060 mail.harbour.example. " +
			"|2| mail.harbour.example. 3600 A 192.0.2.2; mail.harbour.example. 3600 AAAA 2001:db8::2"},
	} {
		got := words(a.question(t, c.name+".harbour.example.", c.kind))
		if c.name == "mail" && c.kind == dns.TypeA {
			c.want = "NOERROR aa |0| mail.harbour.example. 3600 A 192.0.2.2"
		}
		if got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.name, dns.TypeToString[c.kind], got, c.want)
		}
	}
	for name, want := range map[string]string{"elsewhere.example.": "REFUSED", ".": "REFUSED"} {
		if got := words(a.question(t, name, dns.TypeA)); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := a.question(t, "mail.harbour.example.", dns.TypeANY); len(got.Answer) != 1 {
		t.Errorf("ANY: %s", got)
	}
}

// TestEDNS checks the EDNS version, the name server identifier, cookies, and that a truncated answer is repeated over TCP.
func TestEDNS(t *testing.T) {
	records := harbour
	for i := range 60 {
		records += fmt.Sprintf("many 60 A 10.0.0.%d\n", i)
	}
	for i := range 30 {
		records += fmt.Sprintf("big 60 NS far%d.big\nfar%d.big 60 A 10.0.1.%d\n", i, i, i)
	}
	a := start(t, nil, given{name: "harbour.example.", records: records})
	name := "quay-1"
	a.identity.Store(&name)
	edns := func(size uint16, options ...dns.EDNS0) func(*dns.Msg) {
		return func(m *dns.Msg) {
			m.SetEdns0(size, true)
			m.IsEdns0().Option = options
		}
	}
	if m := a.question(t, "many.harbour.example.", dns.TypeA); !m.Truncated || len(m.Answer) != 0 || m.IsEdns0() != nil {
		t.Errorf("60 addresses in 512 bytes: %s", m)
	}
	if m := a.question(t, "many.harbour.example.", dns.TypeA, edns(4096)); m.Truncated || len(m.Answer) != 60 || !m.IsEdns0().Do() {
		t.Errorf("60 addresses with EDNS: %s", m)
	}
	if m := a.question(t, "x.big.harbour.example.", dns.TypeA); !m.Truncated {
		t.Errorf("a referral without its glue: %s", m)
	}
	m := a.question(t, "mail.harbour.example.", dns.TypeA, edns(1232, &dns.EDNS0_NSID{Code: dns.EDNS0NSID},
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"}))
	opt := m.IsEdns0()
	if len(opt.Option) != 2 || opt.Option[0].String() != "717561792d31" || !strings.HasPrefix(opt.Option[1].String(), "010203040506070801") ||
		len(opt.Option[1].String()) != 48 {
		t.Errorf("NSID and cookie: %s", opt)
	}
	if m := a.question(t, "mail.harbour.example.", dns.TypeA, edns(1232, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102"})); m.Rcode !=
		dns.RcodeFormatError {
		t.Errorf("a cookie of two bytes: %s", m)
	}
	if m := a.question(t, "mail.harbour.example.", dns.TypeA, edns(1232), func(m *dns.Msg) { m.IsEdns0().SetVersion(1) }); m.Rcode !=
		dns.RcodeBadVers || len(m.Answer) != 0 {
		t.Errorf("EDNS of version 1: %s", m)
	}
}

// TestClients checks the selection of views by client and the access lists for queries and transfers.
func TestClients(t *testing.T) {
	at := func(text string) zonedata.Match { return zonedata.Match{Prefix: netip.MustParsePrefix(text)} }
	inside := []zonedata.Match{{Not: true, Prefix: netip.MustParsePrefix("10.0.0.9/32")}, at("10.0.0.0/8")}
	zone := func(address string, view int64) given {
		return given{name: "harbour.example.", view: view, records: "@ 60 SOA ns h 1 1 1 1 60\n@ 60 NS ns\nns 60 A " + address,
			query: []zonedata.Match{at("0.0.0.0/0")}, transfer: []zonedata.Match{at("10.0.0.1/32")}}
	}
	a := start(t, []zonedata.View{{ID: 1, Name: "inside", Clients: inside}, {ID: 2, Name: "outside"}}, zone("10.0.0.1", 1),
		zone("192.0.2.1", 2))
	m := new(dns.Msg)
	m.SetQuestion("ns.harbour.example.", dns.TypeA)
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string]string{"10.0.0.1": "10.0.0.1", "10.0.0.9": "192.0.2.1", "192.0.2.7": "192.0.2.1",
		"2001:db8::1": "REFUSED"} {
		got := new(dns.Msg)
		if err := got.Unpack(a.answer(wire, nil, netip.MustParseAddr(client), false)); err != nil || !strings.Contains(words(got), want) {
			t.Errorf("%s gets %v %s, not %s", client, err, words(got), want)
		}
	}
	m.SetAxfr("harbour.example.")
	if wire, err = m.Pack(); err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string]int{"10.0.0.1": 4, "10.0.0.2": 0} {
		records := 0
		yes, err := a.transfer(wire, zonedata.Client{Address: netip.MustParseAddr(client)}, func(m []byte) error {
			got := new(dns.Msg)
			if err := got.Unpack(m); err != nil {
				return err
			}
			records += len(got.Answer)
			return nil
		})
		if err != nil || records != want || yes != (want > 0) {
			t.Errorf("%s gets %d records, %v", client, records, err)
		}
	}
}

// TestChanges checks that a zone after many changes equals a zone created from scratch, and that inconsistent changes have no effect.
func TestChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	line := func() string {
		name := []string{"a", "b.a", "c.b.a", "*.a", "d", "x.y.z", "e.d"}[random.IntN(7)]
		switch random.IntN(4) {
		case 0:
			return fmt.Sprintf("%s 60 A 192.0.2.%d\n", name, random.IntN(5))
		case 1:
			return fmt.Sprintf("%s 60 TXT \"%d\"\n", name, random.IntN(5))
		case 2:
			return fmt.Sprintf("%s 60 NS ns%d\n", name, random.IntN(2))
		}
		return fmt.Sprintf("%s 60 MX %d mail\n", name, random.IntN(3))
	}
	zone := func(serial int, lines map[string]bool) given {
		text := fmt.Sprintf("@ 60 SOA ns h %d 1 1 1 60\n@ 60 NS ns\n", serial)
		for one := range lines {
			text += one
		}
		return given{name: "harbour.example.", records: text}
	}
	lines := map[string]bool{}
	before := zone(0, lines)
	a := start(t, nil, before)
	for serial := 1; serial < 300; serial++ {
		for range random.IntN(4) {
			if one := line(); lines[one] {
				delete(lines, one)
			} else {
				lines[one] = true
			}
		}
		after := zone(serial, lines)
		s := a.served.Load()
		whole, to := content(t, []zonedata.View{{ID: 0, Name: "default"}}, after)
		out := delta(t, a, before, after, to)
		for _, cut := range []int{0, 1, random.IntN(len(out)), len(out) - 1} { // truncated at several places
			if err := a.ApplyContent(bytes.NewReader(out[:cut])); err == nil || a.Content() != s.revision {
				t.Fatalf("%d of %d bytes: %v", cut, len(out), err)
			}
		}
		if err := a.ApplyContent(bytes.NewReader(out)); err != nil {
			t.Fatal(err)
		}
		if err := a.ApplyContent(bytes.NewReader(out)); err == nil {
			t.Fatal("a change was taken twice")
		}
		anew := newNameServer(slog.New(slog.DiscardHandler))
		if err := anew.ApplyContent(bytes.NewReader(whole)); err != nil {
			t.Fatal(err)
		}
		one, other := a.served.Load().zones["0"], anew.served.Load().zones["0"]
		if len(one.nodes) != len(other.nodes) || one.cuts != other.cuts || one.records != other.records || one.serial != other.serial {
			t.Fatalf("after %d changes: %d nodes, %d cuts, %d records; anew %d, %d, %d", serial, len(one.nodes), one.cuts, one.records,
				len(other.nodes), other.cuts, other.records)
		}
		for _, name := range []string{"a", "b.a", "q.a", "x.y.z", "y.z", "z", "d", "f.e.d"} {
			for _, kind := range []uint16{dns.TypeA, dns.TypeTXT, dns.TypeNS, dns.TypeMX} {
				got, want := words(a.question(t, name+".harbour.example.", kind)), words(anew.question(t, name+".harbour.example.", kind))
				if got != want {
					t.Fatalf("%s %d: %s, anew %s", name, kind, got, want)
				}
			}
		}
		if err := anew.Close(); err != nil {
			t.Fatal(err)
		}
		before = after
	}
}

// TestStreams checks that consecutive streams are applied together. If one fails after a stream that begins at nothing, the previous
// content remains in use.
func TestStreams(t *testing.T) {
	zone := func(serial int) given {
		text := fmt.Sprintf("@ 60 SOA ns h %d 1 1 1 60\n@ 60 NS ns\nns 60 A 192.0.2.%d\n", serial, serial)
		return given{name: "harbour.example.", records: text}
	}
	views := []zonedata.View{{ID: 0, Name: "default"}}
	a, other := start(t, nil, zone(1)), start(t, nil, zone(2))
	before := a.Content()
	whole, _ := content(t, views, zone(2))
	_, to := content(t, views, zone(3))
	streams := append(whole, delta(t, other, zone(2), zone(3), to)...)
	twice := append(slices.Clone(streams), streams[len(whole):]...)
	for _, wrong := range [][]byte{append(slices.Clone(streams), "x"...), streams[:len(streams)-1], twice} {
		if err := a.ApplyContent(bytes.NewReader(wrong)); err == nil || a.Content() != before {
			t.Fatalf("%d bytes: %v, and %s is served", len(wrong), err, a.Content())
		}
		if got := words(a.question(t, "ns.harbour.example.", dns.TypeA)); !strings.Contains(got, "192.0.2.1") {
			t.Fatal(got)
		}
	}
	if err := a.ApplyContent(bytes.NewReader(streams)); err != nil || a.Content() != to {
		t.Fatalf("%v, and %s is served, not %s", err, a.Content(), to)
	}
	if got := words(a.question(t, "ns.harbour.example.", dns.TypeA)); !strings.Contains(got, "192.0.2.3") {
		t.Error(got)
	}
}

// FuzzAnswer checks that every input is answered by a valid message or not at all.
func FuzzAnswer(f *testing.F) {
	m := new(dns.Msg)
	m.SetQuestion("x.sub.harbour.example.", dns.TypeMX)
	m.SetEdns0(1232, true)
	wire, err := m.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wire, true)
	a := start(f, nil, given{name: "harbour.example.", records: harbour})
	f.Fuzz(func(t *testing.T, in []byte, tcp bool) {
		got := a.answer(in, nil, loopback, tcp)
		if got == nil {
			return
		}
		if len(got) > maxUDP && !tcp || len(got) > 65535 {
			t.Errorf("an answer of %d bytes", len(got))
		}
		if err := new(dns.Msg).Unpack(got); err != nil {
			t.Errorf("% x is answered by % x: %v", in, got, err)
		}
		if _, err := a.transfer(in, zonedata.Client{Address: loopback}, func([]byte) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

// FuzzContent checks that an invalid stream is rejected and changes nothing.
func FuzzContent(f *testing.F) {
	text, _ := content(f, []zonedata.View{{ID: 0}}, given{name: "harbour.example.", records: harbour})
	f.Add(text)
	a := start(f, nil, given{name: "quay.example.", records: "@ 60 SOA ns h 1 1 1 1 60"})
	f.Fuzz(func(t *testing.T, in []byte) {
		before := a.Content()
		if err := a.ApplyContent(bytes.NewReader(in)); err != nil && a.Content() != before {
			t.Errorf("%v, and another revision is served", err)
		}
	})
}

// TestConfiguration checks that invalid configurations are rejected with the name of the field.
func TestConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		`{"listen":[{"address":"127.0.0.1"},{"address":"::1","port":5353}],"identity":"quay-1"}`: "",
		`{}`:                                 "configuration.listen",
		`{"listen":[{"address":"0.0.0.0"}]}`: "configuration.listen[0].address",
		`{"listen":[{"address":"quay"}]}`:    "configuration.listen[0].address",
		`{"listen":[{"address":"127.0.0.1","port":70000}]}`:                                 "configuration.listen[0].port",
		`{"listen":[{"address":"127.0.0.1"},{"address":"127.0.0.1"}]}`:                      "configuration.listen[1]",
		`{"listen":[{"address":"127.0.0.1"}],"zones":[]}`:                                   "zones",
		`{"listen":[{"address":"127.0.0.1"}],"identity":"` + strings.Repeat("x", 65) + `"}`: "configuration.identity",
	} {
		err := Kind().Check(json.RawMessage(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if checkin.Authority != Kind().Name {
		t.Error(Kind().Name)
	}
}

// TestListening checks answers over UDP and TCP, a zone transfer, and that listeners are opened and closed with the configuration.
func TestListening(t *testing.T) {
	zone := given{name: "harbour.example.", records: harbour, transfer: []zonedata.Match{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}}
	a := start(t, nil, zone)
	free := freeport.Reserve(t)
	at, port := free.String(), free.Port()
	if err := a.Configure(json.RawMessage(fmt.Sprintf(`{"listen":[{"address":"127.0.0.1","port":%d}]}`, port))); err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg)
	m.SetQuestion("mail.harbour.example.", dns.TypeA)
	for _, network := range []string{"udp", "tcp"} {
		r, _, err := (&dns.Client{Net: network}).Exchange(m, at)
		if err != nil || len(r.Answer) != 1 {
			t.Errorf("%s: %v %v", network, r, err)
		}
	}
	for deadline := time.Now().Add(time.Minute); len(a.Health()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(a.Health())
		}
	}
	transfer := new(dns.Msg)
	transfer.SetAxfr("harbour.example.")
	envelopes, err := new(dns.Transfer).In(transfer, at)
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for e := range envelopes {
		if e.Error != nil {
			t.Error(e.Error)
		}
		records += len(e.RR)
	}
	if want := len(zone.entries(t)) + 1; records != want {
		t.Errorf("%d records are transferred, not %d", records, want)
	}
	if err := a.Configure(json.RawMessage(fmt.Sprintf(`{"listen":[{"address":"127.0.0.2","port":%d}]}`, port))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := (&dns.Client{Timeout: 200 * time.Millisecond}).Exchange(m, at); err == nil {
		t.Error("it answers where it is not to any more")
	}
	if r, _, err := new(dns.Client).Exchange(m, fmt.Sprintf("127.0.0.2:%d", port)); err != nil || len(r.Answer) != 1 {
		t.Errorf("%v %v", r, err)
	}
}
