package nameserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// badVersion is the response code for a version of EDNS that there is not (RFC 6891 section 6.1.3).
const badVersion = 16

// exchange is a question and what becomes its answer. It is used again, so that a question costs no memory of its own.
type exchange struct {
	query
	answer
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// answer answers a message of a client, into buf. It gives nil where there is to be no answer. Over TCP there is more room. A fault of ours
// costs that one answer.
func (a *nameServer) answer(m, buf []byte, client netip.Addr, tcp bool) (wire []byte) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("a question could not be answered", "question", fmt.Sprintf("%x", m), "panic", p, "stack", string(debug.Stack()))
			wire = nil
		}
	}()
	reused := exchanges.Get().(*exchange) //nolint:forcetypeassert // there is nothing else in it
	defer exchanges.Put(reused)
	q, out := &reused.query, &reused.answer
	code, ok := q.parse(m)
	if !ok {
		a.counts.left.Add(1)
		return nil
	}
	limit := q.size
	if tcp {
		limit = 65535
	}
	served := a.served.Load()
	var sign *signer
	w := zonedata.Client{Address: client}
	if code == 0 {
		w, sign, code = a.identify(served, m, q, w)
	}
	if sign != nil {
		limit -= sign.room()
	}
	out.begin(q, buf, limit)
	switch {
	case code != 0:
		out.code = code
	case q.version != 0:
		out.code = badVersion
	default:
		if a.decide(out, served, w, tcp); out.fault != nil {
			a.log.Error("an answer could not be signed", "zone", fmt.Sprintf("%q", out.apex), "error", out.fault)
		}
	}
	if !tcp {
		if verdict := a.limited(q, out, w); verdict != sendIt {
			if a.counts.limited.Add(1); verdict == dropIt {
				return nil
			}
			out.cut()
		}
	}
	if q.edns {
		out.opt(a.options(q, client))
	}
	a.counts.codes[out.code&15].Add(1)
	if wire = out.end(); sign != nil {
		wire = sign.sign(wire, time.Now())
	}
	return wire
}

// decide answers what is a proper question.
func (a *nameServer) decide(out *answer, s *served, w zonedata.Client, tcp bool) {
	q := out.q
	switch {
	case q.opcode != dns.OpcodeQuery: // over UDP and TCP it was seen to before
		out.code = dns.RcodeNotImplemented
	case q.sent == nil: // the cookie is the answer
	case q.class == dns.ClassCHAOS:
		a.chaos(out)
	case q.class != dns.ClassINET:
		out.code = dns.RcodeRefused
	case s.revision == "": // it is not known yet what there is: others may
		out.code = dns.RcodeServerFailure
	case q.kind == dns.TypeOPT || q.kind == dns.TypeTKEY || q.kind == dns.TypeTSIG: // types of no question (RFC 6895 section 3.1)
		out.code = dns.RcodeFormatError
	case q.kind == dns.TypeAXFR: // over TCP it was seen to before
		out.code = dns.RcodeFormatError
		if tcp {
			out.code = dns.RcodeRefused
		}
	case q.kind == dns.TypeIXFR && tcp: // as above
		out.code = dns.RcodeRefused
	case q.kind == dns.TypeIXFR:
		if s.mayCopy(w, q.name) == nil {
			out.code = dns.RcodeRefused
			return
		}
		q.kind = dns.TypeSOA // who has an older one asks again, over TCP (RFC 1995 section 4)
		out.resolveFor(s, w)
		q.kind = dns.TypeIXFR
	case q.kind >= dns.TypeTKEY && q.kind != dns.TypeANY && q.kind <= dns.TypeANY:
		out.code = dns.RcodeNotImplemented
	default:
		out.resolveFor(s, w)
	}
}

// resolveFor answers from the view that is for a client.
func (a *answer) resolveFor(s *served, w zonedata.Client) {
	v := s.viewFor(w)
	if v == nil {
		a.code = dns.RcodeRefused
		return
	}
	if a.resolve(v, w); a.fault != nil {
		a.cut()
		a.code, a.truncated, a.authoritative = dns.RcodeServerFailure, false, false
	}
}

// versionName is what name servers are asked for their version by, in the class CHAOS.
const versionName = "\x07version\x04bind\x00"

// chaos answers for the version, and that without saying which it is.
func (a *nameServer) chaos(out *answer) {
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
func (a *nameServer) options(q *query, client netip.Addr) (options []byte) {
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
