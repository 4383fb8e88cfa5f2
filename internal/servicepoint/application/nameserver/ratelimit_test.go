package nameserver

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// TestRateLimit checks that the number of similar answers to a network is limited, and that some of the others are truncated, so that
// real clients retry over TCP. Verified clients have no limit.
func TestRateLimit(t *testing.T) {
	a := start(t, nil, given{name: "harbour.example.", records: harbour})
	slip := 3
	limit := RateLimit{ResponsesPerSecond: 5, Slip: &slip, Exempt: []string{"192.0.2.128/25"}}
	a.limiter.Store(newLimiter(&limit))
	ask := func(name, client string, tcp bool, cookie string) (r *dns.Msg) {
		t.Helper()
		m := new(dns.Msg)
		m.SetQuestion(name, dns.TypeA)
		if cookie != "" {
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie})
		}
		wire, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		answer := a.answer(wire, nil, netip.MustParseAddr(client), tcp)
		if answer == nil {
			return nil
		}
		r = new(dns.Msg)
		if err := r.Unpack(answer); err != nil {
			t.Fatal(err)
		}
		return r
	}
	const name, nothing = "mail.harbour.example.", "nothing.harbour.example."
	many := func(client string, tcp bool, cookie string, names ...string) (whole, cut, none int) {
		for time.Now().Nanosecond() > 700_000_000 { // stay within one second
			time.Sleep(10 * time.Millisecond)
		}
		for i := range 17 {
			switch r := ask(names[i%len(names)], client, tcp, cookie); {
			case r == nil:
				none++
			case r.Truncated && len(r.Answer)+len(r.Ns) == 0:
				cut++
			default:
				whole++
			}
		}
		return whole, cut, none
	}
	const given = "0102030405060708"
	good := ask(name, "198.51.100.1", false, given).IsEdns0().Option[0].(*dns.EDNS0_COOKIE).Cookie
	for _, c := range []struct {
		what, client, cookie string
		tcp                  bool
		names                []string
		whole, cut, none     int
	}{
		{"a network", "203.0.113.1", "", false, []string{name}, 5, 4, 8},
		{"another one", "203.0.114.1", "", false, []string{name}, 5, 4, 8},
		{"IPv6", "2001:db8::1", "", false, []string{name}, 5, 4, 8},
		{"what is not there, whatever it is", "203.0.115.1", "", false, []string{nothing, "x." + nothing}, 5, 4, 8},
		{"over TCP", "203.0.113.1", "", true, []string{name}, 17, 0, 0},
		{"who need not be bounded", "192.0.2.130", "", false, []string{name}, 17, 0, 0},
		{"a cookie of ours", "198.51.100.1", good, false, []string{name}, 17, 0, 0},
		{"the cookie of another client", "198.51.101.1", good, false, []string{name}, 5, 4, 8},
		{"a cookie of its own", "198.51.102.1", given, false, []string{name}, 5, 4, 8},
	} {
		whole, cut, none := many(c.client, c.tcp, c.cookie, c.names...)
		if whole != c.whole || cut != c.cut || none != c.none {
			t.Errorf("%s: %d answers, %d cut, %d none; want %d, %d, %d", c.what, whole, cut, none, c.whole, c.cut, c.none)
		}
	}
	if whole, _, _ := many("203.0.116.1", false, "", name, "ns.harbour.example.", "harbour.example.", nothing); whole != 17 {
		t.Errorf("of several names only %d are answered", whole)
	}
	if a.counts.limited.Load() != 6*12 {
		t.Errorf("%d were counted", a.counts.limited.Load())
	}
	if a.cookies.isGood(make([]byte, 24), loopback, time.Now()) {
		t.Error("a cookie of zeros is good")
	}
	for text, want := range map[string]string{
		`{"responsesPerSecond":0}`: "rateLimit.responsesPerSecond", `{"responsesPerSecond":5,"slip":11}`: "rateLimit.slip",
		`{"responsesPerSecond":5,"exempt":["x"]}`: "rateLimit.exempt[0]", `{"responsesPerSecond":200,"exempt":["10.0.0.0/8"]}`: "",
	} {
		err := Kind().Check(json.RawMessage(`{"listen":[{"address":"::1"}],"rateLimit":` + text + `}`))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestRateLimitOfWildcards checks that names below a wildcard or a delegation are counted together, and that a limited answer contains no
// data of another one.
func TestRateLimitOfWildcards(t *testing.T) {
	a := start(t, nil, given{name: "harbour.example.", records: harbour +
		"*.w 300 IN TXT x\nchild 300 IN NS ns.elsewhere.example.\nchild2 300 IN NS ns.elsewhere.example.\n"})
	whole := func(name func(i int) string) (n int) {
		for time.Now().Nanosecond() > 700_000_000 { // stay within one second
			time.Sleep(10 * time.Millisecond)
		}
		a.limiter.Store(newLimiter(&RateLimit{ResponsesPerSecond: 5}))
		for i := range 40 {
			m := new(dns.Msg)
			m.SetQuestion(name(i), dns.TypeTXT)
			wire, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			if answer := a.answer(wire, nil, netip.MustParseAddr("192.0.2.1"), false); answer != nil && answer[2]&2 == 0 {
				n++
			}
		}
		return n
	}
	for what, want := range map[string]int{"w": 5, "child": 5, "either": 10} {
		if n := whole(func(i int) string {
			if what == "either" {
				return fmt.Sprintf("r%d.%s.harbour.example.", i, []string{"child", "child2"}[i%2])
			}
			return fmt.Sprintf("r%d.%s.harbour.example.", i, what)
		}); n != want {
			t.Errorf("%s: %d answers of 40, want %d", what, n, want)
		}
	}
	slip := 1
	a.limiter.Store(newLimiter(&RateLimit{ResponsesPerSecond: 1, Slip: &slip}))
	room := []byte(strings.Repeat("of somebody else", 100))
	for range 3 {
		answer := a.answer([]byte{1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, room[:0], netip.MustParseAddr("192.0.2.1"), false) // without a question
		if len(answer) != headerSize {
			t.Errorf("an answer without a question is %x", answer)
		}
	}
}
