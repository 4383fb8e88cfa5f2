package nameserver

import (
	"slices"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// maxAliases is the maximum number of aliases in a chain.
const maxAliases = 16

// resolve answers a question from the zones of a view (RFC 1034 section 4.3.2).
func (a *answer) resolve(v *view, w zonedata.Client) {
	a.follow(v, w)
	a.appendProofs()
}

// follow answers from the zone of the question's name, then from the zones of the aliases' targets.
func (a *answer) follow(v *view, w zonedata.Client) {
	name := a.q.name
	for hop := range maxAliases {
		z := v.zoneOf(name, a.q.kind == dns.TypeDS)
		if z == nil || !zonedata.Allows(z.settings.Query, w, true) {
			if hop == 0 {
				a.code = dns.RcodeRefused
			}
			return
		}
		if slices.Contains(a.seen[:hop], name) { // the aliases form a loop
			a.code = dns.RcodeServerFailure
			return
		}
		a.apex = z.apex
		if z.settings.Void {
			a.code = dns.RcodeServerFailure
			return
		}
		next := a.answerLocked(v, z, name, hop == 0)
		if next == "" {
			return
		}
		a.seen[hop], name = name, next
	}
	a.code = dns.RcodeServerFailure // a DNAME below its own target creates an endless chain of aliases
}

// answerLocked calls answerFrom with the zone's mu held for reading. It signs the answer if the zone is signed.
func (a *answer) answerLocked(v *view, z *servedZone, name string, first bool) (next string) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	a.selectSigning(z)
	return a.answerFrom(v, z.zone, name, first)
}

// answerFrom answers from one zone. It returns the target of an alias, or an empty string if the answer is complete. The caller holds the
// zone's mu.
func (a *answer) answerFrom(v *view, z *zone, name string, first bool) (next string) {
	if z.cuts > 0 {
		kind := a.q.kind
		if kind == dns.TypeNSEC && a.chain != nil && !a.chain.hashed {
			kind = dns.TypeDS // like DS, the NSEC of a delegation belongs to the parent zone (RFC 4035 section 2.3)
		}
		if at, s := z.findCut(name, kind); s != nil {
			if s.kind == dns.TypeDNAME {
				a.authoritative = a.authoritative || first
				return a.redirect(name, at, s)
			}
			a.addReferral(z, at, s)
			return ""
		}
	}
	a.authoritative = a.authoritative || first
	if n := z.nodes[name]; n != nil {
		return a.answerNode(v, z, n, place{name: name, owner: name})
	}
	at := place{name: name}
	at.encloser, at.closer = parent(name), name
	for z.nodes[at.encloser] == nil {
		at.encloser, at.closer = parent(at.encloser), at.encloser
	}
	at.owner = a.wildcardOf(at.encloser)
	n := z.nodes[at.owner]
	if n == nil {
		a.code = dns.RcodeNameError
		a.addNegative(z, a.nxdomainProof(at))
		return ""
	}
	return a.answerNode(v, z, n, at)
}

// wildcardOf returns the name of the wildcard below a name. It is valid until the next one is looked up; that of the first records in the
// answer, until the next query.
func (a *answer) wildcardOf(encloser string) string {
	of := &a.wildcards[0]
	if a.origin != "" {
		of = &a.wildcards[1]
	}
	return shareString(append(append(of[:0], "\x01*"...), encloser...))
}

// place describes the owner of the records in an answer.
type place struct {
	// name is the name in the answer. owner is the owner of the records; it differs for a wildcard. Then encloser is the closest encloser,
	// and closer the next closer name (RFC 5155 section 1.3).
	name, owner, encloser, closer string
}

// answerNode answers from a node, for its own name or for a name that its wildcard matches.
func (a *answer) answerNode(v *view, z *zone, n *node, at place) (next string) {
	s, alias := n.set(a.q.kind), n.set(dns.TypeCNAME)
	switch {
	case alias != nil && a.q.kind != dns.TypeCNAME && a.q.kind != dns.TypeANY && a.q.kind != dns.TypeRRSIG && a.q.kind != dns.TypeNSEC:
		s = alias
	// one RRset is sufficient (RFC 8482 section 4.1)
	case len(n.sets) > 0 && (a.q.kind == dns.TypeANY || a.q.kind == dns.TypeRRSIG && a.signing != nil):
		s, alias = &n.sets[0], nil
	default:
		alias = nil
	}
	if s == nil && a.q.kind == dns.TypeNSEC && a.answerNSEC(z, at) {
		return ""
	}
	if s == nil {
		a.addNegative(z, at.nodataProof(a.chain))
		return ""
	}
	if a.origin == "" {
		a.origin = at.owner
	}
	if !a.writeSigned(at.name, at.owner, s, s.ttl, &a.answers) || at.name != at.owner && !a.deferProofs(z, at.wildcardProof(a.chain)) {
		a.truncate()
		return ""
	}
	if alias != nil {
		alias.eachRecord(0, func(data []byte) bool { next = lowerNameIn(data); return false })
		return next
	}
	a.appendProofs()
	a.addHosts(v, z, s)
	return ""
}

// lowerNameIn returns the name in the data of a record in lower case. It shares the data, which never changes, if that is in lower case.
func lowerNameIn(data []byte) string {
	for _, c := range data {
		if c >= 'A' && c <= 'Z' {
			return lowerName(data)
		}
	}
	return shareString(data)
}

// lowerName returns a copy of a name in lower case.
func lowerName(data []byte) string {
	name := append([]byte(nil), data...)
	toLower(name)
	return string(name)
}

// findCut returns the topmost name at which the zone delegates or redirects name, with the NS or DNAME RRset.
func (z *zone) findCut(name string, kind uint16) (at string, s *set) {
	for one := name; one != z.apex; one = parent(one) {
		n := z.nodes[one]
		if n == nil {
			continue
		}
		if ns := n.set(dns.TypeNS); ns != nil && (one != name || kind != dns.TypeDS) {
			at, s = one, ns
		}
		if d := n.set(dns.TypeDNAME); d != nil && one != name {
			at, s = one, d
		}
	}
	if n := z.nodes[z.apex]; name != z.apex {
		if d := n.set(dns.TypeDNAME); d != nil {
			return z.apex, d
		}
	}
	return at, s
}

// redirect answers with a DNAME and the CNAME that results from it (RFC 6672 section 3).
func (a *answer) redirect(name, at string, s *set) (next string) {
	var target []byte
	s.eachRecord(0, func(data []byte) bool { target = data; return false })
	if a.origin == "" {
		a.origin = at
	}
	if !a.writeDNAME(at, s) {
		a.truncate()
		return ""
	}
	front := name[:len(name)-len(at)]
	if len(front)+len(target) > 255 {
		a.code = dns.RcodeYXDomain
		return ""
	}
	data := append([]byte(front), target...)
	alias := set{kind: dns.TypeCNAME, count: 1, ttl: s.ttl, data: append([]byte{0, byte(len(data))}, data...)} //nolint:gosec // at most 255
	if !a.writeSet(name, &alias, s.ttl, &a.answers) {
		a.truncate()
		return ""
	}
	if a.q.kind == dns.TypeCNAME || a.q.kind == dns.TypeANY { // this alias is the answer
		return ""
	}
	return lowerName(data)
}

// addReferral answers with a referral: the name servers of a delegation, and their glue addresses.
func (a *answer) addReferral(z *zone, at string, s *set) {
	a.appendProofs()
	if a.origin == "" {
		a.origin = at
	}
	if !a.writeSet(at, s, s.ttl, &a.authority) {
		a.truncate()
		return
	}
	if ds := z.nodes[at].set(dns.TypeDS); a.isSecured() && !a.bare {
		if ds != nil && !a.writeSigned(at, at, ds, ds.ttl, &a.authority) || ds == nil && !a.writeProofs(z, place{name: at,
			owner: at}.nodataProof(a.chain)) {
			a.truncate()
			return
		}
	}
	s.eachRecord(0, func(data []byte) bool {
		server := lowerNameIn(data)
		needed := len(server) > len(at) && server[len(server)-len(at):] == at
		n := z.nodes[server]
		if n == nil {
			return true
		}
		for _, kind := range [...]uint16{dns.TypeA, dns.TypeAAAA} {
			if glue := n.set(kind); glue != nil && !a.writeSet(server, glue, glue.ttl, &a.extra) && needed {
				a.truncated = true // the referral is useless without this glue (RFC 9471)
			}
		}
		return true
	})
}

// addHosts adds the addresses of the targets of NS, MX and SRV records while there is room.
func (a *answer) addHosts(v *view, z *zone, s *set) {
	skip := 0
	switch s.kind {
	case dns.TypeNS:
	case dns.TypeMX:
		skip = 2
	case dns.TypeSRV:
		skip = 6
	default:
		return
	}
	s.eachRecord(0, func(data []byte) bool {
		if len(data) <= skip {
			return true
		}
		name := lowerNameIn(data[skip:])
		if held := v.zoneOf(name, false); held == nil || held.zone != z { // another zone has its own lock
			return true
		}
		if at, cut := z.findCut(name, dns.TypeA); cut != nil && at != "" {
			return true
		}
		if n := z.nodes[name]; n != nil {
			for _, kind := range [...]uint16{dns.TypeA, dns.TypeAAAA} {
				if hosts := n.set(kind); hosts != nil && !a.writeSigned(name, name, hosts, hosts.ttl, &a.extra) {
					return false
				}
			}
		}
		return true
	})
}

// addNegative adds the SOA for a negative answer (RFC 2308 section 3), and in a signed zone the proofs for names.
func (a *answer) addNegative(z *zone, names proof) {
	s := z.nodes[z.apex].set(dns.TypeSOA)
	if s == nil {
		return
	}
	a.appendProofs()
	if !a.writeSigned(z.apex, z.apex, s, s.negativeTTL(), &a.authority) || !a.writeProofs(z, names) {
		a.truncate()
	}
}
