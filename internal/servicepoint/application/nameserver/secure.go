package nameserver

import (
	"slices"
	"time"

	dns "portolan/internal/base/dnsmsg"
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
	if a.secured() && a.q.kind == dns.TypeRRSIG && s.kind != dns.TypeRRSIG && section == &a.answers {
		return a.putSignatures(name, owner, s, ttl, section)
	}
	return a.put(name, s, ttl, section) && (!a.secured() || a.bare || a.putSignatures(name, owner, s, ttl, section))
}

// putAlias writes the DNAME that leads on from the name in question, whatever type is asked for, once. It reports whether there was room.
func (a *answer) putAlias(owner string, s *set) bool {
	if slices.Contains(a.led, s) {
		return true
	}
	a.led = append(a.led, s)
	return a.put(owner, s, s.ttl, &a.answers) && (!a.secured() || a.bare || a.putSignatures(owner, owner, s, s.ttl, &a.answers))
}

// putSignatures writes the signatures of an RRset. It reports whether there was room.
func (a *answer) putSignatures(name, owner string, s *set, ttl uint32, section *uint16) bool {
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

// proveLater keeps the proofs of names for the authority section, which begins behind the answers that aliases still add. It reports
// whether there was room.
func (a *answer) proveLater(z *zone, names []string) bool {
	from := len(a.m)
	if !a.prove(z, names...) {
		return false
	}
	a.proofs = append(a.proofs, a.m[from:]...) // names in them point to the question alone, so they may be moved
	a.limit -= len(a.m) - from
	a.m = a.m[:from]
	return true
}

// appendProofs writes the proofs that were kept. The answer section is complete by then.
func (a *answer) appendProofs() {
	a.m = append(a.m, a.proofs...)
	a.limit += len(a.proofs)
	a.proofs = a.proofs[:0]
}

// ownDenial answers with the NSEC record of a node; false where the node has none.
func (a *answer) ownDenial(z *zone, at place) bool {
	if a.signing == nil || a.chain.hashed || len(z.nodes[at.owner].sets) == 0 {
		return false
	}
	soa := z.nodes[z.apex].of(dns.TypeSOA)
	if soa == nil {
		return false
	}
	_, s := z.denial(a.chain, z.find(a.chain, at.owner), soa.negativeTTL())
	if !a.putSigned(at.name, at.owner, s, s.ttl, &a.answers) || at.name != at.owner && !a.prove(z, at.expanded(a.chain)...) {
		a.cut()
	}
	return true
}

// missing gives the names whose records show that a name does not exist, nor a wildcard for it (RFC 4035 section 3.1.3.2, RFC 5155
// section 7.2.2).
func (p place) missing(c *chain) []string {
	if c == nil || !c.hashed {
		return []string{p.name, p.owner}
	}
	encloser, closer := c.provable(p.encloser, p.closer)
	return []string{encloser, closer, "\x01*" + encloser}
}

// expanded gives the names whose records show that a wildcard stands for a name (RFC 4035 section 3.1.3.3, RFC 5155 section 7.2.6).
func (p place) expanded(c *chain) []string {
	if c != nil && c.hashed {
		return []string{p.closer}
	}
	return []string{p.name}
}

// nothing gives the names whose records show that a name, or the wildcard that stands for it, has no records of a type (RFC 4035 sections
// 3.1.3.1 and 3.1.3.4, RFC 5155 sections 7.2.3 to 7.2.5).
func (p place) nothing(c *chain) []string {
	switch hashed := c != nil && c.hashed; {
	case p.name == p.owner && hashed:
		return c.itself(p.owner)
	case p.name == p.owner:
		return []string{p.owner}
	case hashed:
		return []string{p.encloser, p.closer, p.owner}
	}
	return []string{p.owner, p.name}
}

// itself gives the names whose NSEC3 records show the types of a name that exists: its own or, where opt-out leaves it out, those of the
// closest provable encloser proof (RFC 5155 sections 7.2.4 and 7.2.7).
func (c *chain) itself(name string) []string {
	if encloser, closer := c.provable(name, ""); closer != "" {
		return []string{encloser, closer}
	}
	return []string{name}
}

// provable gives the closest provable encloser at or above a name, and the name right below it (RFC 5155 section 1.3). Opt-out leaves names
// without an NSEC3 record: insecure delegations, and the empty non-terminals above them.
func (c *chain) provable(encloser, closer string) (string, string) {
	for c.given && len(encloser) > 1 {
		if _, found := slices.BinarySearchFunc(c.links, link{key: c.keyOf(encloser)}, compareLinks); found {
			break
		}
		encloser, closer = parent(encloser), encloser
	}
	return encloser, closer
}
