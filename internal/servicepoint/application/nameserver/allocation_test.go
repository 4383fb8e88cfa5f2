package nameserver

import (
	"testing"

	dns "portolan/internal/base/dnsmsg"
)

// hotQuestions are the questions whose answers must not allocate memory, and must not be slow: those of resolvers.
var hotQuestions = []struct {
	what, name string
	kind       uint16
	edns       bool
	cookie     string
	code       int
}{
	{"an address", "mail.harbour.example.", dns.TypeA, false, "", dns.RcodeSuccess},
	{"an address in upper case", "MAIL.Harbour.Example.", dns.TypeA, false, "", dns.RcodeSuccess},
	{"an address with EDNS", "mail.harbour.example.", dns.TypeA, true, "", dns.RcodeSuccess},
	{"an address with a cookie", "mail.harbour.example.", dns.TypeA, true, "0102030405060708", dns.RcodeSuccess},
	{"no such type", "mail.harbour.example.", dns.TypeSRV, true, "", dns.RcodeSuccess},
	{"no such name", "none.of.these.harbour.example.", dns.TypeA, true, "", dns.RcodeNameError},
	{"a mail server", "harbour.example.", dns.TypeMX, true, "", dns.RcodeSuccess},
	{"name servers", "harbour.example.", dns.TypeNS, true, "", dns.RcodeSuccess},
	{"a wildcard", "y.wild.harbour.example.", dns.TypeA, true, "", dns.RcodeSuccess},
	{"an alias", "www.harbour.example.", dns.TypeA, true, "", dns.RcodeSuccess},
	{"a referral", "x.sub.harbour.example.", dns.TypeA, true, "", dns.RcodeSuccess},
	{"another zone", "example.org.", dns.TypeA, true, "", dns.RcodeRefused},
}

// hotQuery returns the message of a hot question.
func hotQuery(t testing.TB, i int, dnssec bool) []byte {
	t.Helper()
	q := hotQuestions[i]
	m := new(dns.Msg)
	m.SetQuestion(q.name, q.kind)
	if q.edns || dnssec {
		m.SetEdns0(1232, dnssec)
	}
	if q.cookie != "" {
		m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: q.cookie})
	}
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// TestAnswersAllocateNothing checks that the answers to hot questions allocate no memory, in a plain zone and in a signed one.
func TestAnswersAllocateNothing(t *testing.T) {
	zones := map[string]given{"plain": {name: "harbour.example.", records: harbour}}
	zones["NSEC"] = zones["plain"].signedBy(t, dns.ECDSAP256SHA256, false)
	zones["NSEC3"] = zones["plain"].signedBy(t, dns.ECDSAP256SHA256, true)
	for name, z := range zones {
		a, one, buf := start(t, nil, z), new(exchange), make([]byte, 0, maxUDP+512)
		a.awaitSigned(t) // signing allocates
		for i, q := range hotQuestions {
			wire := hotQuery(t, i, z.signing != nil)
			answer := a.answerWith(one, wire, buf, loopback, false)
			if len(answer) < headerSize || int(answer[3]&15) != q.code {
				t.Errorf("%s, %s: the answer is % x", name, q.what, answer)
				continue
			}
			if n := testing.AllocsPerRun(100, func() { a.answerWith(one, wire, buf, loopback, false) }); n > 0 {
				t.Errorf("%s, %s: an answer allocates %.0f times", name, q.what, n)
			}
		}
	}
}

// BenchmarkAnswers measures the answers to hot questions without the network.
func BenchmarkAnswers(b *testing.B) {
	plain := given{name: "harbour.example.", records: harbour}
	for name, z := range map[string]given{"plain": plain, "signed": plain.signedBy(b, dns.ECDSAP256SHA256, false)} {
		a, one, buf := start(b, nil, z), new(exchange), make([]byte, 0, maxUDP+512)
		for i, q := range hotQuestions {
			wire := hotQuery(b, i, z.signing != nil)
			b.Run(name+"/"+q.what, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					a.answerWith(one, wire, buf, loopback, false)
				}
			})
		}
	}
}
