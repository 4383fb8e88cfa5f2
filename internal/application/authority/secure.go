package authority

import (
	"slices"
	"time"

	"github.com/miekg/dns"
)

// secure has the answer signed from now on as a zone is, where whoever asks wants that (RFC 4035 section 3.1). It is called with the zone's
// mu held.
func (a *answer) secure(z *servedZone) {
	a.signing, a.chain, a.from = nil, nil, nil
	asked := a.q.kind == dns.TypeRRSIG || a.q.kind == dns.TypeNSEC // as for records of any other type
	a.bare = asked && !a.q.dnssec
	switch {
	case !a.q.dnssec && !asked || z.chain == nil:
	case z.chain.given:
		a.chain, a.from = z.chain, z.zone
	case z.signs():
		a.signing, a.chain = z.signing, z.chain
	}
}

// secured reports whether the answer has signatures: ours, or those that the zone came with.
func (a *answer) secured() bool { return a.chain != nil }

// signatures gives the signatures of an RRset of an owner; nil where there are none.
func (a *answer) signatures(owner string, s *set) (*set, error) {
	if a.from != nil {
		return a.from.signaturesOf(owner, s), nil
	}
	return a.signing.over(owner, s, time.Now())
}

// signs reports whether the zone is signed: it is to be, and its data says by which keys. It is called with mu held.
func (z *servedZone) signs() bool {
	return z.signing != nil && z.chain != nil && z.nodes[z.apex].of(dns.TypeDNSKEY) != nil
}

// putSigned writes an RRset for a name, with the signatures of the owner that it is of. It reports whether there was room; of further
// records that nobody has asked for the signatures may be missing.
func (a *answer) putSigned(name, owner string, s *set, ttl uint32, section *uint16) bool {
	only := a.secured() && a.q.kind == dns.TypeRRSIG && section == &a.answers
	if !only && !a.put(name, s, ttl, section) {
		return false
	}
	if !a.secured() || a.bare && !only {
		return true
	}
	signatures, err := a.signatures(owner, s)
	if err != nil {
		a.fault = err
		return false
	}
	if signatures == nil { // a zone that came with its signatures has none of what is not its own
		return true
	}
	return a.put(name, signatures, ttl, section) || section == &a.extra
}

// denied is a name whose record of a chain is in an answer.
type denied struct {
	of    *chain
	owner string
}

// prove adds the records that say of names that they have no more than is answered, or that they are not there, each once. It reports
// whether there was room.
func (a *answer) prove(z *zone, names ...string) bool {
	if !a.secured() || a.bare {
		return true
	}
	soa := z.nodes[z.apex].of(dns.TypeSOA)
	if soa == nil {
		return true
	}
	for _, name := range names {
		i := z.find(a.chain, name)
		one := denied{a.chain, a.chain.links[i].owner}
		if slices.Contains(a.denied, one) {
			continue
		}
		a.denied = append(a.denied, one)
		owner, s := z.denial(a.chain, i, soa.negativeTTL())
		if !a.putSigned(owner, owner, s, s.ttl, &a.authority) {
			return false
		}
	}
	return true
}

// ownDenial answers with the NSEC record of a name; false where there is none.
func (a *answer) ownDenial(z *zone, name string) bool {
	if a.signing == nil || a.chain.hashed || len(z.nodes[name].sets) == 0 {
		return false
	}
	soa := z.nodes[z.apex].of(dns.TypeSOA)
	if soa == nil {
		return false
	}
	owner, s := z.denial(a.chain, z.find(a.chain, name), soa.negativeTTL())
	if !a.putSigned(owner, owner, s, s.ttl, &a.answers) {
		a.cut()
	}
	return true
}

// missing are the names whose records show that a name is not there, and no wildcard that stands for it (RFC 4035 section 3.1.3.2,
// RFC 5155 section 7.2.2).
func (p place) missing(c *chain) []string {
	if c != nil && c.hashed {
		return []string{p.encloser, p.closer, p.owner}
	}
	return []string{p.name, p.owner}
}

// expanded are those that show that a wildcard stands for a name (RFC 4035 section 3.1.3.3, RFC 5155 section 7.2.6).
func (p place) expanded(c *chain) []string {
	if c != nil && c.hashed {
		return []string{p.closer}
	}
	return []string{p.name}
}

// nothing are those that show that a name, or the wildcard that stands for it, has no records of a type (RFC 4035 sections 3.1.3.1 and
// 3.1.3.4, RFC 5155 sections 7.2.3 and 7.2.5).
func (p place) nothing(c *chain) []string {
	switch {
	case p.name == p.owner:
		return []string{p.owner}
	case c != nil && c.hashed:
		return []string{p.encloser, p.closer, p.owner}
	}
	return []string{p.owner, p.name}
}
