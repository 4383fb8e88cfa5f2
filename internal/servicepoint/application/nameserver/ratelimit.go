package nameserver

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"portolan/internal/wire/zonedata"
)

// RateLimit bounds how many answers that are alike are sent over UDP to one network, so that nobody who asks in the name of others floods
// them. Those who ask over TCP, with a good cookie or with a key have shown who they are.
type RateLimit struct {
	// ResponsesPerSecond is how many are sent to each /24 of IPv4 or /56 of IPv6, 1 to 100,000: of one name, or of one wildcard or delegation
	// whatever was asked for, of what one zone does not have, of errors.
	ResponsesPerSecond int `json:"responsesPerSecond"`
	// Slip is which of those beyond that is answered by a truncated answer, behind which clients ask over TCP: every second where it is not
	// given, none for 0, at most every tenth.
	Slip *int `json:"slip,omitempty"`
	// Exempt are prefixes of clients that are not bounded.
	Exempt []string `json:"exempt,omitempty"`
}

// Bounds of a limit.
const (
	mostResponses = 100_000
	mostSlip      = 10
	usualSlip     = 2
	mostExempt    = 256
)

// wrong says what is wrong with a limit; nil where nothing is.
func (l *RateLimit) wrong(bad func(field, format string, args ...any) error) error {
	switch {
	case l == nil:
		return nil
	case l.ResponsesPerSecond < 1 || l.ResponsesPerSecond > mostResponses:
		return bad("rateLimit.responsesPerSecond", "must be 1 to %d", mostResponses)
	case l.Slip != nil && (*l.Slip < 0 || *l.Slip > mostSlip):
		return bad("rateLimit.slip", "must be 0 to %d", mostSlip)
	case len(l.Exempt) > mostExempt:
		return bad("rateLimit.exempt", "has more than %d prefixes", mostExempt)
	}
	for i, text := range l.Exempt {
		if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() {
			return bad(fmt.Sprintf("rateLimit.exempt[%d]", i), "%q is no prefix, such as 10.0.0.0/8", text)
		}
	}
	return nil
}

// limiter counts answers that are alike. What meets in one place of its table is counted anew in turns: it bounds too little then, never
// too much.
type limiter struct {
	RateLimit
	slip   uint32
	exempt []netip.Prefix
	seed   maphash.Seed
	slots  [1 << 16]atomic.Uint64
}

func newLimiter(l *RateLimit) *limiter {
	if l == nil {
		return nil
	}
	out := &limiter{RateLimit: *l, slip: usualSlip, seed: maphash.MakeSeed()}
	if l.Slip != nil {
		out.slip = uint32(*l.Slip) //nolint:gosec // within its bounds
	}
	for _, text := range l.Exempt {
		out.exempt = append(out.exempt, netip.MustParsePrefix(text)) // it was checked
	}
	return out
}

// networkOf gives the network of clients that one is counted with: a /24 of IPv4, a /56 of IPv6.
func networkOf(client netip.Addr) netip.Prefix {
	bits := 24
	if client.Is6() {
		bits = 56
	}
	network, err := client.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

// verdict is what becomes of an answer.
type verdict int

const (
	sendIt verdict = iota
	cutIt
	dropIt
)

// judge counts an answer to a client. like names what is counted together.
func (l *limiter) judge(client netip.Addr, like string, code int, now time.Time) verdict {
	for _, p := range l.exempt {
		if p.Contains(client) {
			return sendIt
		}
	}
	network := networkOf(client)
	if !network.IsValid() {
		return sendIt
	}
	var h maphash.Hash
	h.SetSeed(l.seed)
	address := network.Addr().As16()
	_, _ = h.Write(address[:]) // it never fails
	_, _ = h.WriteString(like)
	_ = h.WriteByte(byte(code))
	sum := h.Sum64()
	slot, tag, second := &l.slots[sum&(1<<16-1)], uint16(sum>>48), uint32(now.Unix()) //nolint:gosec // parts of them
	for {
		before := slot.Load()
		count := uint16(1)
		if uint16(before>>48) == tag && uint32(before>>16) == second { //nolint:gosec // as above
			count = uint16(min(before&0xffff+1, 0xffff)) //nolint:gosec // at most that
		}
		if !slot.CompareAndSwap(before, uint64(tag)<<48|uint64(second)<<16|uint64(count)) {
			continue
		}
		beyond := int(count) - l.ResponsesPerSecond
		switch {
		case beyond <= 0:
			return sendIt
		case l.slip > 0 && uint32(beyond)%l.slip == 0: //nolint:gosec // above 0
			return cutIt
		}
		return dropIt
	}
}

// isGood reports whether a cookie is one that was given to a client, in the last hour (RFC 9018 section 4.3).
func (c *cookies) isGood(cookie []byte, client netip.Addr, now time.Time) bool {
	if len(cookie) != 8+16 || cookie[8] != 1 {
		return false
	}
	age := int32(uint32(now.Unix()) - binary.BigEndian.Uint32(cookie[12:])) //nolint:gosec // it goes round
	return age >= -300 && age <= 3600 && string(c.sum(cookie[:8], cookie[8:16], client)) == string(cookie[16:])
}

// limited reports what becomes of an answer over UDP.
func (a *nameServer) limited(q *query, out *answer, w zonedata.Client) verdict {
	l := a.limiter.Load()
	if l == nil || w.Key != "" {
		return sendIt
	}
	now := time.Now()
	if q.cookie != nil && a.cookies.isGood(q.cookie, w.Address, now) {
		return sendIt
	}
	like := out.apex // what it does not have, and errors
	if out.origin != "" {
		like = out.origin
	}
	return l.judge(w.Address, like, out.code, now)
}
