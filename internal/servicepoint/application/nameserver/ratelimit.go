package nameserver

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"portolan/internal/wire/zonedata"
)

// RateLimit limits the number of similar answers over UDP to one network, which prevents reflection attacks. Clients that use TCP, a
// valid cookie or a TSIG key are exempt, because their address is verified.
type RateLimit struct {
	// ResponsesPerSecond is the number of similar answers per second to each /24 of IPv4 or /56 of IPv6, 1 to 100,000. Answers are similar
	// if they have the same owner name, wildcard or delegation, or are negative answers or errors of the same zone.
	ResponsesPerSecond int `json:"responsesPerSecond"`
	// Slip is the interval of truncated answers beyond the limit, after which clients retry over TCP. 2 truncates every second answer and
	// drops the others; 0 drops all; at most 10. The default is 2.
	Slip *int `json:"slip,omitempty"`
	// Exempt are the prefixes of clients without a limit.
	Exempt []string `json:"exempt,omitempty"`
}

// Limits of the settings.
const (
	maxResponses = 100_000
	maxSlip      = 10
	defaultSlip  = 2
	maxExempt    = 256
)

// validate returns the error of invalid settings, created by bad; nil if they are valid.
func (l *RateLimit) validate(bad func(field, format string, args ...any) error) error {
	switch {
	case l == nil:
		return nil
	case l.ResponsesPerSecond < 1 || l.ResponsesPerSecond > maxResponses:
		return bad("rateLimit.responsesPerSecond", "must be 1 to %d", maxResponses)
	case l.Slip != nil && (*l.Slip < 0 || *l.Slip > maxSlip):
		return bad("rateLimit.slip", "must be 0 to %d", maxSlip)
	case len(l.Exempt) > maxExempt:
		return bad("rateLimit.exempt", "has more than %d prefixes", maxExempt)
	}
	for i, text := range l.Exempt {
		if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() {
			return bad(fmt.Sprintf("rateLimit.exempt[%d]", i), "must be a prefix, such as 10.0.0.0/8, not %q", text)
		}
	}
	return nil
}

// limiter counts similar answers. A hash collision restarts a count, so collisions only weaken the limit.
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
	out := &limiter{RateLimit: *l, slip: defaultSlip, seed: maphash.MakeSeed()}
	if l.Slip != nil {
		out.slip = uint32(*l.Slip) //nolint:gosec // checked before
	}
	for _, text := range l.Exempt {
		out.exempt = append(out.exempt, netip.MustParsePrefix(text)) // checked before
	}
	return out
}

// networkOf returns the client network of an address: a /24 of IPv4, a /56 of IPv6.
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

// verdict is the decision on an answer.
type verdict int

const (
	sendIt verdict = iota
	cutIt
	dropIt
)

// decide counts an answer to a client. like identifies similar answers.
func (l *limiter) decide(client netip.Addr, like string, code int, now time.Time) verdict {
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
	_, _ = h.Write(address[:]) // Hash.Write never fails
	_, _ = h.WriteString(like)
	_ = h.WriteByte(byte(code))
	sum := h.Sum64()
	slot, tag, second := &l.slots[sum&(1<<16-1)], uint16(sum>>48), uint32(now.Unix()) //nolint:gosec // parts of larger values
	for {
		before := slot.Load()
		count := uint16(1)
		if uint16(before>>48) == tag && uint32(before>>16) == second { //nolint:gosec // see above
			count = uint16(min(before&0xffff+1, 0xffff)) //nolint:gosec // at most 0xffff
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

// isGood reports whether a cookie was issued to a client within the last hour (RFC 9018 section 4.3).
func (c *cookies) isGood(cookie []byte, client netip.Addr, now time.Time) bool {
	if len(cookie) != 8+16 || cookie[8] != 1 {
		return false
	}
	age := int32(uint32(now.Unix()) - binary.BigEndian.Uint32(cookie[12:])) //nolint:gosec // serial number arithmetic
	sum := c.sum(cookie[:8], cookie[8:16], client)
	return age >= -300 && age <= 3600 && subtle.ConstantTimeCompare(sum[:], cookie[16:]) == 1
}

// rateVerdict returns the decision on an answer over UDP.
func (a *nameServer) rateVerdict(q *query, out *answer, w zonedata.Client) verdict {
	l := a.limiter.Load()
	if l == nil || w.Key != "" {
		return sendIt
	}
	now := time.Now()
	if q.cookie != nil && a.cookies.isGood(q.cookie, w.Address, now) {
		return sendIt
	}
	like := out.apex // for negative answers and errors
	if out.origin != "" {
		like = out.origin
	}
	return l.decide(w.Address, like, out.code, now)
}
