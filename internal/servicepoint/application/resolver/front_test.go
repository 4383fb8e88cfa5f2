package resolver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/zonedata"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"pgregory.net/rapid"
)

// hitsOf returns the number of answers that the front of a resolver has given.
func hitsOf(t *testing.T, app *resolver) (n float64) {
	t.Helper()
	for _, f := range app.generation.fronts {
		var m dto.Metric
		if err := f.hits.given.Write(&m); err != nil {
			t.Fatal(err)
		}
		n += m.GetCounter().GetValue()
	}
	return n
}

// variedUpstream starts an upstream whose answers depend on the name: the first label selects the form, the second one the TTL.
func variedUpstream(t *testing.T) string {
	t.Helper()
	packets, err := net.ListenPacket("udp", freeport.Reserve(t).String())
	if err != nil {
		t.Fatal(err)
	}
	answer := func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		q := r.Question[0]
		labels := strings.Split(strings.ToLower(q.Name), ".")
		ttl := 300
		if len(labels) > 1 {
			_, _ = fmt.Sscanf(labels[1], "t%d", &ttl) // other names keep the usual TTL
		}
		add := func(section *[]dns.RR, text string) {
			rr, err := dns.NewRR(text)
			if err != nil {
				t.Error(err)
				return
			}
			*section = append(*section, rr)
		}
		soa := fmt.Sprintf("test. %d IN SOA ns.test. h.test. 1 60 60 60 %d", ttl, ttl)
		m.AuthenticatedData = r.AuthenticatedData || r.IsEdns0() != nil && r.IsEdns0().Do()
		switch form := labels[0]; {
		case strings.HasPrefix(form, "no"):
			m.Rcode = dns.RcodeNameError
			add(&m.Ns, soa)
		case strings.HasPrefix(form, "empty"):
			add(&m.Ns, soa)
		case strings.HasPrefix(form, "fail"):
			m.Rcode = dns.RcodeServerFailure
		case strings.HasPrefix(form, "alias"):
			add(&m.Answer, fmt.Sprintf("%s %d IN CNAME target.t%d.test.", q.Name, ttl, ttl))
			if q.Qtype == dns.TypeA {
				add(&m.Answer, fmt.Sprintf("target.t%d.test. %d IN A 192.0.2.9", ttl, 2*ttl))
			} else {
				add(&m.Ns, soa)
			}
		case strings.HasPrefix(form, "many") && q.Qtype == dns.TypeA:
			for i := range 30 {
				add(&m.Answer, fmt.Sprintf("%s %d IN A 192.0.2.%d", q.Name, ttl, i))
			}
		case q.Qtype == dns.TypeA:
			add(&m.Answer, fmt.Sprintf("%s %d IN A 192.0.2.1", q.Name, ttl))
			add(&m.Extra, fmt.Sprintf("more.test. %d IN TXT more", ttl+7))
		case q.Qtype == dns.TypeAAAA && !strings.HasPrefix(form, "four"):
			add(&m.Answer, fmt.Sprintf("%s %d IN AAAA 2001:db8::1", q.Name, ttl))
		case q.Qtype == dns.TypeMX:
			add(&m.Answer, fmt.Sprintf("%s %d IN MX 10 mail.%s", q.Name, ttl, q.Name))
		default:
			add(&m.Ns, soa)
		}
		if opt := r.IsEdns0(); opt != nil {
			m.SetEdns0(1232, opt.Do())
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 3}}
		}
		m.Truncate(1232)
		_ = w.WriteMsg(m)
	}
	l, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: dns.HandlerFunc(answer)}, {Listener: l, Handler: dns.HandlerFunc(answer)}} {
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return packets.LocalAddr().String()
}

// exchange sends a query from an address of this machine. The answer is nil if there is none.
func exchange(m *dns.Msg, network, from, at string) *dns.Msg {
	var local net.Addr = &net.UDPAddr{IP: net.ParseIP(from)}
	if network == "tcp" {
		local = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	dialer := &net.Dialer{LocalAddr: local, Timeout: 5 * time.Second}
	client := dns.Client{Net: network, Timeout: 5 * time.Second, Dialer: dialer, UDPSize: 4096}
	answer, _, err := client.Exchange(m.Copy(), at)
	if err != nil {
		return nil
	}
	return answer
}

// shown returns an answer as text without its id, and its TTLs. The records are in lower case, because a compressed name has the case of
// the question.
func shown(m *dns.Msg) (text string, ttls []uint32) {
	m = m.Copy()
	m.Id = 0
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range section {
			if rr.Header().Rrtype != dns.TypeOPT {
				ttls = append(ttls, rr.Header().Ttl)
				rr.Header().Ttl = 0
			}
		}
	}
	head, records, _ := strings.Cut(m.String(), ";; ANSWER SECTION")
	return head + strings.ToLower(records), ttls
}

// policyOfTheTest has rules for names, answers and clients.
var policyOfTheTest = policyZoneOf("block.rpz.", "a3.t60.test CNAME .", "*.t5.test A 10.0.0.1", "no1.t300.test CNAME *.",
	"a1.t300.test CNAME rpz-passthru.", "32.9.2.0.192.rpz-ip CNAME .", "32.3.0.0.127.rpz-client-ip CNAME .")

// TestCachedEqualsUncached checks that the answers of the front are those of CoreDNS, for random questions, flags, clients, policies and
// settings. CoreDNS answers all queries over TCP.
func TestCachedEqualsUncached(t *testing.T) {
	up := variedUpstream(t)
	var hits float64
	for _, more := range []string{"", `,"allow":["127.0.0.0/29"]`, `,"dns64":"64:ff9b::/96"`, `,"cache":{"prefetch":true,"serveStaleSeconds":60}`,
		fmt.Sprintf(`,"zones":[{"name":"t60.test","upstreams":[%q]}]`, up), `,"cache":{"maxTTLSeconds":60}`} {
		for _, policy := range []bool{false, true} {
			t.Run(fmt.Sprint(more, policy), func(t *testing.T) {
				app, at := startResolver(t, up, &lines{}, more)
				if policy {
					d := &deployment{settings: zonedata.Settings{
						Views: []zonedata.View{{ID: 1, Name: "few", Clients: []zonedata.Match{{Prefix: netip.MustParsePrefix("127.0.0.2/32")}}},
							{ID: 2, Name: "v", Policies: []zonedata.Policy{{Zone: "block"}}}},
						Zones: []zonedata.Zone{{ID: "block", View: 2, Name: "block.rpz."}}},
						zones: map[string][]string{"block": policyOfTheTest}}
					d.give(t, app)
				}
				rapid.Check(t, func(rt *rapid.T) { compareOnce(rt, at) })
				hits += hitsOf(t, app)
			})
		}
	}
	fewest := 500.0
	if testing.Short() { // fewer random questions
		fewest = 100
	}
	if hits < fewest {
		t.Errorf("the front has given %v answers", hits)
	}
}

// compareOnce compares the answers to a random query over UDP with the one over TCP.
func compareOnce(t *rapid.T, at string) {
	form := rapid.SampledFrom([]string{"a", "A", "no", "empty", "fail", "alias", "many", "four"}).Draw(t, "form")
	name := fmt.Sprintf("%s%d.t%d.test.", form, rapid.IntRange(1, 3).Draw(t, "number"),
		rapid.SampledFrom([]int{0, 5, 60, 300, 90000}).Draw(t, "ttl"))
	m := new(dns.Msg)
	m.SetQuestion(name, rapid.SampledFrom([]uint16{dns.TypeA, dns.TypeAAAA, dns.TypeMX, dns.TypeANY}).Draw(t, "type"))
	m.RecursionDesired, m.CheckingDisabled = rapid.Bool().Draw(t, "RD"), rapid.Bool().Draw(t, "CD")
	m.AuthenticatedData = rapid.Bool().Draw(t, "AD")
	if rapid.Bool().Draw(t, "EDNS") {
		m.SetEdns0(rapid.SampledFrom([]uint16{0, 512, 1232, 4096}).Draw(t, "size"), rapid.Bool().Draw(t, "DO"))
		if rapid.Bool().Draw(t, "cookie") {
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"}}
		}
	}
	from := rapid.SampledFrom([]string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.9"}).Draw(t, "client")
	exchange(m, "tcp", from, at) // from now on CoreDNS has the answer in its cache, if it is cached at all
	plain := exchange(m, "tcp", from, at)
	if plain == nil {
		t.Fatal("no answer over TCP")
	}
	want, wantTTLs := shown(plain)
	for i := range 3 {
		answer := exchange(m, "udp", from, at)
		if answer == nil {
			t.Fatalf("%d: no answer to\n%v", i, m)
		}
		if answer.Truncated {
			continue
		}
		got, ttls := shown(answer)
		if got != want {
			t.Fatalf("%d: the answer is\n%s\nand over TCP\n%s", i, got, want)
		}
		for i, ttl := range ttls {
			if ttl > wantTTLs[i]+1 || ttl+2 < wantTTLs[i] {
				t.Fatalf("the TTLs are %v, and over TCP %v", ttls, wantTTLs)
			}
		}
	}
}

// TestHitsAllocateNothing checks that the front answers without allocating memory, with metrics as well.
func TestHitsAllocateNothing(t *testing.T) {
	for _, more := range []string{"", fmt.Sprintf(`,"metrics":%q,"allow":["127.0.0.0/8"],"queryLog":{"every":1000000}`, freeport.Reserve(t))} {
		app, at := startResolver(t, variedUpstream(t), &lines{}, more)
		m := new(dns.Msg)
		m.SetQuestion("a1.t300.test.", dns.TypeA)
		m.SetEdns0(1232, true)
		for range 3 {
			if exchange(m, "udp", "127.0.0.1", at) == nil {
				t.Fatal("no answer")
			}
		}
		wire, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		r, buf, client := &packetReader{}, make([]byte, 0, 1500), netip.MustParseAddrPort("127.0.0.1:53")
		f, generation := app.generation.fronts[0], app.contents.Load()
		if n := testing.AllocsPerRun(1000, func() {
			if f.cachedAnswer(r, wire, buf, client, generation, clock()) == nil {
				t.Fatal("it is not cached")
			}
		}); n != 0 {
			t.Errorf("%v allocations with %s", n, more)
		}
	}
}

// TestAnswersAge checks that TTLs decrease, and that an answer is not used in the last second of its TTL.
func TestAnswersAge(t *testing.T) {
	app, at := startResolver(t, variedUpstream(t), &lines{}, "")
	m := new(dns.Msg)
	m.SetQuestion("alias1.t60.test.", dns.TypeA)
	for range 3 {
		exchange(m, "udp", "127.0.0.1", at)
	}
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r, client := &packetReader{}, netip.MustParseAddrPort("127.0.0.1:53")
	for _, age := range []int64{0, 7, 50, 58, 59, 60, 1000} {
		now := clock() + age*int64(time.Second)
		out := app.generation.fronts[0].cachedAnswer(r, wire, make([]byte, 0, 1500), client, app.contents.Load(), now)
		if (out != nil) != (age < 59) {
			t.Errorf("after %d s: %x", age, out)
		}
		if out == nil {
			continue
		}
		answer := new(dns.Msg)
		if err := answer.Unpack(out); err != nil {
			t.Fatal(err)
		}
		for _, rr := range answer.Answer {
			if ttl := int64(rr.Header().Ttl); ttl > 60-age || ttl < 58-age {
				t.Errorf("after %d s: %v", age, rr)
			}
		}
	}
}

// TestPrefetchSeesQueries checks that CoreDNS sees the queries that it needs for prefetching: the first ones, later one each second, and
// all in the last part of the TTL.
func TestPrefetchSeesQueries(t *testing.T) {
	second := int64(time.Second)
	a := &packedAnswer{ttl: 100, original: 100, passes: 1}
	if !a.leavesToPrefetch(0) {
		t.Error("the first query is kept from it")
	}
	for range 4 {
		next := &packedAnswer{ttl: a.ttl - 10, original: a.ttl - 10, passes: 1, stored: a.stored + 10*second}
		next.adoptQueries(a)
		a = next
	}
	if a.passes != 5 || a.original != 100 || a.leavesToPrefetch(a.stored) || !a.leavesToPrefetch(a.stored+second) {
		t.Errorf("after five queries: %+v", a)
	}
	last := &packedAnswer{ttl: 11, original: 11, passes: 1, stored: a.stored + 49*second}
	if last.adoptQueries(a); !last.leavesToPrefetch(last.stored) {
		t.Errorf("in the last part: %+v", last)
	}
	fresh := &packedAnswer{ttl: 99, original: 99, passes: 1, stored: last.stored + second}
	if fresh.adoptQueries(last); fresh.original != 99 || fresh.leavesToPrefetch(fresh.stored) {
		t.Errorf("after the refresh: %+v", fresh)
	}
	late := &packedAnswer{ttl: 30, original: 30, passes: 1, stored: fresh.stored + int64(2*prefetchTime)}
	if late.adoptQueries(fresh); late.passes != 1 {
		t.Errorf("after a long time: %+v", late)
	}
}

// TestAnswersFollowChanges checks that no query after a change of content or of the configuration gets an answer from before it, while
// many clients keep the answers in the caches.
func TestAnswersFollowChanges(t *testing.T) {
	one, two := upstream(t, "a.test. 300 IN A 192.0.2.1"), upstream(t, "a.test. 300 IN A 192.0.2.2")
	app, at := startResolver(t, one, &lines{}, "")
	host, port, _ := net.SplitHostPort(at)
	var stop atomic.Bool
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop.Store(true)
	for range 4 {
		clients.Go(func() {
			m := new(dns.Msg)
			m.SetQuestion("a.test.", dns.TypeA)
			for !stop.Load() {
				exchange(m, "udp", "127.0.0.1", at)
			}
		})
	}
	check := func(want string) {
		t.Helper()
		for range 20 {
			if got := asked(t, "udp", at, "a.test.", dns.TypeA); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	}
	d := &deployment{settings: zonedata.Settings{Views: []zonedata.View{{ID: 1, Name: "v", Policies: []zonedata.Policy{{Zone: "block"}}}},
		Zones: []zonedata.Zone{{ID: "block", View: 1, Name: "block.rpz."}}}, zones: map[string][]string{}}
	for i := range 15 {
		d.zones["block"] = policyZoneOf("block.rpz.", "b.test CNAME .")
		d.give(t, app)
		check(fmt.Sprintf("NOERROR 192.0.2.%d", 1+i%2))
		d.zones["block"] = policyZoneOf("block.rpz.", "a.test CNAME .")
		d.give(t, app)
		check("NXDOMAIN EDE15")
		d.zones["block"] = policyZoneOf("block.rpz.", "b.test CNAME .")
		d.give(t, app)
		check(fmt.Sprintf("NOERROR 192.0.2.%d", 1+i%2))
		if err := app.Configure(fmt.Appendf(nil, `{"listen":[{"address":%q,"port":%s}],"upstreams":[{"address":%q}]}`, host, port,
			[]string{two, one}[i%2])); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("NOERROR 192.0.2.%d", 2-i%2))
	}
}

// counted returns the number of answers in all series; it is the last one that CoreDNS increases.
func counted(of map[string]float64) (n float64) {
	for name, value := range of {
		if strings.HasPrefix(name, "coredns_dns_responses_total ") {
			n += value
		}
	}
	return n
}

// series returns the counters and the numbers of observations of CoreDNS by name and labels.
func series(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "coredns_") {
			continue
		}
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += fmt.Sprintf(" %s=%q", l.GetName(), l.GetValue())
			}
			all[name] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if sum := m.GetHistogram().GetSampleSum(); sum > 0 && !strings.Contains(name, "duration") {
				all[name+" sum"] = sum
			}
		}
	}
	return all
}

// TestHitsAreCounted checks that the metrics count an answer of the front as they count one of CoreDNS's cache, and that the query log has
// a line for each query.
func TestHitsAreCounted(t *testing.T) {
	var log lines
	app, at := startResolver(t, variedUpstream(t), &log, fmt.Sprintf(`,"metrics":%q,"allow":["127.0.0.0/8"],"queryLog":{"every":1}`, freeport.Reserve(t)))
	app.stop() // health checks are counted as well
	app.checks.Wait()
	for _, name := range []string{"a1.t300.test.", "no1.t300.test.", "empty1.t300.test.", "alias1.t300.test."} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeMX, 4711} {
			m := new(dns.Msg)
			m.SetQuestion(name, kind)
			m.SetEdns0(1232, true)
			m.RecursionDesired = true
			grown := make([]map[string]float64, 3)
			hits := hitsOf(t, app)
			for i := range grown {
				before := series(t)
				if exchange(m, "udp", "127.0.0.1", at) == nil {
					t.Fatal("no answer")
				}
				soon(t, "it is counted", func() bool {
					return counted(series(t)) > counted(before)
				})
				grown[i] = series(t) // a gathering reads one series after another
				maps.DeleteFunc(grown[i], func(name string, n float64) bool {
					return n == before[name]
				})
				for name := range grown[i] {
					grown[i][name] -= before[name]
				}
			}
			if hitsOf(t, app) != hits+1 && kind != 4711 {
				t.Errorf("%s %d: %v answers of the front", name, kind, hitsOf(t, app)-hits)
			}
			if !maps.Equal(grown[1], grown[2]) {
				t.Errorf("%s %d: CoreDNS counts\n%v\nand the front\n%v", name, kind, list(grown[1]), list(grown[2]))
			}
		}
	}
	soon(t, "each query is logged", func() bool { return strings.Count(log.String(), "msg=query") == 4*3*3 })
	byLine := map[string]int{}
	for line := range strings.Lines(log.String()) {
		if _, rest, is := strings.Cut(line, "msg=query "); is {
			rest, _, _ = strings.Cut(rest, " took=")
			byLine[rest]++
		}
	}
	for line, n := range byLine {
		if n != 3 {
			t.Errorf("%d times %s", n, line)
		}
	}
}

// list returns the entries of a map, one a line.
func list(of map[string]float64) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&b, "%s: %v\n", name, of[name])
	}
	return b.String()
}

// TestPackedCacheIsBounded checks that the cache keeps to its size, and that answers replace only those with the same places.
func TestPackedCacheIsBounded(t *testing.T) {
	c := newPackedCache(100)
	if len(c.slots) != 256 || len(newPackedCache(1).slots) != cacheWays || len(newPackedCache(maxEntries).slots) != maxPacked {
		t.Errorf("%d places for 100 entries", len(c.slots))
	}
	found := func(n int) (found int) {
		for i := range n {
			if a := c.find(fmt.Appendf(nil, "key%d", i)); a != nil {
				if a.stored != int64(i) {
					t.Errorf("another answer for %d", i)
				}
				found++
			}
		}
		return found
	}
	for i := range 100 {
		c.put(&packedAnswer{key: fmt.Sprintf("key%d", i), stored: int64(i), expires: 1000}, 0)
	}
	if n := found(100); n < 90 {
		t.Errorf("%d of 100 answers are kept", n)
	}
	for i := range 10_000 {
		c.put(&packedAnswer{key: fmt.Sprintf("key%d", i), stored: int64(i), expires: 1000}, 0)
	}
	if n := found(10_000); n > 256 {
		t.Errorf("%d of 10,000 answers are kept", n)
	}
}

// FuzzPackedQuery checks that a query that the front parses is one for CoreDNS as well, with the same question and flags.
func FuzzPackedQuery(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for range 20 {
		m := new(dns.Msg)
		m.SetQuestion("Www.Example.test.", uint16(random.IntN(300))) //nolint:gosec // below 300
		if random.IntN(2) == 0 {
			m.SetEdns0(1232, random.IntN(2) == 0)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"}}
		}
		wire, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		var q packedQuery
		if !q.parse(wire) {
			return
		}
		m := new(dns.Msg)
		if err := m.Unpack(wire); err != nil {
			t.Fatalf("%x: %v", wire, err)
		}
		opt := m.IsEdns0()
		if len(m.Question) != 1 || m.Question[0].Qtype != q.kind || m.Question[0].Qclass != dns.ClassINET || m.Response || m.Opcode != 0 ||
			m.RecursionDesired != q.recursion || (opt != nil) != q.edns || opt != nil && (opt.Do() != q.dnssec || opt.UDPSize() != q.size ||
			opt.Version() != 0 || opt.Hdr.Name != ".") || len(m.Answer)+len(m.Ns) > 0 {
			t.Errorf("%x is parsed as %+v, and is\n%v", wire, q, m)
		}
		if want := strings.ToLower(m.Question[0].Name); q.text() != want {
			t.Errorf("%q, want %q", q.text(), want)
		}
	})
}
