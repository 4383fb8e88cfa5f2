package nameserver

import (
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

// badVersion is the response code for an unsupported EDNS version (RFC 6891 section 6.1.3).
const badVersion = 16

// exchange is a query with its answer. Exchanges are reused, so that a query allocates no memory.
type exchange struct {
	query
	answer
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// answer answers a message from a client, using buf. It returns nil if there must be no answer. tcp raises the size limit to 65,535
// bytes.
func (a *nameServer) answer(m, buf []byte, client netip.Addr, tcp bool) (wire []byte) {
	one := exchanges.Get().(*exchange) //nolint:forcetypeassert // the pool contains no other type
	defer exchanges.Put(one)
	return a.answerWith(one, m, buf, client, tcp)
}

// answerWith answers like answer, with an exchange that no other goroutine uses. A panic costs only this answer.
func (a *nameServer) answerWith(one *exchange, m, buf []byte, client netip.Addr, tcp bool) (wire []byte) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("panic while answering a query", "question", fmt.Sprintf("%x", m), "panic", p, "stack", string(debug.Stack()))
			wire = nil
		}
	}()
	q, out := &one.query, &one.answer
	code, ok := q.parse(m)
	if !ok {
		a.counts.ignored.Add(1)
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
		limit -= sign.maxSize()
	}
	out.start(q, buf, limit)
	switch {
	case code != 0:
		out.code = code
	case q.version != 0:
		out.code = badVersion
	default:
		if a.decide(out, served, w, tcp); out.signError != nil {
			a.log.Error("sign answer failed", "zone", fmt.Sprintf("%q", out.apex), "error", out.signError)
		}
	}
	if !tcp {
		if verdict := a.rateVerdict(q, out, w); verdict != sendIt {
			if a.counts.limited.Add(1); verdict == dropIt {
				return nil
			}
			out.truncate()
		}
	}
	if q.edns {
		out.startOPT()
		from := len(out.m)
		out.m = a.appendOptions(out.m, q, client)
		out.endOPT(from)
	}
	a.counts.codes[out.code&15].Add(1)
	if wire = out.finish(); sign != nil {
		wire = sign.sign(wire, time.Now())
	}
	return wire
}

// decide answers a well-formed query.
func (a *nameServer) decide(out *answer, s *served, w zonedata.Client, tcp bool) {
	q := out.q
	switch {
	case q.opcode != dns.OpcodeQuery: // updates over UDP and TCP are handled before
		out.code = dns.RcodeNotImplemented
	case q.sent == nil: // the answer is the cookie
	case q.class == dns.ClassCHAOS:
		a.chaos(out)
	case q.class != dns.ClassINET:
		out.code = dns.RcodeRefused
	case s.revision == "": // no zones received yet, so other servers may know the answer
		out.code = dns.RcodeServerFailure
	case q.kind == dns.TypeOPT || q.kind == dns.TypeTKEY || q.kind == dns.TypeTSIG: // not valid in questions (RFC 6895 section 3.1)
		out.code = dns.RcodeFormatError
	case q.kind == dns.TypeAXFR: // transfers over TCP are handled before
		out.code = dns.RcodeFormatError
		if tcp {
			out.code = dns.RcodeRefused
		}
	case q.kind == dns.TypeIXFR && tcp: // see AXFR
		out.code = dns.RcodeRefused
	case q.kind == dns.TypeIXFR:
		if s.transferZone(w, q.name) == nil {
			out.code = dns.RcodeRefused
			return
		}
		q.kind = dns.TypeSOA // a client with an older serial repeats the request over TCP (RFC 1995 section 4)
		out.resolveFor(s, w)
		q.kind = dns.TypeIXFR
	case q.kind >= dns.TypeTKEY && q.kind != dns.TypeANY && q.kind <= dns.TypeANY:
		out.code = dns.RcodeNotImplemented
	default:
		out.resolveFor(s, w)
	}
}

// resolveFor answers from the client's view.
func (a *answer) resolveFor(s *served, w zonedata.Client) {
	v := s.viewFor(w)
	if v == nil {
		a.code = dns.RcodeRefused
		return
	}
	if a.resolve(v, w); a.signError != nil {
		a.truncate()
		a.code, a.truncated, a.authoritative = dns.RcodeServerFailure, false, false
	}
}

// versionName is the name of version queries in class CHAOS.
const versionName = "\x07version\x04bind\x00"

// chaos answers version queries without a version number.
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

// appendOptions appends the EDNS options of the answer.
func (a *nameServer) appendOptions(options []byte, q *query, client netip.Addr) []byte {
	if name := a.identity.Load(); q.nsid && name != nil && *name != "" {
		options = append(options, 0, optionNSID, 0, byte(len(*name))) //nolint:gosec // at most maxIdentity
		options = append(options, *name...)
	}
	if q.cookie != nil {
		options = append(options, 0, optionCookie, 0, 8+16)
		options = append(options, q.cookie[:8]...)
		sum := a.cookies.issue(q.cookie[:8], client, time.Now())
		options = append(options, sum[:]...)
	}
	return options
}

// cookies creates and checks server cookies, which protect against spoofed client addresses (RFC 7873).
type cookies struct{ secret [32]byte }

func newCookies(c *cookies) { _, _ = rand.Read(c.secret[:]) } // rand.Read never fails

// issue returns a server cookie: version, reserved bytes, time and hash. The format is that of RFC 9018 section 4 with another hash,
// because no other server must verify it.
func (c *cookies) issue(client8 []byte, client netip.Addr, now time.Time) (cookie [16]byte) {
	cookie[0] = 1
	binary.BigEndian.PutUint32(cookie[4:], uint32(now.Unix())) //nolint:gosec // serial number arithmetic (RFC 9018 section 4.3)
	sum := c.sum(client8, cookie[:8], client)
	copy(cookie[8:], sum[:])
	return cookie
}

// sum returns the hash of a cookie. The secret comes first and all parts have a fixed size, so the truncated hash needs no HMAC.
func (c *cookies) sum(client8, front []byte, client netip.Addr) [8]byte {
	var of [len(c.secret) + 8 + 8 + 16]byte
	at := copy(of[:], c.secret[:])
	at += copy(of[at:], client8)
	at += copy(of[at:], front)
	address := client.As16()
	copy(of[at:], address[:])
	sum := sha256.Sum256(of[:])
	return [8]byte(sum[:8])
}
