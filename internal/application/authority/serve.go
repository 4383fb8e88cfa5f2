package authority

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime/debug"
	"time"

	"portolan/internal/zonedata"

	"github.com/miekg/dns"
)

// badVersion is the response code for a version of EDNS that there is not (RFC 6891 section 6.1.3).
const badVersion = 16

// answer answers a message of a client, into buf. It gives nil where there is to be no answer. Over TCP there is more room. A fault of ours
// costs that one answer.
func (a *authority) answer(m, buf []byte, client netip.Addr, tcp bool) (wire []byte) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("a question could not be answered", "question", fmt.Sprintf("%x", m), "panic", p, "stack", string(debug.Stack()))
			wire = nil
		}
	}()
	var q query
	var out answer
	code, ok := q.parse(m)
	if !ok {
		a.counts.left.Add(1)
		return nil
	}
	limit := q.size
	if tcp {
		limit = 65535
	}
	out.begin(&q, buf, limit)
	switch {
	case code != 0:
		out.code = code
	case q.version != 0:
		out.code = badVersion
	case q.signed: // no key is known here
		out.code = dns.RcodeNotAuth
	default:
		a.decide(&out, client, tcp)
	}
	if q.edns {
		out.opt(a.options(&q, client))
	}
	a.counts.codes[out.code&15].Add(1)
	return out.end()
}

// decide answers what is a proper question.
func (a *authority) decide(out *answer, client netip.Addr, tcp bool) {
	q := out.q
	switch {
	case q.class == dns.ClassCHAOS:
		a.chaos(out)
	case q.class != dns.ClassINET:
		out.code = dns.RcodeRefused
	case q.kind == dns.TypeAXFR: // over TCP it was seen to before
		out.code = dns.RcodeFormatError
		if tcp {
			out.code = dns.RcodeRefused
		}
	case q.kind == dns.TypeIXFR:
		q.kind = dns.TypeSOA // who has an older one asks for all of it then (RFC 1995 section 4)
		out.resolveFor(a.served.Load(), client)
		q.kind = dns.TypeIXFR
	case q.kind >= dns.TypeTKEY && q.kind != dns.TypeANY && q.kind <= dns.TypeANY || q.kind == dns.TypeOPT:
		out.code = dns.RcodeNotImplemented
	default:
		out.resolveFor(a.served.Load(), client)
	}
}

// resolveFor answers from the view that is for a client.
func (a *answer) resolveFor(s *served, client netip.Addr) {
	v := s.viewFor(client)
	if v == nil {
		a.code = dns.RcodeRefused
		return
	}
	a.resolve(v, client)
}

// versionName is what name servers are asked for their version by, in the class CHAOS.
const versionName = "\x07version\x04bind\x00"

// chaos answers for the version, and that without saying which it is.
func (a *authority) chaos(out *answer) {
	if out.q.name != versionName || out.q.kind != dns.TypeTXT {
		out.code = dns.RcodeRefused
		return
	}
	out.authoritative = true
	const text = "Portolan"
	out.m = append(out.m, 0xc0, headerSize, 0, byte(dns.TypeTXT), 0, dns.ClassCHAOS, 0, 0, 0, 0, 0, byte(len(text)+1), byte(len(text)))
	out.m = append(out.m, text...)
	out.answers++
}

// options are the options of the answer to a question with some.
func (a *authority) options(q *query, client netip.Addr) (options []byte) {
	if name := a.identity.Load(); q.nsid && name != nil && *name != "" {
		options = append(options, 0, optionNSID, 0, byte(len(*name))) //nolint:gosec // at most maxIdentity
		options = append(options, *name...)
	}
	if q.cookie != nil {
		options = append(options, 0, optionCookie, 0, 8+16)
		options = append(options, q.cookie[:8]...)
		options = append(options, a.cookies.issue(q.cookie[:8], client, time.Now())...)
	}
	return options
}

// cookies makes what clients show again, so that others cannot ask in their names (RFC 7873).
type cookies struct{ secret [32]byte }

func newCookies(c *cookies) { _, _ = rand.Read(c.secret[:]) } // it never fails

// issue gives the 16 bytes for a client at a time: version, reserved bytes, the time, and what shows that they are of this server (RFC 9018
// section 4, with another hash: no other server is to know them).
func (c *cookies) issue(client8 []byte, client netip.Addr, now time.Time) []byte {
	cookie := make([]byte, 8, 16)
	cookie[0] = 1
	binary.BigEndian.PutUint32(cookie[4:], uint32(now.Unix())) //nolint:gosec // it goes round (RFC 9018 section 4.3)
	return append(cookie, c.sum(client8, cookie, client)...)
}

func (c *cookies) sum(client8, front []byte, client netip.Addr) []byte {
	sum := hmac.New(sha256.New, c.secret[:])
	sum.Write(client8)
	sum.Write(front)
	address := client.As16()
	sum.Write(address[:])
	return sum.Sum(nil)[:8]
}

// transfer gives all records of a zone to whom may have them, as messages (RFC 5936): send is given each. It reports whether the message
// asks for a transfer.
func (a *authority) transfer(m []byte, client netip.Addr, send func([]byte) error) (yes bool, err error) {
	var q query
	if code, ok := q.parse(m); !ok || code != 0 || q.signed || q.version != 0 || q.class != dns.ClassINET ||
		q.kind != dns.TypeAXFR && q.kind != dns.TypeIXFR {
		return false, nil
	}
	v := a.served.Load().viewFor(client)
	if v == nil {
		return false, nil
	}
	z := v.zones[q.name]
	if z == nil || !zonedata.Allows(z.of.Transfer, client, false) {
		return false, nil
	}
	soa, others := z.snapshot()
	var out answer
	begin := func() {
		out.begin(&q, make([]byte, 0, 32<<10), 32<<10)
		out.authoritative = true
	}
	begin()
	put := func(owner string, s *set) error {
		if out.put([]byte(owner), s, s.ttl, &out.answers) {
			return nil
		}
		if err := send(out.end()); err != nil {
			return err
		}
		begin()
		out.limit = 65535
		out.put([]byte(owner), s, s.ttl, &out.answers)
		out.limit = 32 << 10
		return nil
	}
	err = put(z.apex, &soa)
	for _, o := range others {
		if err == nil {
			err = put(o.owner, &o.set)
		}
	}
	if err == nil {
		err = put(z.apex, &soa)
	}
	if err == nil {
		err = send(out.end())
	}
	a.counts.codes[dns.RcodeSuccess].Add(1)
	return true, err
}

// owned is an RRset with its owner.
type owned struct {
	owner string
	set
}

// snapshot gives all RRsets of a zone as they are at one moment: their data is replaced, and never changed.
func (z *zone) snapshot() (soa set, others []owned) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	for owner, n := range z.nodes {
		for _, s := range n.sets {
			if s.kind == dns.TypeSOA {
				soa = s
				continue
			}
			others = append(others, owned{owner, s})
		}
	}
	return soa, others
}
