package nameserver

import (
	"slices"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// selectSigning sets the signing of the following records to that of a zone, if the client requests DNSSEC (RFC 4035 section 3.1). The
// caller holds the zone's mu.
func (a *answer) selectSigning(z *servedZone) {
	a.signing, a.chain, a.from = nil, nil, nil
	asked := a.q.kind == dns.TypeRRSIG || a.q.kind == dns.TypeNSEC // requested as records of any other type
	a.bare = asked && !a.q.dnssec
	switch {
	case !a.q.dnssec && !asked || z.chain == nil:
	case z.chain.isPresigned:
		a.chain, a.from = z.chain, z.zone
	case z.signs():
		a.signing, a.chain = z.signing, z.chain
	}
}

// isSecured reports whether the answer contains signatures, created here or presigned.
func (a *answer) isSecured() bool { return a.chain != nil }

// signatures returns the signatures of an RRset; nil if there are none.
func (a *answer) signatures(owner string, s *set) (*set, error) {
	if a.from != nil {
		return a.from.signaturesOf(owner, s), nil
	}
	return a.signing.signaturesFor(owner, s, time.Now())
}

// signs reports whether the name server signs the zone: signing is configured, and the zone contains the DNSKEY records. The caller holds
// mu.
func (z *servedZone) signs() bool {
	return z.signing != nil && z.chain != nil && z.nodes[z.apex].set(dns.TypeDNSKEY) != nil
}

// writeSigned writes an RRset for a name with the signatures of its owner. It reports whether there was room. Signatures of additional
// records may be omitted.
func (a *answer) writeSigned(name, owner string, s *set, ttl uint32, section *uint16) bool {
	if a.isSecured() && a.q.kind == dns.TypeRRSIG && s.kind != dns.TypeRRSIG && section == &a.answers {
		return a.writeSignatures(name, owner, s, ttl, section)
	}
	return a.writeSet(name, s, ttl, section) && (!a.isSecured() || a.bare || a.writeSignatures(name, owner, s, ttl, section))
}

// writeDNAME writes a DNAME with its signatures, once. It reports whether there was room.
func (a *answer) writeDNAME(owner string, s *set) bool {
	if slices.Contains(a.followed, s) {
		return true
	}
	a.followed = append(a.followed, s)
	return a.writeSet(owner, s, s.ttl, &a.answers) && (!a.isSecured() || a.bare || a.writeSignatures(owner, owner, s, s.ttl, &a.answers))
}

// writeSignatures writes the signatures of an RRset. It reports whether there was room.
func (a *answer) writeSignatures(name, owner string, s *set, ttl uint32, section *uint16) bool {
	signatures, err := a.signatures(owner, s)
	if err != nil {
		a.signError = err
		return false
	}
	if signatures == nil { // a presigned zone has no signatures for delegations and glue
		return true
	}
	return a.writeSet(name, signatures, ttl, section) || section == &a.extra
}

// denied is a proof record in an answer.
type denied struct {
	chain *chain
	owner string
}

// writeProofs adds the proof records for names, each once. A proof record shows that a name does not exist, or which types it has.
// writeProofs reports whether there was room.
func (a *answer) writeProofs(z *zone, names proof) bool {
	if !a.isSecured() || a.bare {
		return true
	}
	soa := z.nodes[z.apex].set(dns.TypeSOA)
	if soa == nil {
		return true
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		i := z.proofIndex(a.chain, name)
		one := denied{a.chain, a.chain.links[i].owner}
		if slices.Contains(a.denied, one) {
			continue
		}
		a.denied = append(a.denied, one)
		owner, s := z.proofRecord(a.chain, i, soa.negativeTTL(), &a.generated)
		if !a.writeSigned(owner, owner, s, s.ttl, &a.authority) {
			return false
		}
	}
	return true
}

// deferProofs stores the proofs of names for the authority section, which follows the answers that aliases still add. It reports whether
// there was room.
func (a *answer) deferProofs(z *zone, names proof) bool {
	from := len(a.m)
	if !a.writeProofs(z, names) {
		return false
	}
	a.proofs = append(a.proofs, a.m[from:]...) // their compression pointers point only into the question, so they can be moved
	a.limit -= len(a.m) - from
	a.m = a.m[:from]
	return true
}

// appendProofs writes the stored proofs. The answer section must be complete.
func (a *answer) appendProofs() {
	a.m = append(a.m, a.proofs...)
	a.limit += len(a.proofs)
	a.proofs = a.proofs[:0]
}

// answerNSEC answers a query for NSEC with the NSEC record of a node. It returns false if the node has none.
func (a *answer) answerNSEC(z *zone, at place) bool {
	if a.signing == nil || a.chain.hashed || len(z.nodes[at.owner].sets) == 0 {
		return false
	}
	soa := z.nodes[z.apex].set(dns.TypeSOA)
	if soa == nil {
		return false
	}
	_, s := z.proofRecord(a.chain, z.proofIndex(a.chain, at.owner), soa.negativeTTL(), &a.generated)
	if !a.writeSigned(at.name, at.owner, s, s.ttl, &a.answers) || at.name != at.owner && !a.writeProofs(z, at.wildcardProof(a.chain)) {
		a.truncate()
	}
	return true
}

// proof contains the names of the proof records that an answer needs. Empty ones are unused.
type proof [3]string

// nxdomainProof returns the names to prove that a name does not exist and no wildcard matches it (RFC 4035 section 3.1.3.2, RFC 5155
// section 7.2.2).
func (a *answer) nxdomainProof(p place) proof {
	if a.chain == nil || !a.chain.hashed {
		return proof{p.name, p.owner}
	}
	encloser, closer := a.chain.closestProvable(p.encloser, p.closer)
	return proof{encloser, closer, a.wildcardOf(encloser)}
}

// wildcardProof returns the names to prove that a wildcard matches a name (RFC 4035 section 3.1.3.3, RFC 5155 section 7.2.6).
func (p place) wildcardProof(c *chain) proof {
	if c != nil && c.hashed {
		return proof{p.closer}
	}
	return proof{p.name}
}

// nodataProof returns the names to prove that a name, or the wildcard that matches it, has no records of a type. See RFC 4035 sections
// 3.1.3.1 and 3.1.3.4, and RFC 5155 sections 7.2.3 to 7.2.5.
func (p place) nodataProof(c *chain) proof {
	switch hashed := c != nil && c.hashed; {
	case p.name == p.owner && hashed:
		return c.typesProof(p.owner)
	case p.name == p.owner:
		return proof{p.owner}
	case hashed:
		return proof{p.encloser, p.closer, p.owner}
	}
	return proof{p.owner, p.name}
}

// typesProof returns the names to prove the types of an existing name with NSEC3. These are the name itself or, if opt-out omits it,
// those of the closest provable encloser proof (RFC 5155 sections 7.2.4 and 7.2.7).
func (c *chain) typesProof(name string) proof {
	if encloser, closer := c.closestProvable(name, ""); closer != "" {
		return proof{encloser, closer}
	}
	return proof{name}
}

// closestProvable returns the closest provable encloser at or above a name, and its child towards the name (RFC 5155 section 1.3).
// Opt-out zones have names without an NSEC3 record: insecure delegations, and the empty non-terminals above them.
func (c *chain) closestProvable(encloser, closer string) (string, string) {
	for c.isPresigned && len(encloser) > 1 {
		var key [maxKey]byte
		if _, found := c.find(c.appendKey(key[:0], encloser)); found {
			break
		}
		encloser, closer = parent(encloser), encloser
	}
	return encloser, closer
}
